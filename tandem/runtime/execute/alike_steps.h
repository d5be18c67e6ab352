#pragma once

#include <vector>

#include "tandem/runtime/execute/plan.h"

namespace tandem {

/// Steps that had better stand side by side in a piece of work for a device, because such a device
/// may launch them as one: small elementwise ops and sums, and steps of optimizers, of one op, with
/// the same attributes and the same types, whose inputs broadcast alike. Models have many of them,
/// one for each variable.
///
/// By step: the number of its kind, or -1 if it is none of these.
std::vector<int> alike_steps(const std::vector<Step>& steps);

}  // namespace tandem
