// L2Loss and InTopK; the cross entropies are in cross_entropy_ops.cpp.

#include "tandem/ops/loss_ops.h"

#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/operators.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

void l2_loss_gradient(GradientContext& g) { g.set(0, g.input(0) * g.grad()); }

void in_top_k_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 1);
  if (c.num_inputs() > 2) c.require_rank(2, 0);
  c.set_output(0, PartialShape({c.merge_dim(c.input(0).dim(0), c.input(1).dim(0),
                                            "rows of predictions and targets")}));
}

const OpRegistration kL2Loss{{.name = "L2Loss",
                              .inputs = "t: T",
                              .outputs = "output: T",
                              .attrs = "T: floats",
                              .shape = shapes::scalar,
                              .gradient = l2_loss_gradient,
                              .doc = "sum(t^2) / 2."}};

const OpRegistration kInTopK{
    {.name = "InTopK",
     .inputs = "predictions: float, targets: T",
     .outputs = "precision: bool",
     .attrs = "k: int; T: index = int32",
     .shape = in_top_k_shape,
     .gradient = not_differentiable,
     .doc = "For each row whether the target's prediction is among the k largest."}};

const OpRegistration kInTopKV2{{.name = "InTopKV2",
                                .inputs = "predictions: float, targets: T, k: T",
                                .outputs = "precision: bool",
                                .attrs = "T: index = int32",
                                .shape = in_top_k_shape,
                                .gradient = not_differentiable,
                                .traits = {.host_inputs = 0b100},
                                .doc = "InTopK with k as an input."}};

}  // namespace

namespace nn {

Tensor l2_loss(Tensor t) { return call1(kL2Loss, {std::move(t)}); }

Tensor in_top_k(Tensor targets, Tensor predictions, std::int64_t k) {
  return call1(kInTopK, {std::move(predictions), std::move(targets)}, {{"k", k}});
}

}  // namespace nn
}  // namespace tandem
