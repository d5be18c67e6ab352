// Cross entropies of logits; td::nn::…cross_entropy_with_logits.

#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/broadcast_gradient.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/loss_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/pad_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::op1;

void dense_shape(InferenceContext& c) {
  const PartialShape& logits = c.input(0);
  const PartialShape& labels = c.input(1);
  const PartialShape two = PartialShape::unknown_of_rank(2);
  PartialShape out = two;
  if (logits.has_rank() && labels.has_rank()) {
    out = broadcast(logits, labels);
    if (out.rank() != 2) {
      c.fail(
          cat("logits and labels must be either 2-dimensional, or broadcasted to be "
              "2-dimensional: ",
              logits, " and ", labels));
    }
  }
  c.set_output(0, PartialShape({out.dim(0)}));
  c.set_output(1, out);
}

void sparse_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 1);
  const std::int64_t rows =
      c.merge_dim(c.input(0).dim(0), c.input(1).dim(0), "rows of logits and labels");
  c.set_output(0, PartialShape({rows}));
  c.set_output(1, PartialShape({rows, c.input(0).dim(1)}));
}

// The logits with as many classes as the result has: where they have one class and the labels more,
// that one is repeated, and softmax and its logarithm are of the repeated ones.
Tensor logits_of_classes(const GradientContext& g) {
  const PartialShape logits = g.input(0).partial_shape(), all = g.output(1).partial_shape();
  if (logits.has_rank() && all.has_rank() && logits.dim(-1) == all.dim(-1) && all.dim(-1) >= 0) {
    return g.input(0);
  }
  return broadcast_to(g.input(0), shape(g.output(1)));
}

// Towards the logits: the loss has a gradient ready in output 1, whose own gradient is softmax's.
Tensor towards_logits(GradientContext& g) {
  Tensor result = expand_dims(g.grad(0), -1) * g.output(1);
  if (const Tensor& second = g.grad_or_undefined(1); second.defined()) {
    const Tensor softmax = op1("Softmax", {logits_of_classes(g)});
    result = result + (second - reduce_sum(second * softmax, -1, true)) * softmax;
  }
  return result;
}

void dense_gradient(GradientContext& g) {
  if (g.needs(0)) g.set(0, sum_to_shape_of(towards_logits(g), g.input(0)));
  if (g.needs(1)) {
    Tensor result = expand_dims(g.grad(0), -1) * -op1("LogSoftmax", {logits_of_classes(g)});
    if (const Tensor& second = g.grad_or_undefined(1); second.defined()) result = result - second;
    g.set(1, sum_to_shape_of(std::move(result), g.input(1)));
  }
}

void sparse_gradient(GradientContext& g) {
  if (g.needs(0)) g.set(0, towards_logits(g));
}

const OpRegistration kDense{
    {.name = "SoftmaxCrossEntropyWithLogits",
     .inputs = "features: T, labels: T",
     .outputs = "loss: T, backprop: T",
     .attrs = "T: floats",
     .shape = dense_shape,
     .gradient = dense_gradient,
     .flops = flops::per_input<8>,
     .doc = "For each row -sum(labels * log_softmax(features)), and its gradient towards the "
            "features. The two inputs broadcast to two axes."}};

const OpRegistration kSparse{
    {.name = "SparseSoftmaxCrossEntropyWithLogits",
     .inputs = "features: T, labels: Tlabels",
     .outputs = "loss: T, backprop: T",
     .attrs = "T: floats; Tlabels: index = int64",
     .shape = sparse_shape,
     .gradient = sparse_gradient,
     .flops = flops::per_input<8>,
     .doc = "For each row -log_softmax(features)[label], and its gradient towards the features. "
            "Labels out of range are an error."}};

bool is_short(DType dtype) { return dtype == DType::kHalf || dtype == DType::kBFloat16; }

// All axes but the last as one.
Tensor as_matrix(Tensor x) {
  const PartialShape s = x.partial_shape();
  if (s.rank() == 2) return x;
  if (s.is_fully_known()) {
    const Shape full = s.to_shape();
    return reshape(std::move(x), {full.product(0, full.rank() - 1), full[full.rank() - 1]});
  }
  const Tensor sizes = shape(x, int64);
  const Tensor columns = index(sizes, {Slice(-1, none)});
  const Tensor rows = reduce_prod(index(sizes, {Slice(none, -1)}), {}, true);
  return reshape(std::move(x), concat({rows, columns}, 0));
}

// The sizes of all axes but the last.
Tensor outer_sizes(const Tensor& x) {
  if (const auto dims = internal::known_dims(x)) {
    return internal::int_vector({dims->begin(), dims->end() - 1}, int64);
  }
  return index(shape(x, int64), {Slice(none, -1)});
}

