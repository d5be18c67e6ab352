#pragma once

#include <span>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

struct OpDef;
class Runtime;

/// Runs one op at once on the calling thread. See `call` in dispatch.h, the only caller.
std::vector<Tensor> run_eagerly(const OpDef& op, std::span<const Tensor> inputs, const AttrMap& attrs);
/// The same for ops of one output, without a vector.
Tensor run_eagerly_1(Runtime& runtime, const OpDef& op, std::span<const Tensor> inputs, const AttrMap& attrs);

}  // namespace tandem
