#pragma once

#include <string_view>

#include "tandem/core/array.h"
#include "tandem/core/export.h"
#include "tandem/graph/resource_manager.h"

namespace tandem {

/// What goes along a reference edge: a scalar of a reference dtype that names a variable and keeps
/// it alive. Ops that declare a Ref input get it as it is; for all others the executor puts the
/// variable's value in its place when they run.
TANDEM_EXPORT Array make_reference(Ref<VariableResource> variable);

/// The variable of a reference; throws InvalidArgumentError if the array is none.
TANDEM_EXPORT VariableResource& referenced_variable(const Array& reference);

/// The variable that a kernel's input names, as a reference or as a resource handle.
TANDEM_EXPORT VariableResource& variable_input(const Array& input);

/// Throws FailedPreconditionError if `input` is a reference to a variable without a value. Call
/// with the variable's mutex held. (Handles find out when the value is asked for.)
TANDEM_EXPORT void require_initialized(const Array& input, VariableResource& variable);

[[noreturn]] TANDEM_EXPORT void throw_uninitialized(std::string_view name);

}  // namespace tandem
