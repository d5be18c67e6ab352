#include <algorithm>
#include <atomic>
#include <complex>
#include <type_traits>

#include "tandem/kernels/cpu/lapack/blas.h"
#include "tandem/kernels/cpu/linalg/matrix_product.h"

namespace tandem::cpu {
namespace {

// How one product is cut into pieces that threads take: `rows` times `columns` parts, or `sums`
// parts of its sums, to be added up. The sizes alone say how, so that the bits of the result do not
// depend on the number of threads.
struct Grid {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t sums = 1;
};

// A multiplication's share of the time, in nanoseconds: where one operand is a vector, reading the
// other takes longer than that.
double cost_of(const MatrixProduct& p, bool complex) {
  return (complex ? 0.8 : 0.2) * (p.m == 1 || p.n == 1 ? 4 : 1);
}

// Each piece packs its parts of both operands, so there are no more of
// them than pay: some for anything that takes a while, many for long products alone.
Grid cut(const MatrixProduct& p, double ns) {
  constexpr std::int64_t kShortestSide = 64, kShortestSum = 2048;
  const auto wanted =
      static_cast<std::int64_t>(std::max(std::min(ns / 2e5, 4.0), std::min(ns / 1.6e6, 16.0)));
  Grid grid;
  while (grid.rows * grid.columns < wanted) {
    const std::int64_t height = p.m / grid.rows, width = p.n / grid.columns;
    if (std::max(height, width) < 2 * kShortestSide) break;
    (height > width ? grid.rows : grid.columns) *= 2;
  }
  // Each part of a sum is another result to be kept; large batches have pieces enough.
  constexpr std::int64_t kMaxPieces = 64;
  if (grid.rows * grid.columns == 1 && p.batch < kMaxPieces) {
    const std::int64_t most = std::min(wanted, kMaxPieces / std::max<std::int64_t>(p.batch, 1));
    grid.sums = std::clamp<std::int64_t>(p.k / kShortestSum, 1, std::max<std::int64_t>(most, 1));
  }
  return grid;
}

blas::Turn turn_of(bool transpose, bool conjugate) {
  if (!transpose) return blas::Turn::kNone;
  return conjugate ? blas::Turn::kAdjoint : blas::Turn::kTranspose;
}

// The i-th matrix as the library's case.
template <class T>
blas::Product<T> matrix(const MatrixProduct& p, std::int64_t i) {
  blas::Product<T> one;
  one.turn_a = turn_of(p.transpose_a, p.conjugate_a);
  one.turn_b = turn_of(p.transpose_b, p.conjugate_b);
  one.m = p.m;
  one.n = p.n;
  one.k = p.k;
  one.a = static_cast<const T*>(p.a) + p.a_matrix(i) * p.m * p.k;
  one.a_stride = p.transpose_a ? p.m : p.k;
  one.b = static_cast<const T*>(p.b) + p.b_matrix(i) * p.k * p.n;
  one.b_stride = p.transpose_b ? p.k : p.n;
  one.c = static_cast<T*>(p.c) + i * p.m * p.n;
  one.c_stride = p.n;
  return one;
}

template <class T>
void take_rows(blas::Product<T>& p, std::int64_t i, std::int64_t parts) {
  const std::int64_t begin = p.m * i / parts, end = p.m * (i + 1) / parts;
  p.a += begin * (p.turn_a == blas::Turn::kNone ? p.a_stride : 1);
  p.c += begin * p.c_stride;
  p.m = end - begin;
}

template <class T>
void take_columns(blas::Product<T>& p, std::int64_t i, std::int64_t parts) {
  const std::int64_t begin = p.n * i / parts, end = p.n * (i + 1) / parts;
  p.b += begin * (p.turn_b == blas::Turn::kNone ? 1 : p.b_stride);
  p.c += begin;
  p.n = end - begin;
}

template <class T>
void take_sums(blas::Product<T>& p, std::int64_t i, std::int64_t parts) {
  const std::int64_t begin = p.k * i / parts, end = p.k * (i + 1) / parts;
  p.a += begin * (p.turn_a == blas::Turn::kNone ? 1 : p.a_stride);
  p.b += begin * (p.turn_b == blas::Turn::kNone ? p.b_stride : 1);
  p.k = end - begin;
}

template <class T>
bool multiply_in_sums(KernelContext& context, const MatrixProduct& p, std::int64_t parts) {
  const std::int64_t count = p.m * p.n;
  const Array others = context.allocate_temp(p.dtype, Shape{p.batch * (parts - 1) * count});
  std::atomic<bool> possible{true};
  context.intra_op().for_each_piece(p.batch * parts, [&](std::int64_t at, std::int64_t) {
    const std::int64_t i = at / parts, part = at % parts;
    blas::Product<T> one = matrix<T>(p, i);
    take_sums(one, part, parts);
    if (part > 0) one.c = others.data<T>() + (i * (parts - 1) + part - 1) * count;
    if (!blas::multiply(one)) possible.store(false, std::memory_order_relaxed);
  });
  if (!possible.load(std::memory_order_relaxed)) return false;
  T* const c = static_cast<T*>(p.c);
  for (std::int64_t i = 0; i < p.batch; ++i) {
    for (std::int64_t part = 0; part + 1 < parts; ++part) {
      const T* const from = others.data<T>() + (i * (parts - 1) + part) * count;
      for (std::int64_t j = 0; j < count; ++j) c[i * count + j] += from[j];
    }
  }
  return true;
}

template <class T>
bool multiply(KernelContext& context, const MatrixProduct& p) {
  const double ns = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
                    cost_of(p, !std::is_floating_point_v<T>);
  const Grid grid = cut(p, ns);
  if (grid.sums > 1) return multiply_in_sums<T>(context, p, grid.sums);
  const std::int64_t parts = grid.rows * grid.columns;
  std::atomic<bool> possible{true};
  context.intra_op().parallel_for(p.batch * parts, 200 + ns / static_cast<double>(parts),
                                  [&](std::int64_t begin, std::int64_t end) {
                                    for (std::int64_t at = begin; at < end; ++at) {
                                      blas::Product<T> one = matrix<T>(p, at / parts);
                                      take_rows(one, at % parts / grid.columns, grid.rows);
                                      take_columns(one, at % grid.columns, grid.columns);
                                      if (!blas::multiply(one))
                                        possible.store(false, std::memory_order_relaxed);
                                    }
                                  });
  return possible.load(std::memory_order_relaxed);
}

}  // namespace

bool multiply_matrices_blas(KernelContext& context, const MatrixProduct& p) {
  // The library takes no conjugate that is not transposed, and is not worth its call for little.
  constexpr std::int64_t kSmall = 256;
  if ((p.conjugate_a && !p.transpose_a) || (p.conjugate_b && !p.transpose_b)) return false;
  if (p.k == 0 || p.m <= kSmall / p.n / p.k) return false;
  switch (p.dtype) {
    case DType::kDouble: return multiply<double>(context, p);
    case DType::kComplex64: return multiply<std::complex<float>>(context, p);
    case DType::kComplex128: return multiply<std::complex<double>>(context, p);
    default: return false;
  }
}

}  // namespace tandem::cpu
