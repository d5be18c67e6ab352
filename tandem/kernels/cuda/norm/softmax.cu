// Softmax along the last axis, and the cross entropies that are made of it. A block for each row:
// its largest element, the sum of the exponentials, the results.

#include "tandem/kernels/cuda/support/broadcast.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"
#include "tandem/kernels/cuda/support/warp.h"

namespace tandem::cuda {
namespace {

template <class S>
struct Larger {
  TANDEM_DEVICE S operator()(S a, S b) const { return a != a ? a : (b != b ? b : (a < b ? b : a)); }
};
template <class S>
struct Plus {
  TANDEM_DEVICE S operator()(S a, S b) const { return a + b; }
};

template <class T>
TANDEM_KERNEL softmax_kernel(const T* x, T* y, std::int64_t rows, std::int64_t n, bool logarithm) {
  using S = Compute<T>;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* from = x + row * n;
    S most = -std::numeric_limits<S>::infinity();
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      most = Larger<S>()(most, load(from[i]));
    }
    most = block_reduce_all(most, -std::numeric_limits<S>::infinity(), Larger<S>());
    S sum = S(0);
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x)
      sum += std::exp(load(from[i]) - most);
    sum = block_reduce_all(sum, S(0), Plus<S>());
    const S shift = std::log(sum);
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      const S value = load(from[i]) - most;
      y[row * n + i] = store<T>(logarithm ? value - shift : std::exp(value) / sum);
    }
  }
}

// The losses and the gradients by the logits. A label out of range gives NaN, as on TensorFlow's
// GPUs, where reading it back would hold up the device.
template <class T, class Label>
TANDEM_KERNEL sparse_cross_entropy_kernel(const T* x, const Label* labels, T* losses, T* gradients,
                                          std::int64_t rows, std::int64_t n) {
  using S = Compute<T>;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* from = x + row * n;
    S most = -std::numeric_limits<S>::infinity();
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      most = Larger<S>()(most, load(from[i]));
    }
    most = block_reduce_all(most, -std::numeric_limits<S>::infinity(), Larger<S>());
    S sum = S(0);
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x)
      sum += std::exp(load(from[i]) - most);
    sum = block_reduce_all(sum, S(0), Plus<S>());
    const auto label = static_cast<std::int64_t>(labels[row]);
    const bool known = label >= 0 && label < n;
    const S nan = std::numeric_limits<S>::quiet_NaN();
    if (threadIdx.x == 0) {
      losses[row] = store<T>(known ? std::log(sum) - (load(from[label]) - most) : nan);
    }
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      const S p = std::exp(load(from[i]) - most) / sum;
      gradients[row * n + i] = store<T>(known ? p - (i == label ? S(1) : S(0)) : nan);
    }
  }
}

// How far apart rows and columns are of a value that broadcasts to two axes.
struct Steps {
  std::int64_t row, column;
};

template <class T>
TANDEM_KERNEL cross_entropy_kernel(const T* x, Steps by_x, const T* labels, Steps by_labels,
                                   T* losses, T* gradients, std::int64_t rows, std::int64_t n) {
  using S = Compute<T>;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* from = x + row * by_x.row;
    const T* of_row = labels + row * by_labels.row;
    S most = -std::numeric_limits<S>::infinity();
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      most = Larger<S>()(most, load(from[i * by_x.column]));
    }
    most = block_reduce_all(most, -std::numeric_limits<S>::infinity(), Larger<S>());
    S sum = S(0);
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x)
      sum += std::exp(load(from[i * by_x.column]) - most);
    sum = block_reduce_all(sum, S(0), Plus<S>());
    const S logarithm = std::log(sum);
    S loss = S(0);
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      const S value = load(from[i * by_x.column]) - most,
              label = load(of_row[i * by_labels.column]);
      // No label, no loss, however small the probability.
      if (label != S(0)) loss += label * (logarithm - value);
      gradients[row * n + i] = store<T>(std::exp(value) / sum - label);
    }
    loss = block_reduce_all(loss, S(0), Plus<S>());
    if (threadIdx.x == 0) losses[row] = store<T>(loss);
  }
}

// Whether fewer than k of the row's values are larger than the target's; false where a value that
// matters is not finite.
template <class Index>
TANDEM_KERNEL in_top_kernel(const float* x, const Index* targets, bool* y, std::int64_t rows,
                            std::int64_t n, std::int64_t k) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float* from = x + row * n;
    const auto target = static_cast<std::int64_t>(targets[row]);
    const bool known = target >= 0 && target < n;
    const float value = known ? from[target] : 0.0f;
    std::int64_t larger = 0, strange = known && value - value == 0.0f ? 0 : 1;
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      const float other = from[i];
      if (other - other != 0.0f) ++strange;
      if (other > value) ++larger;
    }
    larger = block_reduce_all(larger, std::int64_t{0}, Plus<std::int64_t>());
    strange = block_reduce_all(strange, std::int64_t{0}, Plus<std::int64_t>());
    if (threadIdx.x == 0) y[row] = strange == 0 && larger < k;
  }
}

