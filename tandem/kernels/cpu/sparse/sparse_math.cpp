// Arithmetic of sparse tensors.

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/gather.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/sparse/sparse_tensor.h"
#include "tandem/kernels/cpu/support/arithmetic.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

template <class T>
T conjugate(T value) {
  if constexpr (requires { value.imag(); }) {
    return std::conj(value);
  } else {
    return value;
  }
}

// ---- SparseTensorDenseMatMul ----

// to[i] += factor * from[i], for arrays that do not overlap.
template <class A, class T>
void add_product(A* to, A factor, const T* from, std::int64_t count) {
  constexpr std::int64_t kStep = 8;
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    A terms[kStep];
    for (std::int64_t j = 0; j < kStep; ++j) terms[j] = factor * static_cast<A>(from[i + j]);
    for (std::int64_t j = 0; j < kStep; ++j) to[i + j] += terms[j];
  }
  for (; i < count; ++i) to[i] += factor * static_cast<A>(from[i]);
}

void sparse_dense_matmul(KernelContext& c) {
  const Array& indices = c.input(0);
  const Array& values = c.input(1);
  const Array& dims = c.input(2);
  const Array& b = c.input(3);
  if (b.rank() != 2) throw InvalidArgumentError("Tensor 'b' is not a matrix");
  if (dims.rank() != 1) throw InvalidArgumentError("Tensor 'a_shape' is not a vector");
  if (dims.num_elements() != 2) {
    throw InvalidArgumentError("Tensor 'a_shape' must have 2 elements");
  }
  if (values.rank() != 1) throw InvalidArgumentError("Tensor 'a_values' is not a vector");
  if (indices.rank() != 2) throw InvalidArgumentError("Tensor 'a_indices' is not a matrix");
  const std::int64_t n = indices.shape()[0];
  if (values.num_elements() != n || indices.shape()[1] != 2) {
    throw InvalidArgumentError(
        cat("a_values must have as many elements as a_indices rows of 2, got ", values.shape(),
            " and ", indices.shape()));
  }
  const bool adjoint_a = c.attr<bool>("adjoint_a"), adjoint_b = c.attr<bool>("adjoint_b");
  const std::int64_t rows = dims.data<std::int64_t>()[adjoint_a ? 1 : 0];
  const std::int64_t inner = dims.data<std::int64_t>()[adjoint_a ? 0 : 1];
  const std::int64_t columns = b.shape()[adjoint_b ? 0 : 1];
  if (rows < 0 || inner < 0) throw InvalidArgumentError("a_shape must not be negative");
  if (inner != b.shape()[adjoint_b ? 1 : 0]) {
    throw InvalidArgumentError(
        cat("Cannot multiply A and B because inner dimension does not match: ", inner, " vs. ",
            b.shape()[adjoint_b ? 1 : 0], ". Did you forget a transpose?"));
  }
  Array& out = c.allocate_output(0, Shape{rows, columns});
  std::vector<std::int64_t> widened;
  const std::int64_t* places = nullptr;
  if (indices.dtype() == DType::kInt64) {
    places = indices.data<std::int64_t>();
  } else {
    for (std::int64_t i = 0; i < 2 * n; ++i) {
      widened.push_back(index_at(indices.dtype(), indices.raw_data(), i));
    }
    places = widened.data();
  }
  const int row = adjoint_a ? 1 : 0, column = 1 - row;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t m = places[2 * i + row], k = places[2 * i + column];
    if (m < 0 || m >= rows || k < 0 || k >= inner) {
      throw InvalidArgumentError(cat("index [", m, ",", k, "] of element ", i,
                                     " is out of bounds: need it below [", rows, ",", inner, "]"));
    }
  }
  with_number(values.dtype(), [&]<class T>() {
    using A = Arithmetic<T>;
    // Short formats are summed in wider ones.
    constexpr bool kDirect = std::is_same_v<A, T>;
    std::vector<A> wide(kDirect ? 0 : static_cast<std::size_t>(out.num_elements()));
    A* sum = wide.data();
    if constexpr (kDirect) sum = out.data<T>();
    std::fill(sum, sum + out.num_elements(), A(0));
    if (out.num_elements() == 0) return;
    // Every thread takes all elements of A for its own columns of B.
    constexpr std::int64_t kColumns = 64;
    c.intra_op().parallel_for(
        (columns + kColumns - 1) / kColumns,
        static_cast<double>(n) * static_cast<double>(std::min(columns, kColumns)) * 0.3,
        [&](std::int64_t first, std::int64_t last) {
          const std::int64_t begin = first * kColumns, end = std::min(columns, last * kColumns);
          // For a vector the sum of a row stays in a register for as long as the row does.
          std::int64_t current = 0;
          A running = columns == 1 ? sum[0] : A(0);
          for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t k = places[2 * i + column];
            const T value = values.data<T>()[i];
            const A factor = static_cast<A>(adjoint_a ? conjugate(value) : value);
            if (columns == 1) {
              const std::int64_t m = places[2 * i + row];
              const T right = adjoint_b ? conjugate(b.data<T>()[k]) : b.data<T>()[k];
              if (m != current) {
                sum[current] = running;
                running = sum[m];
                current = m;
              }
              running += factor * static_cast<A>(right);
              continue;
            }
            A* const to = sum + places[2 * i + row] * columns;
            if (adjoint_b) {
              const T* const from = b.data<T>() + k;
              for (std::int64_t j = begin; j < end; ++j) {
                to[j] += factor * static_cast<A>(conjugate(from[j * inner]));
              }
            } else {
              add_product(to + begin, factor, b.data<T>() + k * columns + begin, end - begin);
            }
          }
          if (columns == 1) sum[current] = running;
        });
    if constexpr (!kDirect) {
      for (std::int64_t i = 0; i < out.num_elements(); ++i)
        out.data<T>()[i] = static_cast<T>(sum[i]);
    }
  });
}

