#include "tandem/ops/comparison_ops.h"

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/call_binary.h"

namespace tandem {
namespace {

using internal::call_binary;

// With incompatible_shape_error=false values of shapes that do not broadcast are simply not equal:
// a scalar. An unknown size then says nothing of the result's, of which only the rank is taken for
// granted, as TensorFlow does.
void equality_shape(InferenceContext& c) {
  if (c.attr<bool>("incompatible_shape_error")) return shapes::broadcast_binary(c);
  const PartialShape &x = c.input(0), &y = c.input(1);
  if (!x.has_rank() || !y.has_rank()) return;
  try {
    const PartialShape both = broadcast(x, y);
    const bool known = x.is_fully_known() && y.is_fully_known();
    c.set_output(0, known ? both : PartialShape::unknown_of_rank(both.rank()));
  } catch (const InvalidArgumentError&) {
    c.set_output(0, PartialShape::scalar());
  }
}

void same_shapes(InferenceContext& c) { c.set_output(0, c.input(0).merge(c.input(1))); }

constexpr OpDecl comparison(const char* name, const char* attrs, bool commutative, ShapeFn shape,
                            const char* doc) {
  return {.name = name,
          .inputs = "x: T, y: T",
          .outputs = "z: bool",
          .attrs = attrs,
          .shape = shape,
          .gradient = not_differentiable,
          .traits = {.elementwise = true,
                     .exact = Exactness::kAlways,
                     .commutative = commutative,
                     .may_reuse = 0b11},
          .doc = doc};
}

constexpr const char* kAny = "T: type; incompatible_shape_error: bool = true";
constexpr const char* kOrdered =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}";

const OpRegistration kEqual(
    comparison("Equal", kAny, true, equality_shape,
               "x == y, broadcast. Shapes that do not fit are an error, or, with "
               "incompatible_shape_error=false, one false."));
const OpRegistration kNotEqual(
    comparison("NotEqual", kAny, true, equality_shape,
               "x != y, broadcast. Shapes that do not fit are an error, or, with "
               "incompatible_shape_error=false, one true."));
const OpRegistration kLess(comparison("Less", kOrdered, false, shapes::broadcast_binary,
                                      "x < y, broadcast."));
const OpRegistration kLessEqual(comparison("LessEqual", kOrdered, false, shapes::broadcast_binary,
                                           "x <= y, broadcast."));
const OpRegistration kGreater(comparison("Greater", kOrdered, false, shapes::broadcast_binary,
                                         "x > y, broadcast."));
const OpRegistration kGreaterEqual(comparison("GreaterEqual", kOrdered, false,
                                              shapes::broadcast_binary, "x >= y, broadcast."));
const OpRegistration kApproximateEqual(
    comparison("ApproximateEqual",
               "T: {float, double, int32, uint8, int16, int8, complex64, int64, "
               "qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, "
               "complex128, half, uint32, uint64}; tolerance: float = 1e-05",
               true, same_shapes, "|x - y| < tolerance; the shapes must be equal."));

constexpr OpDecl logic(const char* name, const char* doc) {
  return {.name = name,
          .inputs = "x: bool, y: bool",
          .outputs = "z: bool",
          .shape = shapes::broadcast_binary,
          .gradient = not_differentiable,
          .traits = {.elementwise = true,
                     .exact = Exactness::kAlways,
                     .commutative = true,
                     .may_reuse = 0b11},
          .doc = doc};
}
const OpRegistration kLogicalAnd(logic("LogicalAnd", "x and y, broadcast."));
const OpRegistration kLogicalOr(logic("LogicalOr", "x or y, broadcast."));
const OpRegistration kLogicalNot{
    {.name = "LogicalNot",
     .inputs = "x: bool",
     .outputs = "y: bool",
     .shape = shapes::unchanged,
     .gradient = not_differentiable,
     .traits = {.elementwise = true, .exact = Exactness::kAlways, .may_reuse = 0b1},
     .doc = "true where x is false."}};

}  // namespace

Tensor equal(Operand x, Operand y) { return call_binary(kEqual, std::move(x), std::move(y)); }
Tensor not_equal(Operand x, Operand y) {
  return call_binary(kNotEqual, std::move(x), std::move(y));
}
Tensor less(Operand x, Operand y) { return call_binary(kLess, std::move(x), std::move(y)); }
Tensor less_equal(Operand x, Operand y) {
  return call_binary(kLessEqual, std::move(x), std::move(y));
}
Tensor greater(Operand x, Operand y) { return call_binary(kGreater, std::move(x), std::move(y)); }
Tensor greater_equal(Operand x, Operand y) {
  return call_binary(kGreaterEqual, std::move(x), std::move(y));
}
Tensor logical_and(Operand x, Operand y) {
  return call_binary(kLogicalAnd, std::move(x), std::move(y));
}
Tensor logical_or(Operand x, Operand y) {
  return call_binary(kLogicalOr, std::move(x), std::move(y));
}
Tensor logical_not(Operand x) { return call1(kLogicalNot, {std::move(x).take()}); }

bool all_equal(const Operand& x, const Operand& y) {
  const OperandPair both = take_both(Operand(x), Operand(y));
  return both.x.array() == both.y.array();
}

namespace math {
Tensor logical_xor(Operand x, Operand y) {
  OperandPair both = take_both(std::move(x), std::move(y));
  const Tensor either = logical_or(both.x, both.y);
  return logical_and(either, logical_not(logical_and(std::move(both.x), std::move(both.y))));
}
Tensor approximate_equal(Operand x, Operand y, float tolerance) {
  OperandPair both = take_both(std::move(x), std::move(y));
  return call1(kApproximateEqual, {std::move(both.x), std::move(both.y)},
               {{"tolerance", tolerance}});
}
}  // namespace math

}  // namespace tandem
