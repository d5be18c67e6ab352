#pragma once

#include <span>
#include <vector>

#include "tandem/graph/graph.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// While a function is traced, a computation with a gradient of the user's own becomes a call of a
/// function; these attributes of the call keep the gradient with it, so that a tape outside finds
/// it. Imported functions have such calls too.
/// A function of (inputs, outputs, output gradients, what it captured); what it captured stands
/// after the inputs in the call's arguments. A gradient of a resource is passed the resource
/// itself.
inline constexpr const char* kCustomGradientAttr = "_custom_gradient";
/// How many of the call's arguments are inputs.
inline constexpr const char* kCustomInputsAttr = "_custom_inputs";
bool has_custom_gradient(const Node& call);

/// Makes the call of such a node again, for other arguments, and notifies the tapes of its
/// gradient.
std::vector<Tensor> repeat_custom_call(const Node& call, std::span<const Tensor> args);

}  // namespace tandem
