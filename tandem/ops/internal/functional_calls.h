#pragma once

#include <span>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem::internal {

/// An If node (or call): `inputs` are the arguments of both functions. If a tape listens, the
/// functions called also return what the gradient needs, and those values are left out of what this
/// returns.
TANDEM_EXPORT std::vector<Tensor> call_if(const Tensor& pred, const std::vector<Tensor>& inputs,
                                          const FunctionRef& then_branch,
                                          const FunctionRef& else_branch);

/// A Case node (or call): `inputs` are the arguments of all branches. As above for gradients.
TANDEM_EXPORT std::vector<Tensor> call_case(const Tensor& index, std::span<const Tensor> inputs,
                                            const std::vector<FunctionRef>& branches);

/// A While node (or call): `inputs` are the state that `condition` and `body` take. As above for
/// gradients.
TANDEM_EXPORT std::vector<Tensor> call_while(const std::vector<Tensor>& inputs,
                                             const FunctionRef& condition, const FunctionRef& body);

}  // namespace tandem::internal
