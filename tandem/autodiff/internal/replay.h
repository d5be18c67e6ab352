#pragma once

#include <span>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// Calls the ops of a function's body again, one by one, through the dispatch seam, with `args` for
/// its arguments: inlining while tracing, and a way for tapes to see inside. Returns its results.
std::vector<Tensor> replay(const Function& function, std::span<const Tensor> args);

}  // namespace tandem