// ---- SparseTensorDenseAdd ----

void sparse_dense_add(KernelContext& c) {
  const Array& indices = c.input(0);
  const Array& values = c.input(1);
  const Array& dims = c.input(2);
  const Array& b = c.input(3);
  if (indices.rank() != 2 || values.rank() != 1 || dims.rank() != 1 ||
      indices.shape()[0] != values.num_elements() || indices.shape()[1] != dims.num_elements()) {
    throw InvalidArgumentError(cat("Input a_indices ", indices.shape(), ", a_values ",
                                   values.shape(), " and a_shape ", dims.shape(),
                                   " do not make a sparse tensor."));
  }
  if (dims.num_elements() != b.rank()) {
    throw InvalidArgumentError(cat(
        "Two operands have different ranks; received: ", dims.num_elements(), " and ", b.rank()));
  }
  for (int k = 0; k < b.rank(); ++k) {
    if (index_at(dims.dtype(), dims.raw_data(), k) != b.shape()[k]) {
      throw InvalidArgumentError(
          cat("Dimension ", k, " does not equal (no broadcasting is supported): sparse side ",
              index_at(dims.dtype(), dims.raw_data(), k), " vs dense side ", b.shape()[k]));
    }
  }
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < values.num_elements(); ++i) {
    std::int64_t at = 0;
    for (int k = 0; k < b.rank(); ++k) {
      const std::int64_t index = index_at(indices.dtype(), indices.raw_data(), i * b.rank() + k);
      if (index < 0 || index >= b.shape()[k]) {
        throw InvalidArgumentError(cat("Sparse tensor has some invalid index on dimension ", k,
                                       ": ", index, " is not in [0, ", b.shape()[k], ")"));
      }
      at = at * b.shape()[k] + index;
    }
    places.push_back(at);
  }
  Array& out = c.allocate_output(0, b.shape());
  with_number(b.dtype(), [&]<class T>() {
    std::copy(b.data<T>(), b.data<T>() + b.num_elements(), out.data<T>());
    for (std::size_t i = 0; i < places.size(); ++i) {
      T& to = out.data<T>()[places[i]];
      to = add(to, values.data<T>()[i]);
    }
  });
}

