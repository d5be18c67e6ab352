#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/kernels/cpu/lapack/blas.h"
#include "tandem/kernels/cpu/lapack/lapack.h"
#include "tandem/kernels/cpu/lapack/transposed_copy.h"

// What the kernels of linear algebra share: matrices in the last two axes.

namespace tandem::cpu {

template <class T>
T conjugate(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return value;
  } else {
    return std::conj(value);
  }
}

/// The matrices of an input: checked to be some.
struct MatrixBatch {
  std::int64_t rows, columns, count;

  MatrixBatch(const Array& x, const char* name) {
    if (x.rank() < 2) {
      throw InvalidArgumentError(cat(
          name, " must have rank >= 2: Input tensor must have rank >= 2, got shape ", x.shape()));
    }
    rows = x.shape()[x.rank() - 2];
    columns = x.shape()[x.rank() - 1];
    count = x.shape().product(0, x.rank() - 2);
  }
  std::int64_t size() const { return rows * columns; }
  double cost() const {
    const auto least = static_cast<double>(std::min(rows, columns));
    return 100 + least * static_cast<double>(rows) * static_cast<double>(columns);
  }
};

inline void require_square(const MatrixBatch& m, const Array& x) {
  if (m.rows != m.columns) {
    throw InvalidArgumentError(cat("Input matrices must be square, got shape ", x.shape()));
  }
}

/// The axes before the matrices, then these sizes.
inline Shape batch_shape(const Array& x, std::initializer_list<std::int64_t> behind) {
  Shape shape;
  for (int i = 0; i + 2 < x.rank(); ++i) shape.add_dim(x.shape()[i]);
  for (const std::int64_t size : behind) shape.add_dim(size);
  return shape;
}

/// f(i) for each matrix of the batch, on several threads where that pays.
template <class F>
void for_each_matrix(KernelContext& c, const MatrixBatch& m, F f) {
  c.intra_op().parallel_for(m.count, m.cost(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) f(i);
  });
}

/// to[columns, rows] = from[rows, columns]ᴴ.
template <class T>
void adjoint_copy(const T* from, std::int64_t rows, std::int64_t columns, T* to) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) to[j * rows + i] = conjugate(from[i * columns + j]);
  }
}

/// The matrix or its adjoint.
template <class T>
std::vector<T> matrix_copy(const T* from, std::int64_t rows, std::int64_t columns, bool adjoint) {
  std::vector<T> to(static_cast<std::size_t>(rows * columns));
  if (adjoint) {
    adjoint_copy(from, rows, columns, to.data());
  } else {
    std::copy(from, from + rows * columns, to.data());
  }
  return to;
}

template <class T>
bool has_zero_on_diagonal(const T* a, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (a[i * n + i] == T(0)) return true;
  }
  return false;
}

/// Whether a matrix of values that are not all numbers passes for singular: its first pivot, which
/// is never greater than another one, is no number.
template <class T>
bool first_is_nan(const T* a) {
  return !(a[0] == a[0]);
}

/// A product of dense matrices: strides are the columns that there are.
template <class T>
void multiply(blas::Product<T> p) {
  p.a_stride = p.turn_a == blas::Turn::kNone ? p.k : p.m;
  p.b_stride = p.turn_b == blas::Turn::kNone ? p.n : p.k;
  p.c_stride = p.n;
  if (p.m == 0 || p.n == 0) return;
  if (!blas::multiply(p)) {
    throw InvalidArgumentError(
        "A matrix is too large: BLAS counts its rows and columns in 32 bits.");
  }
}

/// Solves A X = B, or Aᴴ X = B, in place for the lower or upper triangle of A. Singular matrices
/// give what the divisions by zero do.
template <class T>
void solve_triangle(bool lower, bool adjoint, std::int64_t n, std::int64_t columns, const T* a,
                    T* b) {
  constexpr std::int64_t kSmall = 1024;
  const bool singular = has_zero_on_diagonal(a, n);
  const blas::Turn turn = adjoint ? blas::Turn::kAdjoint : blas::Turn::kNone;
  if (n > kSmall / n / columns && !singular &&
      blas::solve_triangle(lower, turn, n, columns, a, b)) {
    return;
  }
  const bool forward = lower != adjoint;
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t i = forward ? step : n - 1 - step;
    for (std::int64_t before = 0; before < step; ++before) {
      const std::int64_t j = forward ? before : n - 1 - before;
      const T factor = adjoint ? conjugate(a[j * n + i]) : a[i * n + j];
      for (std::int64_t k = 0; k < columns; ++k) b[i * columns + k] -= factor * b[j * columns + k];
    }
    const T divisor = adjoint ? conjugate(a[i * n + i]) : a[i * n + i];
    for (std::int64_t k = 0; k < columns; ++k) b[i * columns + k] /= divisor;
  }
}

template <class T>
void fill_nan(T* to, std::int64_t n) {
  std::fill(to, to + n, T(std::numeric_limits<lapack::Real<T>>::quiet_NaN()));
}

}  // namespace tandem::cpu
