// Factors, inverses, solutions and determinants of small matrices: a block of threads for each, in
// double. What is singular is found when the host reads how it went.

#include <string>

#include "tandem/kernels/cuda/support/broadcast.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

constexpr unsigned kThreads = 64;

// The lower factor, in place; what is above it becomes zero.
template <class T>
TANDEM_KERNEL cholesky_kernel(const T* a, T* l, std::int64_t n, std::int64_t batch) {
  const std::int64_t thread = threadIdx.x, threads = blockDim.x;
  for (std::int64_t b = blockIdx.x; b < batch; b += gridDim.x) {
    const T* from = a + b * n * n;
    T* to = l + b * n * n;
    for (std::int64_t i = thread; i < n * n; i += threads) to[i] = i % n > i / n ? T(0) : from[i];
    __syncthreads();
    for (std::int64_t k = 0; k < n; ++k) {
      if (thread == 0) {
        to[k * n + k] = std::sqrt(to[k * n + k]);
      }
      __syncthreads();
      for (std::int64_t i = k + 1 + thread; i < n; i += threads) to[i * n + k] /= to[k * n + k];
      __syncthreads();
      const std::int64_t rest = n - k - 1;
      for (std::int64_t e = thread; e < rest * rest; e += threads) {
        const std::int64_t i = k + 1 + e / rest, j = k + 1 + e % rest;
        if (j <= i) to[i * n + j] -= to[i * n + k] * to[j * n + k];
      }
      __syncthreads();
    }
  }
}

// A column of the result by substitution, row by row.
template <class T>
TANDEM_KERNEL triangular_solve_kernel(const T* a, const T* rhs, T* x, std::int64_t n,
                                      std::int64_t m, std::int64_t count, Strides<2> batches,
                                      bool lower, bool transposed) {
  const bool forward = lower != transposed;
  for (auto e = first_index<std::int64_t>(); e < count; e += index_step<std::int64_t>()) {
    const std::int64_t b = e / m, column = e % m;
    std::int64_t at[2];
    batches.offsets(b, at);
    const T* matrix = a + at[0];
    const T* right = rhs + at[1] + column;
    T* to = x + b * n * m + column;
    for (std::int64_t step = 0; step < n; ++step) {
      const std::int64_t i = forward ? step : n - 1 - step;
      Sum<T> sum = static_cast<Sum<T>>(right[i * m]);
      for (std::int64_t done = 0; done < step; ++done) {
        const std::int64_t j = forward ? done : n - 1 - done;
        sum -= static_cast<Sum<T>>(matrix[transposed ? j * n + i : i * n + j]) *
               static_cast<Sum<T>>(to[j * m]);
      }
      to[i * m] = static_cast<T>(sum / static_cast<Sum<T>>(matrix[i * n + i]));
    }
  }
}

