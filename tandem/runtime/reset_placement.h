#pragma once

#include "tandem/core/export.h"
#include "tandem/runtime/traced_function.h"

namespace tandem::config {

/// Places a function again at its next call, by the policy and the profile that then are in
/// force. Otherwise it stays by what it was placed by at its first call in a runtime:
///
///     td::config::set_placement_profile("step.costs.json");
///     td::config::reset_placement(step.concrete(x, y));
///
/// Calls that are running go on where they are. Throws InvalidArgumentError for an empty function.
TANDEM_EXPORT void reset_placement(const ConcreteFunction& function);

}  // namespace tandem::config