// ---- SparseAdd ----

// The elements of two sparse tensors in order: calls f(place in a or -1, place in b or -1).
template <class F>
void merge(const SparseInput& a, const SparseInput& b, F f) {
  std::int64_t i = 0, j = 0;
  while (i < a.count || j < b.count) {
    int side = 0;
    if (i == a.count) side = 1;
    if (j == b.count) side = -1;
    for (std::int64_t k = 0; side == 0 && i < a.count && j < b.count && k < a.rank; ++k) {
      side = a.index(i)[k] < b.index(j)[k] ? -1 : a.index(i)[k] > b.index(j)[k] ? 1 : 0;
    }
    f(side <= 0 ? i : -1, side >= 0 ? j : -1);
    i += side <= 0;
    j += side >= 0;
  }
}

double threshold_of(const Array& thresh) {
  double value = 0;
  with_real(thresh.dtype(), [&]<class T>() {
    value = static_cast<double>(static_cast<Arithmetic<T>>(thresh.data<T>()[0]));
    if constexpr (std::is_integral_v<T>) value = static_cast<double>(thresh.data<T>()[0]);
  });
  return value;
}

void sparse_add(KernelContext& c) {
  const SparseInput a(c, 0);
  const SparseInput b(c, 3);
  if (c.input(6).rank() != 0) {
    throw InvalidArgumentError("The magnitude threshold must be a scalar.");
  }
  if (a.rank != b.rank) {
    throw InvalidArgumentError(
        cat("Ranks of input tensors must match, but saw ranks: ", a.rank, " and ", b.rank));
  }
  for (std::int64_t k = 0; k < a.rank; ++k) {
    if (a.dim(k) != b.dim(k)) {
      throw InvalidArgumentError(
          cat("Input shapes must match: got ", a.dim(k), " and ", b.dim(k), " for dimension ", k));
    }
  }
  const double thresh = threshold_of(c.input(6));
  with_number(a.values.dtype(), [&]<class T>() {
    using A = Arithmetic<T>;
    std::vector<T> values;
    std::vector<std::int64_t> indices;
    merge(a, b, [&](std::int64_t i, std::int64_t j) {
      const T sum = add(i < 0 ? T(0) : a.values.data<T>()[i], j < 0 ? T(0) : b.values.data<T>()[j]);
      double magnitude;
      if constexpr (std::is_integral_v<T>) {
        magnitude = std::fabs(static_cast<double>(sum));
      } else {
        magnitude = static_cast<double>(std::abs(static_cast<A>(sum)));
      }
      if (i >= 0 && j >= 0 && !(thresh <= magnitude)) return;
      values.push_back(sum);
      const std::int64_t* index = i >= 0 ? a.index(i) : b.index(j);
      indices.insert(indices.end(), index, index + a.rank);
    });
    const auto n = static_cast<std::int64_t>(values.size());
    std::copy(indices.begin(), indices.end(),
              c.allocate_output(0, Shape{n, a.rank}).data<std::int64_t>());
    std::copy(values.begin(), values.end(), c.allocate_output(1, Shape{n}).data<T>());
  });
  Array& shape = c.allocate_output(2, Shape{a.rank});
  std::copy(a.dims.data<std::int64_t>(), a.dims.data<std::int64_t>() + a.rank,
            shape.data<std::int64_t>());
}