// Gauss' elimination with pivots by rows of [matrix, right sides], in `work`; of the upper triangle
// alone where there are no right sides. `right` null: the unit matrix, if m > 0.
template <class T>
TANDEM_KERNEL eliminate_kernel(const T* a, const T* right, T* x, T* sign, T* determinant,
                               double* work, std::int64_t n, std::int64_t m, std::int64_t batch,
                               bool transposed, bool logarithm, int* failed) {
  const std::int64_t thread = threadIdx.x, threads = blockDim.x, width = n + m;
  for (std::int64_t b = blockIdx.x; b < batch; b += gridDim.x) {
    double* w = work + b * n * width;
    const T* from = a + b * n * n;
    for (std::int64_t e = thread; e < n * width; e += threads) {
      const std::int64_t i = e / width, j = e % width;
      if (j < n) {
        w[e] = static_cast<double>(from[transposed ? j * n + i : i * n + j]);
      } else {
        w[e] = right ? static_cast<double>(right[(b * n + i) * m + j - n]) : (j - n == i ? 1 : 0);
      }
    }
    TANDEM_SHARED(std::int64_t, pivot_row, 1);
    double product = 1, log_product = 0;  // of thread 0
    __syncthreads();
    for (std::int64_t k = 0; k < n; ++k) {
      if (thread == 0) {
        std::int64_t best = k;
        for (std::int64_t i = k + 1; i < n; ++i) {
          if (std::fabs(w[i * width + k]) > std::fabs(w[best * width + k])) best = i;
        }
        pivot_row[0] = best;
        const double pivot = w[best * width + k];
        // As LAPACK's: a NaN counts where the elimination begins with it.
        if (pivot == 0 || (k == 0 && pivot != pivot)) *failed = 1;
        const double turned = best == k ? pivot : -pivot;
        product *= logarithm ? (turned < 0 ? -1 : (turned > 0 ? 1 : turned)) : turned;
        if (logarithm) log_product += std::log(std::fabs(pivot));
      }
      __syncthreads();
      const std::int64_t other = pivot_row[0];
      for (std::int64_t j = k + thread; other != k && j < width; j += threads) {
        const double kept = w[k * width + j];
        w[k * width + j] = w[other * width + j];
        w[other * width + j] = kept;
      }
      __syncthreads();
      const double pivot = w[k * width + k];
      if (pivot == 0) continue;
      const std::int64_t first = m == 0 ? k + 1 : 0, columns = width - k - 1;
      for (std::int64_t e = thread; e < (n - first) * columns; e += threads) {
        const std::int64_t i = first + e / columns, j = k + 1 + e % columns;
        if (i != k) w[i * width + j] -= w[i * width + k] / pivot * w[k * width + j];
      }
      __syncthreads();
    }
    for (std::int64_t e = thread; e < n * m; e += threads) {
      const std::int64_t i = e / m, j = e % m;
      x[b * n * m + e] = static_cast<T>(w[i * width + n + j] / w[i * width + i]);
    }
    if (thread == 0 && determinant) {
      determinant[b] = static_cast<T>(logarithm ? log_product : product);
      if (sign) sign[b] = static_cast<T>(product);
    }
    __syncthreads();
  }
}

template <class F>
void visit_wide(Type type, F&& f) {
  if (type == Type::kFloat) return f(Tag<float>());
  if (type == Type::kDouble) return f(Tag<double>());
  no_kernel_for(type);
}

struct Matrices {
  std::int64_t n = 0, batch = 1;
  Sizes batch_sizes;
};

Matrices square(const TensorView& a) {
  if (a.rank() < 2) refuse("Input must have rank at least 2");
  Matrices m;
  m.n = a.sizes.back();
  if (a.sizes[a.sizes.size() - 2] != m.n) refuse("Input matrix must be square.");
  m.batch_sizes.assign(a.sizes.begin(), a.sizes.end() - 2);
  m.batch = product(m.batch_sizes);
  return m;
}

// Device memory whose first bytes say whether something failed.
class Scratch {
 public:
  Scratch(const KernelCall& call, std::int64_t doubles)
      : call_(call),
        memory_(static_cast<std::byte*>(
            call.scratch(kFlagBytes + static_cast<std::size_t>(doubles) * sizeof(double)))) {
    call.zero(memory_, kFlagBytes);
  }
  int* flag() const { return reinterpret_cast<int*>(memory_); }
  double* work() const { return reinterpret_cast<double*>(memory_ + kFlagBytes); }
  bool failed() const {
    int flag = 0;
    call_.read_back(&flag, memory_, sizeof(flag));
    return flag != 0;
  }

 private:
  static constexpr std::size_t kFlagBytes = 256;
  const KernelCall& call_;
  std::byte* memory_;
};

void eliminate(KernelCall& call, const TensorView& a, const Matrices& k, std::int64_t columns,
               const TensorView* right, const TensorView& x) {
  if (x.count == 0) return;
  const Scratch scratch(call, k.batch * k.n * (k.n + columns));
  const bool adjoint = call.attr_bool("adjoint");
  visit_wide(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const none = nullptr;
    TANDEM_LAUNCH(eliminate_kernel<T>, rows_shape(k.batch, kThreads), 0, a.as<T>(),
                  right ? right->as<T>() : none, x.as<T>(), none, none, scratch.work(), k.n,
                  columns, k.batch, adjoint, false, scratch.flag());
  });
  if (scratch.failed())
    refuse(right ? "Input matrix is not invertible." : "Input is not invertible.");
}

