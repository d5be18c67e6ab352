#pragma once

#include <utility>

#include "tandem/graph/op_decl.h"
#include "tandem/ops/operand.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::internal {

/// An op of two operands: numbers take the other's dtype, tensors are forwarded so that their
/// memory can be reused.
inline Tensor call_binary(const OpRegistration& op, Operand&& x, Operand&& y) {
  OperandPair both = take_both(std::move(x), std::move(y));
  return call1(op, {std::move(both.x), std::move(both.y)});
}

}  // namespace tandem::internal
