#pragma once

#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

enum class Reduction { kSum, kMean };

/// Every device gets the sum (or the mean) of what all of them have: result i is on devices[i]. The
/// values have one dtype and shape. Each travels to each other device once, directly where devices
/// can exchange data. Differentiable.
///
///     grads = td::all_reduce({grad_on_0, grad_on_1}, {"/GPU:0", "/GPU:1"}, td::Reduction::kMean);
///
/// All add up in the same order, so that every device gets the same bits. Throws
/// InvalidArgumentError if the numbers of values and devices differ or the values are unlike.
TANDEM_EXPORT std::vector<Tensor> all_reduce(const std::vector<Tensor>& values,
                                             const std::vector<std::string>& devices,
                                             Reduction reduction = Reduction::kSum);

}  // namespace tandem
