// Cross entropies of logits with class numbers or probabilities, and their gradients in one pass.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/norm/float_blocks.h"
#include "tandem/kernels/cpu/norm/softmax_rows.h"
#include "tandem/kernels/cpu/support/number_types.h"

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
double vector_cost_of_row(std::int64_t classes) { return 30 + 2.0 * static_cast<double>(classes); }

DType logits_dtype(const KernelContext& c) { return c.input(0).dtype(); }

// ---- Labels are class numbers ----

template <class Label>
std::string label_text(const Label* labels, std::int64_t count) {
  constexpr std::int64_t kMax = 100;
  std::string text;
  for (std::int64_t i = 0; i < std::min(count, kMax); ++i) text += cat(" ", labels[i]);
  return count > kMax ? text + " ..." : text;
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

template <class T, class Label>
void sparse_vector_rows(KernelContext& c, Array& loss, Array& gradient) {
  const std::int64_t classes = gradient.shape()[1];
  const T* x = c.input(0).data<T>();
  const Label* labels = c.input(1).data<Label>();
  T* losses = loss.data<T>();
  T* y = gradient.data<T>();
  c.intra_op().parallel_for(
      loss.num_elements(), vector_cost_of_row(classes), [&](std::int64_t begin, std::int64_t end) {
        Reader<T> in(c, classes);
        Writer<T> out(c, classes);
        for (std::int64_t row = begin; row < end; ++row) {
          const float* from = in.floats(x + row * classes, classes);
          float* to = out.place(y + row * classes);
          const auto label = labels[row];
          const auto [largest, sum] = softmax_row(from, to, classes);
          losses[row] = static_cast<T>(std::log(sum) - (from[label] - largest));
          to[label] -= 1;
          out.done(y + row * classes, classes);
        }
      });
}

template <bool vectors>
void sparse_cross_entropy(KernelContext& c) {
  const Shape& logits = c.input(0).shape();
  const Array& labels = c.input(1);
  check_sparse_shapes(logits, labels.shape());
  with_type<std::int32_t, std::int64_t>(labels.dtype(), [&]<class Label>() {
    check_labels(labels.data<Label>(), logits[0], logits[1]);
    Array& loss = c.allocate_output(0, labels.shape());
    Array& gradient = c.allocate_output(1, logits);
    if constexpr (vectors) {
      with_type<float, Half, BFloat16>(
          logits_dtype(c), [&]<class T>() { sparse_vector_rows<T, Label>(c, loss, gradient); });
    } else {
      with_floating(logits_dtype(c), [&]<class T>() { sparse_rows<T, Label>(c, loss, gradient); });
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

// One call: where everything lies.
struct Dense {
  std::int64_t rows;
  std::int64_t classes;
  Steps of_logits;
  Steps of_labels;
  Array* loss;
  Array* gradient;
};
Dense prepare_dense(KernelContext& c) {
  const Shape shape = dense_shape(c.input(0).shape(), c.input(1).shape());
  Array& loss = c.allocate_output(0, Shape{shape[0]});
  Array& gradient = c.allocate_output(1, shape);
  if (shape[1] == 0 && loss.num_bytes() != 0) std::memset(loss.raw_data(), 0, loss.num_bytes());
  return {shape[1] == 0 ? 0 : shape[0], shape[1], steps_of(c.input(0).shape()),
          steps_of(c.input(1).shape()), &loss,    &gradient};
}

void cross_entropy(KernelContext& c) {
  const Dense call = prepare_dense(c);
  with_floating(logits_dtype(c), [&]<class T>() {
    using W = Wide<T>;
    const T* x = c.input(0).data<T>();
    const T* labels = c.input(1).data<T>();
    T* losses = call.loss->data<T>();
    T* y = call.gradient->data<T>();
    const auto rows = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const T* from = x + row * call.of_logits.row;
        const T* target = labels + row * call.of_labels.row;
        T* to = y + row * call.classes;
        const auto [largest, sum] = normalizer(from, call.classes, call.of_logits.column);
        const W log_sum = std::log(sum);
        const W factor = 1 / sum;
        W total = 0;
        for (std::int64_t i = 0; i < call.classes; ++i) {
          const W shifted = widen(from[i * call.of_logits.column]) - largest;
          const W label = widen(target[i * call.of_labels.column]);
          total += label * (log_sum - shifted);
          to[i] = static_cast<T>(std::exp(shifted) * factor - label);
        }
        losses[row] = static_cast<T>(total);
      }
    };
    c.intra_op().parallel_for(call.rows, cost_of_row(call.classes), rows);
  });
}

const char* accepts_vectors(const KernelContext& c) {
  const Shape& logits = c.input(0).shape();
  const Shape& labels = c.input(1).shape();
  const bool plain_rows = logits.rank() == 2 && labels.rank() == 2 && logits[1] == labels[1];
  return plain_rows ? nullptr : "rows broadcast along the classes";
}

void cross_entropy_vectors(KernelContext& c) {
  const Dense call = prepare_dense(c);
  with_type<float, Half, BFloat16>(logits_dtype(c), [&]<class T>() {
    const T* x = c.input(0).data<T>();
    const T* labels = c.input(1).data<T>();
    T* losses = call.loss->data<T>();
    T* y = call.gradient->data<T>();
    const auto rows = [&](std::int64_t begin, std::int64_t end) {
      Reader<T> in(c, call.classes);
      Reader<T> in_labels(c, call.classes);
      Writer<T> out(c, call.classes);
      for (std::int64_t row = begin; row < end; ++row) {
        const float* from = in.floats(x + row * call.of_logits.row, call.classes);
        const float* target = in_labels.floats(labels + row * call.of_labels.row, call.classes);
        float* to = out.place(y + row * call.classes);
        const auto [largest, sum] = softmax_row(from, to, call.classes);
        losses[row] = static_cast<T>(
            cross_entropy_row(from, target, to, call.classes, largest, std::log(sum)));
        out.done(y + row * call.classes, call.classes);
      }
    };
    c.intra_op().parallel_for(call.rows, vector_cost_of_row(call.classes), rows);
  });
}

constexpr DTypeSet kVectorTypes{DType::kHalf, DType::kBFloat16, DType::kFloat};

const KernelRegistration kSparse{{.op = "SparseSoftmaxCrossEntropyWithLogits",
                                  .types = {{"T", kFloatTypes}, {"Tlabels", kIndexTypes}},
                                  .run = sparse_cross_entropy<false>}};
const KernelRegistration kDense{
    {.op = "SoftmaxCrossEntropyWithLogits", .types = {{"T", kFloatTypes}}, .run = cross_entropy}};
const KernelRegistration kVectorSparse{{.op = "SparseSoftmaxCrossEntropyWithLogits",
                                        .name = "vectors",
                                        .types = {{"T", kVectorTypes}, {"Tlabels", kIndexTypes}},
                                        .priority = 10,
                                        .run = sparse_cross_entropy<true>}};
const KernelRegistration kVectorDense{{.op = "SoftmaxCrossEntropyWithLogits",
                                       .name = "vectors",
                                       .types = {{"T", kVectorTypes}},
                                       .priority = 10,
                                       .run = cross_entropy_vectors,
                                       .accepts = accepts_vectors}};

}  // namespace
}  // namespace tandem::cpu