void sparse_add_grad(KernelContext& c) {
  const Array& grad = c.input(0);
  const Array& sum = c.input(3);
  for (int i = 1; i < 4; ++i) {
    if (c.input(i).rank() != 2 || c.input(i).shape()[1] != sum.shape()[sum.rank() - 1]) {
      throw InvalidArgumentError(
          cat("The indices must be matrices of as many columns, got ", c.input(i).shape()));
    }
  }
  if (grad.rank() != 1 || grad.num_elements() != sum.shape()[0]) {
    throw InvalidArgumentError(
        cat("# elements of backprop_val_grad and rows of sum_indices should "
            "match: ",
            grad.shape(), " and ", sum.shape()));
  }
  const std::int64_t rank = sum.shape()[1];
  with_number(grad.dtype(), [&]<class T>() {
    for (int side = 0; side < 2; ++side) {
      const Array& indices = c.input(1 + side);
      const std::int64_t n = indices.shape()[0];
      T* to = c.allocate_output(side, Shape{n}).template data<T>();
      std::int64_t at = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t* mine = indices.data<std::int64_t>() + i * rank;
        const auto sums = [&](std::int64_t k) { return sum.data<std::int64_t>() + k * rank; };
        while (at < sum.shape()[0] &&
               std::lexicographical_compare(sums(at), sums(at) + rank, mine, mine + rank)) {
          ++at;
        }
        const bool kept = at < sum.shape()[0] && std::equal(mine, mine + rank, sums(at));
        to[i] = kept ? grad.data<T>()[at] : T(0);
      }
    }
  });
}

// ---- SparseReduceSum, SparseReduceMax ----

template <bool kMax>
void sparse_reduce(KernelContext& c) {
  const SparseInput x(c, 0);
  x.check_bounds();
  const IntInput axes(c, 3, "reduction_axes");
  std::vector<bool> reduced(static_cast<std::size_t>(x.rank), axes.size() == 0);
  for (std::int64_t i = 0; i < axes.size(); ++i) {
    reduced[static_cast<std::size_t>(
        checked_axis(axes[i], static_cast<int>(x.rank), "Invalid reduction dimension"))] = true;
  }
  const bool keep = c.attr<bool>("keep_dims");
  Shape shape;
  for (std::int64_t k = 0; k < x.rank; ++k) {
    if (!reduced[static_cast<std::size_t>(k)]) {
      shape.add_dim(x.dim(k));
    } else if (keep) {
      shape.add_dim(1);
    }
  }
  Array& out = c.allocate_output(0, shape);
  const auto run = [&]<class T>() {
    using A = std::conditional_t<is_float16<T>, float, T>;
    const auto size = static_cast<std::size_t>(out.num_elements());
    std::vector<A> result(size, A(0));
    std::vector<bool> seen(kMax ? size : 0, false);
    for (std::int64_t i = 0; i < x.count; ++i) {
      std::int64_t at = 0;
      for (std::int64_t k = 0; k < x.rank; ++k) {
        if (!reduced[static_cast<std::size_t>(k)]) at = at * x.dim(k) + x.index(i)[k];
      }
      A& to = result[static_cast<std::size_t>(at)];
      const A value = static_cast<A>(x.values.data<T>()[i]);
      if constexpr (kMax) {
        if (!seen[static_cast<std::size_t>(at)] || to < value) to = value;
        seen[static_cast<std::size_t>(at)] = true;
      } else {
        to = add(to, value);
      }
    }
    for (std::size_t i = 0; i < size; ++i) out.data<T>()[i] = static_cast<T>(result[i]);
  };
  if constexpr (kMax) {
    with_real(out.dtype(), run);
  } else {
    with_number(out.dtype(), run);
  }
}

// ---- SparseDenseCwise… ----

struct Mul {
  template <class A>
  static A of(A a, A b) {
    return a * b;
  }
};
struct Add {
  template <class A>
  static A of(A a, A b) {
    return a + b;
  }
};
struct Div {
  template <class A>
  static A of(A a, A b) {
    return a / b;
  }
};

