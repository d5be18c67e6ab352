// Cross entropies of logits with class numbers or probabilities, and their gradients in one pass.

#include <algorithm>
#include <cmath>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/number_types.h"

namespace tandem::cpu {
namespace {

template <class W>
struct Normalizer {
  W largest;  // of the logits
  W sum;      // of exp(logit - largest)
};

// `step` is 0 where a single logit stands for a whole row.
template <class T>
Normalizer<Wide<T>> normalizer(const T* logits, std::int64_t n, std::int64_t step) {
  using W = Wide<T>;
  W largest = widen(logits[0]);
  for (std::int64_t i = 1; i < n; ++i) largest = std::max(largest, widen(logits[i * step]));
  W sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(widen(logits[i * step]) - largest);
  return {largest, sum};
}

double cost_of_row(std::int64_t classes) { return 15.0 * static_cast<double>(classes); }

// ---- Labels are class numbers ----

template <class Label>
std::string label_text(const Label* labels, std::int64_t count) {
  constexpr std::int64_t kMost = 100;
  std::string text;
  for (std::int64_t i = 0; i < std::min(count, kMost); ++i) text += cat(" ", labels[i]);
  return count > kMost ? text + " ..." : text;
}

template <class Label>
void check_labels(const Label* labels, std::int64_t count, std::int64_t classes) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (labels[i] < 0 || labels[i] >= classes) {
      throw InvalidArgumentError(cat("Received a label value of ", labels[i],
                                     " which is outside the valid range of [0, ", classes,
                                     ").  Label values:", label_text(labels, count)));
    }
  }
}

void check_sparse_shapes(const Shape& logits, const Shape& labels) {
  if (logits.rank() != 2) {
    throw InvalidArgumentError(cat("logits must be 2-D, but got shape ", logits));
  }
  if (labels.rank() != 1) {
    throw InvalidArgumentError(cat("labels must be 1-D, but got shape ", labels));
  }
  if (labels[0] != logits[0]) {
    throw InvalidArgumentError(
        cat("logits and labels must have the same first dimension, got logits shape ", logits,
            " and labels shape ", labels));
  }
  if (logits[0] > 0 && logits[1] == 0) {
    throw InvalidArgumentError(cat("Must have at least one class, but got logits shape ", logits));
  }
}

template <class T, class Label>
void sparse_rows(KernelContext& c, Array& loss, Array& gradient) {
  using W = Wide<T>;
  const std::int64_t classes = gradient.shape()[1];
  const T* x = c.input(0).data<T>();
  const Label* labels = c.input(1).data<Label>();
  T* losses = loss.data<T>();
  T* y = gradient.data<T>();
  c.intra_op().parallel_for(
      loss.num_elements(), cost_of_row(classes), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const T* from = x + row * classes;
          T* to = y + row * classes;
          const std::int64_t label = labels[row];
          const auto [largest, sum] = normalizer(from, classes, 1);
          losses[row] = static_cast<T>(std::log(sum) - (widen(from[label]) - largest));
          const W factor = 1 / sum;
          for (std::int64_t i = 0; i < classes; ++i) {
            const W p = std::exp(widen(from[i]) - largest) * factor;
            to[i] = static_cast<T>(i == label ? p - 1 : p);
          }
        }
      });
}

void sparse_cross_entropy(KernelContext& c) {
  const Shape& logits = c.input(0).shape();
  const Array& labels = c.input(1);
  check_sparse_shapes(logits, labels.shape());
  const bool narrow = labels.dtype() == DType::kInt32;
  if (narrow) {
    check_labels(labels.data<std::int32_t>(), logits[0], logits[1]);
  } else {
    check_labels(labels.data<std::int64_t>(), logits[0], logits[1]);
  }
  Array& loss = c.allocate_output(0, labels.shape());
  Array& gradient = c.allocate_output(1, logits);
  with_floating(c.input(0).dtype(), [&]<class T>() {
    if (narrow) {
      sparse_rows<T, std::int32_t>(c, loss, gradient);
    } else {
      sparse_rows<T, std::int64_t>(c, loss, gradient);
    }
  });
}

// ---- Labels are probabilities ----

Shape dense_shape(const Shape& logits, const Shape& labels) {
  Shape out;
  try {
    out = broadcast(logits, labels);
  } catch (const InvalidArgumentError&) {
    throw InvalidArgumentError(cat("logits and labels must be broadcastable: logits_size=", logits,
                                   " labels_size=", labels));
  }
  if (out.rank() != 2) {
    throw InvalidArgumentError(
        cat("logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional: "
            "logits_size=",
            logits, " labels_size=", labels));
  }
  return out;
}

// How far apart rows and columns of a value are that broadcasts to two axes.
struct Steps {
  std::int64_t row;
  std::int64_t column;
};
Steps steps_of(const Shape& shape) {
  const std::int64_t columns = shape.rank() < 1 ? 1 : shape[shape.rank() - 1];
  const std::int64_t rows = shape.rank() < 2 ? 1 : shape[0];
  return {rows == 1 ? 0 : columns, columns == 1 ? 0 : 1};
}

void cross_entropy(KernelContext& c) {
  const Shape shape = dense_shape(c.input(0).shape(), c.input(1).shape());
  Array& loss = c.allocate_output(0, Shape{shape[0]});
  Array& gradient = c.allocate_output(1, shape);
  const std::int64_t classes = shape[1];
  const Steps of_x = steps_of(c.input(0).shape());
  const Steps of_labels = steps_of(c.input(1).shape());
  with_floating(c.input(0).dtype(), [&]<class T>() {
    using W = Wide<T>;
    const T* x = c.input(0).data<T>();
    const T* labels = c.input(1).data<T>();
    T* losses = loss.data<T>();
    T* y = gradient.data<T>();
    if (classes == 0) return std::fill(losses, losses + shape[0], T());
    c.intra_op().parallel_for(
        shape[0], cost_of_row(classes), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            const T* from = x + row * of_x.row;
            const T* target = labels + row * of_labels.row;
            T* to = y + row * classes;
            const auto [largest, sum] = normalizer(from, classes, of_x.column);
            const W log_sum = std::log(sum);
            const W factor = 1 / sum;
            W total = 0;
            for (std::int64_t i = 0; i < classes; ++i) {
              const W shifted = widen(from[i * of_x.column]) - largest;
              const W label = widen(target[i * of_labels.column]);
              total += label * (log_sum - shifted);
              to[i] = static_cast<T>(std::exp(shifted) * factor - label);
            }
            losses[row] = static_cast<T>(total);
          }
        });
  });
}

const KernelRegistration kSparse{{.op = "SparseSoftmaxCrossEntropyWithLogits",
                                  .types = {{"T", kFloatTypes}, {"Tlabels", kIndexTypes}},
                                  .run = sparse_cross_entropy}};
const KernelRegistration kDense{
    {.op = "SoftmaxCrossEntropyWithLogits", .types = {{"T", kFloatTypes}}, .run = cross_entropy}};

}  // namespace
}  // namespace tandem::cpu
