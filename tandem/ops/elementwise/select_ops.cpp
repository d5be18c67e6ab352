// Choice by a condition: the ops behind td::where.

#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/ops/broadcast_gradient.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

void select_v2_shape(InferenceContext& c) {
  c.set_output(0, broadcast(broadcast(c.input(0), c.input(1)), c.input(2)));
}

// Each side has the gradient where it was chosen and zero elsewhere.
void select_v2_grad(GradientContext& g) {
  const Tensor& condition = g.input(0);
  const Tensor zero = internal::int_scalar(0, g.output().dtype());
  if (g.needs(1)) g.set(1, sum_to_shape_of(where(condition, g.grad(), zero), g.input(1)));
  if (g.needs(2)) g.set(2, sum_to_shape_of(where(condition, zero, g.grad()), g.input(2)));
}

const OpRegistration kSelectV2{
    {.name = "SelectV2",
     .inputs = "condition: bool, t: T, e: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .shape = select_v2_shape,
     .gradient = select_v2_grad,
     .traits = {.elementwise = true, .exact = Exactness::kAlways, .may_reuse = 0b110},
     .doc = "t where the condition holds, else e; all three broadcast together."}};

void select_shape(InferenceContext& c) {
  const PartialShape& condition = c.input(0);
  PartialShape out = c.input(1).merge(c.input(2));
  if (condition.has_rank() && condition.rank() > 1) {
    out = out.merge(condition);
  } else if (condition.has_rank() && condition.rank() == 1 && out.has_rank()) {
    if (out.rank() == 0)
      c.fail(cat("a condition of shape ", condition, " cannot choose between scalars."));
    out.set_dim(0, c.merge_dim(out.dim(0), condition.dim(0),
                               "the size of the condition and the first axis"));
  }
  c.set_output(0, std::move(out));
}

void select_grad(GradientContext& g) {
  const Tensor& condition = g.input(0);
  const Tensor zeros = internal::op1("ZerosLike", {g.input(1)});
  if (g.needs(1)) g.set(1, internal::op1("Select", {condition, g.grad(), zeros}));
  if (g.needs(2)) g.set(2, internal::op1("Select", {condition, zeros, g.grad()}));
}

const OpRegistration kSelect{
    {.name = "Select",
     .inputs = "condition: bool, t: T, e: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .shape = select_shape,
     .gradient = select_grad,
     .traits = {.may_reuse = 0b110},
     .doc = "t where the condition holds, else e, which must have t's shape; a condition "
            "that is a vector chooses rows."}};

}  // namespace

Tensor where(Tensor condition, Operand x, Operand y) {
  OperandPair values = take_both(std::move(x), std::move(y));
  return call1(kSelectV2, {std::move(condition), std::move(values.x), std::move(values.y)});
}

}  // namespace tandem