Tensor with_axis_last(Tensor x, int axis) {
  const int rank = x.rank();
  if (axis == rank - 1) return x;
  std::vector<std::int64_t> order;
  for (int i = 0; i < rank; ++i) {
    if (i != axis) order.push_back(i);
  }
  order.push_back(axis);
  return transpose(std::move(x), order);
}

}  // namespace

namespace nn {

Tensor softmax_cross_entropy_with_logits(Tensor labels, Tensor logits, std::int64_t axis) {
  const DType dtype = logits.dtype();
  if (is_short(dtype)) {
    return cast(softmax_cross_entropy_with_logits(cast(std::move(labels), float32),
                                                  cast(std::move(logits), float32), axis),
                dtype);
  }
  if (axis != -1) {
    const int rank = logits.rank();
    if (rank < 0 || labels.rank() < 0) {
      throw InvalidArgumentError(
          "td::nn::softmax_cross_entropy_with_logits: an axis other than -1 needs logits and "
          "labels of known rank.");
    }
    const int at = normalize_axis(axis, rank);
    if (labels.rank() != rank) {
      throw InvalidArgumentError(cat("td::nn::softmax_cross_entropy_with_logits: labels of shape ",
                                     labels.partial_shape(), " and logits of shape ",
                                     logits.partial_shape(), " must have the same rank."));
    }
    logits = with_axis_last(std::move(logits), at);
    labels = with_axis_last(std::move(labels), at);
  }
  if (logits.rank() == 2 && labels.rank() == 2) {
    return call(kDense, {std::move(logits), std::move(labels)})[0];
  }
  if (logits.rank() == 0) {
    throw InvalidArgumentError(
        "td::nn::softmax_cross_entropy_with_logits: logits cannot be scalars.");
  }
  const PartialShape of_logits = logits.partial_shape();
  const PartialShape of_labels = labels.partial_shape();
  if (!(of_logits == of_labels && of_logits.is_fully_known())) {
    const Tensor sizes = broadcast_dynamic_shape(shape(logits, int64), shape(labels, int64));
    logits = broadcast_to(std::move(logits), sizes);
    labels = broadcast_to(std::move(labels), sizes);
  }
  const Tensor sizes = outer_sizes(logits);
  const auto loss = call(kDense, {as_matrix(std::move(logits)), as_matrix(std::move(labels))});
  return reshape(loss[0], sizes);
}

Tensor sparse_softmax_cross_entropy_with_logits(Tensor labels, Tensor logits) {
  const PartialShape of_logits = logits.partial_shape();
  const PartialShape of_labels = labels.partial_shape();
  if (of_logits.has_rank() && of_labels.has_rank()) {
    if (of_logits.rank() == 0) {
      throw InvalidArgumentError(cat("Logits cannot be scalars - received shape ", of_logits, "."));
    }
    if (of_labels.rank() != of_logits.rank() - 1) {
      throw InvalidArgumentError(cat("Rank mismatch: Rank of labels (received ", of_labels.rank(),
                                     ") should equal rank of logits minus 1 (received ",
                                     of_logits.rank() - 1, ")."));
    }
    std::vector<std::int64_t> rows = of_logits.dims();
    rows.pop_back();
    if (!of_labels.is_compatible(PartialShape(std::move(rows)))) {
      throw InvalidArgumentError(
          cat("The shape of labels must equal that of logits but for the last dimension. Received: "
              "labels ",
              of_labels, " and logits ", of_logits));
    }
  }
  const DType dtype = logits.dtype();
  if (is_short(dtype)) logits = cast(std::move(logits), float32);
  Tensor loss;
  if (of_logits.rank() == 2) {
    loss = call(kSparse, {std::move(logits), std::move(labels)})[0];
  } else {
    const Tensor sizes = outer_sizes(logits);
    loss = call(kSparse, {as_matrix(std::move(logits)), reshape(std::move(labels), {-1})})[0];
    loss = reshape(std::move(loss), sizes);
  }
  return is_short(dtype) ? cast(std::move(loss), dtype) : loss;
}

// With where() rather than max() and abs(), whose gradients at 0 would not add up to sigmoid's.
Tensor sigmoid_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits) {
  if (!labels.partial_shape().is_compatible(logits.partial_shape())) {
    throw InvalidArgumentError(cat("`logits` and `labels` must have the same shape, received (",
                                   logits.partial_shape(), " vs ", labels.partial_shape(), ")."));
  }
  const Tensor zeros = zeros_like(logits);
  const Tensor positive = logits >= zeros;
  const Tensor relu = where(positive, logits, zeros);
  const Tensor minus_abs = where(positive, -logits, logits);
  return (relu - logits * labels) + math::log1p(exp(minus_abs));
}

}  // namespace nn
}  // namespace tandem
