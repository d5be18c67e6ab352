#include "tandem/ops/bitwise_ops.h"

#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::bitwise {
namespace {

OpDecl binary(const char* name, bool commutative, const char* doc,
              Exactness exact = Exactness::kNone) {
  return {.name = name,
          .inputs = "x: T, y: T",
          .outputs = "z: T",
          .attrs = "T: integers",
          .shape = shapes::broadcast_binary,
          .gradient = not_differentiable,
          .traits = {.elementwise = true,
                     .exact = exact,
                     .commutative = commutative,
                     .may_reuse = 0b11},
          .doc = doc};
}

const OpRegistration kAnd{binary("BitwiseAnd", true, "x & y, of the bits.", Exactness::kAlways)};
const OpRegistration kOr{binary("BitwiseOr", true, "x | y, of the bits.", Exactness::kAlways)};
const OpRegistration kXor{binary("BitwiseXor", true, "x ^ y, of the bits.", Exactness::kAlways)};
const OpRegistration kLeft{binary("LeftShift", false, "x << y, with y clamped to [0, bits).")};
const OpRegistration kRight{
    binary("RightShift", false, "x >> y, keeping the sign, with y clamped to [0, bits).")};
const OpRegistration kInvert{
    {.name = "Invert",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: integers",
     .shape = shapes::unchanged,
     .gradient = not_differentiable,
     .traits = {.elementwise = true, .exact = Exactness::kAlways, .may_reuse = 0b1},
     .doc = "All bits the other way round."}};

Tensor call_binary(const OpRegistration& op, Operand&& x, Operand&& y) {
  OperandPair both = take_both(std::move(x), std::move(y));
  return call1(op, {std::move(both.x), std::move(both.y)});
}

}  // namespace

Tensor bitwise_and(Operand x, Operand y) { return call_binary(kAnd, std::move(x), std::move(y)); }
Tensor bitwise_or(Operand x, Operand y) { return call_binary(kOr, std::move(x), std::move(y)); }
Tensor bitwise_xor(Operand x, Operand y) { return call_binary(kXor, std::move(x), std::move(y)); }
Tensor invert(Tensor x) { return call1(kInvert, {std::move(x)}); }
Tensor left_shift(Operand x, Operand y) { return call_binary(kLeft, std::move(x), std::move(y)); }
Tensor right_shift(Operand x, Operand y) { return call_binary(kRight, std::move(x), std::move(y)); }

}  // namespace tandem::bitwise