void determinant(KernelCall& call, const TensorView* sign, const TensorView& result,
                 const Matrices& k) {
  if (result.count == 0) return;
  const TensorView a = call.input(0);
  const Scratch scratch(call, k.batch * k.n * k.n);
  visit_wide(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const none = nullptr;
    TANDEM_LAUNCH(eliminate_kernel<T>, rows_shape(k.batch, kThreads), 0, a.as<T>(), none, none,
                  sign ? sign->as<T>() : none, result.as<T>(), scratch.work(), k.n, std::int64_t{0},
                  k.batch, false, sign != nullptr, scratch.flag());
  });
}

}  // namespace

// One that is not positive definite gives NaN.
void linalg_cholesky(KernelCall& call) {
  const TensorView a = call.input(0);
  const Matrices k = square(a);
  const TensorView l = call.allocate_output(0, a.sizes);
  if (l.count == 0) return;
  visit_wide(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(cholesky_kernel<T>, rows_shape(k.batch, kThreads), 0, a.as<T>(), l.as<T>(), k.n,
                  k.batch);
  });
}

void linalg_triangular_solve(KernelCall& call) {
  const TensorView a = call.input(0), rhs = call.input(1);
  const Matrices k = square(a);
  if (rhs.rank() < 2 || rhs.sizes[rhs.sizes.size() - 2] != k.n)
    refuse("Input matrix and rhs are incompatible");
  const std::int64_t m = rhs.sizes.back();
  const Sizes rhs_batch(rhs.sizes.begin(), rhs.sizes.end() - 2);
  Sizes sizes = broadcast_sizes(k.batch_sizes, rhs_batch);
  Strides<2> batches = broadcast_strides<2>(sizes, {k.batch_sizes, rhs_batch});
  for (int axis = 0; axis < batches.rank; ++axis) {
    batches.strides[0][axis] *= k.n * k.n;
    batches.strides[1][axis] *= k.n * m;
  }
  const std::int64_t columns = product(sizes) * m;
  sizes.insert(sizes.end(), {k.n, m});
  const TensorView x = call.allocate_output(0, sizes);
  if (x.count == 0) return;
  visit_wide(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(triangular_solve_kernel<T>, shape_for(columns), 0, a.as<T>(), rhs.as<T>(),
                  x.as<T>(), k.n, m, columns, batches, call.attr_bool("lower"),
                  call.attr_bool("adjoint"));
  });
}

void linalg_inverse(KernelCall& call) {
  const TensorView a = call.input(0);
  const Matrices k = square(a);
  eliminate(call, a, k, k.n, nullptr, call.allocate_output(0, a.sizes));
}

void linalg_solve(KernelCall& call) {
  const TensorView a = call.input(0), rhs = call.input(1);
  const Matrices k = square(a);
  if (rhs.rank() != a.rank() || rhs.sizes[rhs.sizes.size() - 2] != k.n ||
      Sizes(rhs.sizes.begin(), rhs.sizes.end() - 2) != k.batch_sizes)
    refuse("Input matrix and rhs are incompatible");
  eliminate(call, a, k, rhs.sizes.back(), &rhs, call.allocate_output(0, rhs.sizes));
}

void linalg_determinant(KernelCall& call) {
  const Matrices k = square(call.input(0));
  determinant(call, nullptr, call.allocate_output(0, k.batch_sizes), k);
}

void linalg_log_determinant(KernelCall& call) {
  const Matrices k = square(call.input(0));
  const TensorView sign = call.allocate_output(0, k.batch_sizes);
  determinant(call, &sign, call.allocate_output(1, k.batch_sizes), k);
}

}  // namespace tandem::cuda