template <class F>
void sparse_dense_cwise(KernelContext& c) {
  const SparseInput x(c, 0);
  const Array& dense = c.input(3);
  x.check_bounds();
  const std::int64_t missing = x.rank - dense.rank();
  bool fits = missing >= 0;
  for (int k = 0; fits && k < dense.rank(); ++k) {
    fits = dense.shape()[k] == 1 || dense.shape()[k] == x.dim(missing + k);
  }
  if (!fits) {
    throw InvalidArgumentError(
        cat("SparseDenseBinaryOpShared broadcasts dense to sparse only; got "
            "incompatible shapes: ",
            x.shape(), " vs. ", dense.shape()));
  }
  Array& out = c.allocate_output(0, Shape{x.count});
  with_number(out.dtype(), [&]<class T>() {
    using A = Arithmetic<T>;
    for (std::int64_t i = 0; i < x.count; ++i) {
      std::int64_t at = 0;
      for (int k = 0; k < dense.rank(); ++k) {
        const std::int64_t size = dense.shape()[k];
        at = at * size + (size == 1 ? 0 : x.index(i)[missing + k]);
      }
      const T a = x.values.data<T>()[i], b = dense.data<T>()[at];
      if constexpr (std::is_same_v<F, Div>) {  // of floats too
        if (b == T(0)) throw InvalidArgumentError("The dense tensor divides by zero.");
      }
      if constexpr (std::is_integral_v<T> && std::is_same_v<F, Div>) {
        out.data<T>()[i] = b == static_cast<T>(-1) ? subtract(T(0), a) : static_cast<T>(a / b);
      } else {
        out.data<T>()[i] = static_cast<T>(F::of(static_cast<A>(a), static_cast<A>(b)));
      }
    }
  });
}

// ---- SparseSoftmax: over the elements that differ in the last index only ----

template <class T>
void sparse_softmax(KernelContext& c) {
  using A = std::conditional_t<is_float16<T>, float, T>;
  const SparseInput x(c, 0);
  if (x.rank < 2) {
    throw InvalidArgumentError(
        cat("Input should have rank >= 2, but received shape: ", x.dims.shape()));
  }
  x.check_bounds();
  Array& out = c.allocate_output(0, Shape{x.count});
  const T* from = x.values.data<T>();
  for (std::int64_t begin = 0; begin < x.count;) {
    std::int64_t end = begin + 1;
    while (end < x.count && std::equal(x.index(begin), x.index(begin) + x.rank - 1, x.index(end))) {
      ++end;
    }
    A most = static_cast<A>(from[begin]), sum(0);
    for (std::int64_t i = begin; i < end; ++i) most = std::max(most, static_cast<A>(from[i]));
    for (std::int64_t i = begin; i < end; ++i) sum += std::exp(static_cast<A>(from[i]) - most);
    for (std::int64_t i = begin; i < end; ++i) {
      out.data<T>()[i] = static_cast<T>(std::exp(static_cast<A>(from[i]) - most) / sum);
    }
    begin = end;
  }
}

const KernelRegistration kKernels[] = {
    KernelRegistration({.op = "SparseTensorDenseMatMul", .run = sparse_dense_matmul}),
    KernelRegistration({.op = "SparseTensorDenseAdd", .run = sparse_dense_add}),
    KernelRegistration({.op = "SparseAdd", .run = sparse_add}),
    KernelRegistration({.op = "SparseAddGrad", .run = sparse_add_grad}),
    KernelRegistration({.op = "SparseReduceSum", .run = sparse_reduce<false>}),
    KernelRegistration({.op = "SparseReduceMax", .run = sparse_reduce<true>}),
    KernelRegistration({.op = "SparseDenseCwiseMul", .run = sparse_dense_cwise<Mul>}),
    KernelRegistration({.op = "SparseDenseCwiseAdd", .run = sparse_dense_cwise<Add>}),
    KernelRegistration({.op = "SparseDenseCwiseDiv", .run = sparse_dense_cwise<Div>}),
    KernelRegistration(
        {.op = "SparseSoftmax", .types = {{"T", {DType::kFloat}}}, .run = sparse_softmax<float>}),
    KernelRegistration(
        {.op = "SparseSoftmax", .types = {{"T", {DType::kDouble}}}, .run = sparse_softmax<double>}),
    KernelRegistration(
        {.op = "SparseSoftmax", .types = {{"T", {DType::kHalf}}}, .run = sparse_softmax<Half>}),
};

}  // namespace
}  // namespace tandem::cpu
