// Products of matrices of float, and of bfloat16 where oneDNN multiplies it, cut for threads.

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "tandem/kernels/cpu/lapack/blas.h"
#include "tandem/kernels/cpu/linalg/matrix_pieces.h"
#include "tandem/kernels/cpu/linalg/matrix_ways.h"
#include "tandem/kernels/cpu/onednn/matmul.h"

namespace tandem::cpu {
namespace {

using onednn::MatMul;

const std::byte* at(const void* base, std::int64_t element, std::size_t size) {
  return static_cast<const std::byte*>(base) + element * static_cast<std::int64_t>(size);
}
std::byte* at(void* base, std::int64_t element, std::size_t size) {
  return static_cast<std::byte*>(base) + element * static_cast<std::int64_t>(size);
}

MatMul describe(const MatrixProduct& p) {
  MatMul w;
  w.dtype = p.dtype;
  w.m = p.m;
  w.n = p.n;
  w.k = p.k;
  w.transpose_a = p.transpose_a;
  w.transpose_b = p.transpose_b;
  w.a_stride = p.transpose_a ? p.m : p.k;
  w.b_stride = p.transpose_b ? p.k : p.n;
  w.c_stride = p.n;
  w.a_step = p.a_once ? 0 : p.m * p.k;
  w.b_step = p.b_once ? 0 : p.k * p.n;
  w.c_step = p.m * p.n;
  return w;
}

bool multiply_by_blas(const MatMul& w, const void* a, const void* b, void* c) {
  blas::Product<float> one;
  one.turn_a = w.transpose_a ? blas::Turn::kTranspose : blas::Turn::kNone;
  one.turn_b = w.transpose_b ? blas::Turn::kTranspose : blas::Turn::kNone;
  one.m = w.m;
  one.n = w.n;
  one.k = w.k;
  one.a_stride = w.a_stride;
  one.b_stride = w.b_stride;
  one.c_stride = w.c_stride;
  for (std::int64_t i = 0; i < w.batch; ++i) {
    one.a = static_cast<const float*>(a) + i * w.a_step;
    one.b = static_cast<const float*>(b) + i * w.b_step;
    one.c = static_cast<float*>(c) + i * w.c_step;
    if (!blas::multiply(one)) return false;
  }
  return true;
}

// One thread's work. What a library cannot do, oneDNN's matmul does if it can.
bool multiply_part(FloatWay way, const MatMul& w, const void* a, const void* b, void* c) {
  if (way == FloatWay::kGemm && onednn::gemm(w, a, b, c)) return true;
  if (way == FloatWay::kBlas && multiply_by_blas(w, a, b, c)) return true;
  return onednn::matmul(w, a, b, c);
}

// Adds up parts of the sums.
bool multiply_in_sums(KernelContext& context, const MatrixProduct& p, FloatWay way,
                      std::int64_t parts) {
  const std::int64_t count = p.m * p.n;
  const Array others = context.allocate_temp(DType::kFloat, Shape{(parts - 1) * count});
  float* const c = static_cast<float*>(p.c);
  std::atomic<bool> possible{true};
  context.intra_op().for_each_piece(parts, [&](std::int64_t i, std::int64_t end) {
    for (; i < end; ++i) {
      const IndexRange sum = part_of(i, parts, p.k, 16);
      MatMul w = describe(p);
      w.k = sum.size();
      const void* const a = at(p.a, sum.begin * (p.transpose_a ? p.m : 1), sizeof(float));
      const void* const b = at(p.b, sum.begin * p.n, sizeof(float));
      float* const to = i == 0 ? c : others.data<float>() + (i - 1) * count;
      if (!multiply_part(way, w, a, b, to)) possible.store(false, std::memory_order_relaxed);
    }
  });
  if (!possible.load(std::memory_order_relaxed)) return false;
  const float* const from = others.data<float>();
  context.intra_op().parallel_for(count, 0.1 * static_cast<double>(parts),
                                  [&](std::int64_t begin, std::int64_t end) {
                                    for (std::int64_t i = 0; i < parts - 1; ++i) {
                                      const float* const other = from + i * count;
                                      for (std::int64_t j = begin; j < end; ++j) c[j] += other[j];
                                    }
                                  });
  return true;
}

bool multiply_piece(const MatrixProduct& p, FloatWay way, IndexRange batch, IndexRange rows,
                    IndexRange columns) {
  const std::size_t size = dtype_size(p.dtype);
  MatMul w = describe(p);
  w.m = rows.size();
  w.n = columns.size();
  const auto run = [&](std::int64_t first, std::int64_t count) {
    w.batch = count;
    const std::int64_t a = p.a_matrix(first) * p.m * p.k + rows.begin * (p.transpose_a ? 1 : p.k);
    const std::int64_t b =
        p.b_matrix(first) * p.k * p.n + columns.begin * (p.transpose_b ? p.k : 1);
    const std::int64_t c = first * p.m * p.n + rows.begin * p.n + columns.begin;
    return multiply_part(way, w, at(p.a, a, size), at(p.b, b, size), at(p.c, c, size));
  };
  if (rows.size() == 0 || columns.size() == 0 || batch.size() == 0) return true;
  if (p.a_index.empty() && p.b_index.empty()) return run(batch.begin, batch.size());
  for (std::int64_t i = batch.begin; i < batch.end; ++i) {
    if (!run(i, 1)) return false;
  }
  return true;
}

}  // namespace

bool multiply_in_library(KernelContext& context, const MatrixProduct& p, FloatWay way) {
  const MatrixGrid grid = cut_matrices(p, threads_to_cut_for(context));
  if (grid.sums > 1) return multiply_in_sums(context, p, way, grid.sums);
  std::atomic<bool> possible{true};
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const IndexRange columns = part_of(i % grid.columns, grid.columns, p.n, 16);
      const IndexRange rows = part_of(i / grid.columns % grid.rows, grid.rows, p.m, 4);
      const IndexRange batch = part_of(i / grid.columns / grid.rows, grid.batch, p.batch, 1);
      if (!multiply_piece(p, way, batch, rows, columns))
        possible.store(false, std::memory_order_relaxed);
    }
  };
  if (grid.pieces() == 1) {
    run(0, 1);
  } else {
    context.intra_op().for_each_piece(grid.pieces(), run);
  }
  return possible.load(std::memory_order_relaxed);
}

FloatWay assumed_float_way(const MatrixProduct& p, std::int64_t threads) {
  const MatrixGrid grid = cut_matrices(p, threads);
  MatMul w = describe(p);
  w.batch = p.a_index.empty() && p.b_index.empty() ? (p.batch + grid.batch - 1) / grid.batch : 1;
  w.m = std::max<std::int64_t>(1, p.m / grid.rows);
  w.n = std::max<std::int64_t>(1, p.n / grid.columns);
  w.k = std::max<std::int64_t>(1, p.k / grid.sums);
  return onednn::gemm_is_assumed_faster(w) ? FloatWay::kGemm : FloatWay::kMatMul;
}

void multiply_floats(KernelContext& context, const MatrixProduct& p, FloatWay way) {
  if (!multiply_in_library(context, p, way)) multiply_matrices_reference(context, p);
}

}  // namespace tandem::cpu
