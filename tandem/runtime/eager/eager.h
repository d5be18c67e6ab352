#pragma once

#include <span>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

class Function;
class Runtime;
struct OpDef;

/// Runs one op at once on the calling thread. See `call` in dispatch.h, the only caller.
std::vector<Tensor> run_eagerly(const OpDef& op, std::span<const Tensor> inputs,
                                const AttrMap& attrs);
/// Runs an op of one output, without a vector.
Tensor run_eagerly_1(Runtime& runtime, const OpDef& op, std::span<const Tensor> inputs,
                     const AttrMap& attrs);

/// Runs a function at once on the calling thread; a shorter way than its call op's kernel to the
/// same executor.
std::vector<Tensor> run_function_eagerly(Runtime& runtime, const Function& function,
                                         std::span<const Tensor> args);

}  // namespace tandem
