// Softmax and LogSoftmax; td::nn::softmax, td::nn::log_softmax.

#include <numeric>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/activation_ops.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

void softmax_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 1);
  c.set_output(0, c.input(0));
}

void softmax_gradient(GradientContext& g) {
  const Tensor grad = g.grad();
  const Tensor& softmax = g.output();
  g.set(0, (grad - reduce_sum(grad * softmax, -1, true)) * softmax);
}

void log_softmax_gradient(GradientContext& g) {
  const Tensor grad = g.grad();
  g.set(0, grad - reduce_sum(grad, -1, true) * exp(g.output()));
}

const OpRegistration kSoftmax{{.name = "Softmax",
                               .inputs = "logits: T",
                               .outputs = "softmax: T",
                               .attrs = "T: floats",
                               .shape = softmax_shape,
                               .gradient = softmax_gradient,
                               .traits = {.may_reuse = 0b1},
                               .flops = flops::per_input<5>,
                               .doc = "exp(x) / sum(exp(x)) along the last axis."}};

const OpRegistration kLogSoftmax{{.name = "LogSoftmax",
                                  .inputs = "logits: T",
                                  .outputs = "logsoftmax: T",
                                  .attrs = "T: floats",
                                  .shape = softmax_shape,
                                  .gradient = log_softmax_gradient,
                                  .traits = {.may_reuse = 0b1},
                                  .flops = flops::per_input<5>,
                                  .doc = "x - log(sum(exp(x))) along the last axis."}};

// Applies an op that works along the last axis along another one.
Tensor along_axis(const OpRegistration& op, Tensor x, std::int64_t axis) {
  if (axis == -1) return call1(op, {std::move(x)});
  const int rank = x.rank();
  if (rank < 0) {
    throw InvalidArgumentError(
        cat("td::nn::", op.decl().name, ": an axis other than -1 needs logits of known rank."));
  }
  const int at = normalize_axis(axis, rank);
  if (at == rank - 1) return call1(op, {std::move(x)});
  std::vector<std::int64_t> swap(static_cast<std::size_t>(rank));
  std::iota(swap.begin(), swap.end(), 0);
  std::swap(swap[static_cast<std::size_t>(at)], swap.back());
  return transpose(call1(op, {transpose(std::move(x), swap)}), swap);
}

}  // namespace

namespace nn {

Tensor softmax(Tensor logits, std::int64_t axis) {
  return along_axis(kSoftmax, std::move(logits), axis);
}

Tensor log_softmax(Tensor logits, std::int64_t axis) {
  return along_axis(kLogSoftmax, std::move(logits), axis);
}

}  // namespace nn
}  // namespace tandem
