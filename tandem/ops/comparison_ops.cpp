#include "tandem/ops/comparison_ops.h"

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
namespace {

constexpr OpTraits kElementwise{.elementwise = true};
#define TANDEM_COMPARISON(NAME, TYPES, DOC)                                                                          \
  const OpRegistration k##NAME {                                                                                     \
    {                                                                                                                \
      .name = #NAME, .inputs = "x: T, y: T", .outputs = "z: bool", .attrs = TYPES, .shape = shapes::broadcast_binary, \
      .gradient = not_differentiable, .traits = kElementwise, .doc = DOC,                                            \
    }                                                                                                                \
  }
TANDEM_COMPARISON(Equal, "T: all; incompatible_shape_error: bool = true", "x == y.");
TANDEM_COMPARISON(NotEqual, "T: all; incompatible_shape_error: bool = true", "x != y.");
TANDEM_COMPARISON(Less, "T: reals", "x < y.");
TANDEM_COMPARISON(LessEqual, "T: reals", "x <= y.");
TANDEM_COMPARISON(Greater, "T: reals", "x > y.");
TANDEM_COMPARISON(GreaterEqual, "T: reals", "x >= y.");

#define TANDEM_LOGIC(NAME, INPUTS, SHAPE, DOC)                                                                  \
  const OpRegistration k##NAME {                                                                                \
    {                                                                                                           \
      .name = #NAME, .inputs = INPUTS, .outputs = "z: bool", .shape = SHAPE, .gradient = not_differentiable,    \
      .traits = kElementwise, .doc = DOC,                                                                       \
    }                                                                                                           \
  }
TANDEM_LOGIC(LogicalAnd, "x: bool, y: bool", shapes::broadcast_binary, "x and y.");
TANDEM_LOGIC(LogicalOr, "x: bool, y: bool", shapes::broadcast_binary, "x or y.");
TANDEM_LOGIC(LogicalNot, "x: bool", shapes::unchanged, "not x.");

Tensor binary(const OpRegistration& op, Operand x, Operand y) {
  OperandPair p = take_both(std::move(x), std::move(y));
  return call1(op, {std::move(p.x), std::move(p.y)});
}

}  // namespace

Tensor equal(Operand x, Operand y) { return binary(kEqual, std::move(x), std::move(y)); }
Tensor not_equal(Operand x, Operand y) { return binary(kNotEqual, std::move(x), std::move(y)); }
Tensor less(Operand x, Operand y) { return binary(kLess, std::move(x), std::move(y)); }
Tensor less_equal(Operand x, Operand y) { return binary(kLessEqual, std::move(x), std::move(y)); }
Tensor greater(Operand x, Operand y) { return binary(kGreater, std::move(x), std::move(y)); }
Tensor greater_equal(Operand x, Operand y) { return binary(kGreaterEqual, std::move(x), std::move(y)); }
Tensor logical_and(Operand x, Operand y) { return binary(kLogicalAnd, std::move(x), std::move(y)); }
Tensor logical_or(Operand x, Operand y) { return binary(kLogicalOr, std::move(x), std::move(y)); }
Tensor logical_not(Operand x) { return call1(kLogicalNot, {std::move(x).take()}); }
namespace math {
Tensor logical_xor(Operand x, Operand y) { return not_equal(std::move(x), std::move(y)); }
}  // namespace math

bool all_equal(const Operand& x, const Operand& y) {
  return Operand(x).take().array() == Operand(y).take().array();
}

}  // namespace tandem