void in_top(KernelCall& call, std::int64_t k) {
  const TensorView x = call.input(0), targets = call.input(1);
  if (x.rank() != 2) refuse("predictions must be 2-dimensional");
  if (targets.rank() != 1) refuse("targets must be 1-dimensional");
  if (x.sizes[0] != targets.count) {
    refuse("First dimension of predictions " + std::to_string(x.sizes[0]) +
           " must match length of targets " + std::to_string(targets.count));
  }
  const TensorView y = call.allocate_output(0, targets.sizes);
  if (y.count == 0) return;
  visit_index(targets.type, [&](auto tag) {
    using Index = typename decltype(tag)::type;
    TANDEM_LAUNCH(in_top_kernel<Index>,
                  rows_shape(y.count, x.sizes[1] > 128 ? default_block() : 32), 0, x.as<float>(),
                  targets.as<Index>(), y.as<bool>(), y.count, x.sizes[1], k);
  });
}

Steps steps_of(const Sizes& sizes) {
  const std::int64_t columns = sizes.empty() ? 1 : sizes.back();
  const std::int64_t rows = sizes.size() < 2 ? 1 : sizes[0];
  return {rows == 1 ? 0 : columns, columns == 1 ? 0 : 1};
}

void softmax(KernelCall& call, bool logarithm) {
  const TensorView x = call.input(0);
  if (x.rank() < 1) refuse("logits must have >= 1 dimension");
  const TensorView y = call.allocate_output(0, x.sizes);
  if (y.count == 0) return;
  const std::int64_t n = x.sizes.back();
  visit_floating(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(softmax_kernel<T>, rows_shape(x.count / n, n > 128 ? default_block() : 32), 0,
                  x.as<T>(), y.as<T>(), x.count / n, n, logarithm);
  });
}

}  // namespace

void norm_softmax(KernelCall& call) { softmax(call, false); }
void norm_log_softmax(KernelCall& call) { softmax(call, true); }

void norm_sparse_cross_entropy(KernelCall& call) {
  const TensorView x = call.input(0), labels = call.input(1);
  if (x.rank() != 2) refuse("logits must be 2-D");
  if (labels.rank() != 1 || labels.sizes[0] != x.sizes[0]) {
    refuse("labels must be 1-D, and logits and labels must have the same first dimension");
  }
  const std::int64_t rows = x.sizes[0], n = x.sizes[1];
  if (n == 0)
    refuse("Must have at least one class, but got logits shape [" + std::to_string(rows) + ",0]");
  const TensorView losses = call.allocate_output(0, {rows}),
                   gradients = call.allocate_output(1, x.sizes);
  if (rows == 0) return;
  visit_floating(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto run = [&](auto label) {
      using Label = typename decltype(label)::type;
      TANDEM_LAUNCH((sparse_cross_entropy_kernel<T, Label>),
                    rows_shape(rows, n > 128 ? default_block() : 32), 0, x.as<T>(),
                    labels.as<Label>(), losses.as<T>(), gradients.as<T>(), rows, n);
    };
    if (labels.type == Type::kInt32) return run(Tag<std::int32_t>());
    if (labels.type == Type::kInt64) return run(Tag<std::int64_t>());
    no_kernel_for(labels.type);
  });
}

void norm_cross_entropy(KernelCall& call) {
  const TensorView x = call.input(0), labels = call.input(1);
  const Sizes sizes = broadcast_sizes(x.sizes, labels.sizes);
  if (sizes.size() != 2) {
    refuse("logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional");
  }
  const TensorView losses = call.allocate_output(0, {sizes[0]}),
                   gradients = call.allocate_output(1, sizes);
  if (sizes[0] == 0) return;
  visit_floating(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(cross_entropy_kernel<T>,
                  rows_shape(sizes[0], sizes[1] > 128 ? default_block() : 32), 0, x.as<T>(),
                  steps_of(x.sizes), labels.as<T>(), steps_of(labels.sizes), losses.as<T>(),
                  gradients.as<T>(), sizes[0], sizes[1]);
  });
}

void norm_in_top_k(KernelCall& call) { in_top(call, call.attr_int("k")); }
void norm_in_top_k_v2(KernelCall& call) {
  const TensorView k = call.input(2);
  if (k.rank() != 0) refuse("k must be 0-D");
  in_top(call, k.host_scalar("k"));
}

}  // namespace tandem::cuda
