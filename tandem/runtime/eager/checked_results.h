#pragma once

#include <span>

#include "tandem/runtime/tensor.h"

namespace tandem {

struct OpDef;

/// Throws InvalidArgumentError naming op and output where a result has a NaN or an infinity; while
/// a function is being traced it adds nodes that do.
void check_results(const OpDef& op, std::span<const Tensor> results);

}  // namespace tandem
