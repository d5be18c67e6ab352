// Products of matrices of half and bfloat16: as they are, or through float.

#include <algorithm>
#include <cstddef>

#include "tandem/kernels/cpu/elementwise/in_float.h"
#include "tandem/kernels/cpu/linalg/float16_product.h"
#include "tandem/kernels/cpu/linalg/matrix_pieces.h"
#include "tandem/kernels/cpu/linalg/matrix_ways.h"
#include "tandem/kernels/cpu/onednn/support.h"
#include "tandem/kernels/cpu/support/scratch.h"
#include "tandem/kernels/cpu/support/thresholds.h"

namespace tandem::cpu {
namespace {

const std::byte* at(const void* base, std::int64_t element) {
  return static_cast<const std::byte*>(base) + element * 2;
}
std::byte* at(void* base, std::int64_t element) {
  return static_cast<std::byte*>(base) + element * 2;
}

std::int64_t matrices(bool once, std::span<const std::int64_t> index, std::int64_t batch) {
  if (once) return 1;
  return index.empty() ? batch : *std::max_element(index.begin(), index.end()) + 1;
}

// Small matrices a few at a time: their floats stay in a core's cache.
void multiply_batch(KernelContext& context, const MatrixProduct& p, std::int64_t step) {
  const std::int64_t a_size = p.m * p.k, b_size = p.k * p.n, c_size = p.m * p.n;
  const std::int64_t blocks = (p.batch + step - 1) / step;
  const double cost = static_cast<double>(a_size + b_size + c_size) * 0.5 +
                      multiplications(p) / static_cast<double>(p.batch) * 0.05;
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t floats = step * (a_size + b_size + c_size);
    const Scratch scratch(static_cast<std::size_t>(floats) * sizeof(float));
    float* const a = scratch.as<float>();
    float* const b = a + step * a_size;
    float* const c = b + step * b_size;
    for (std::int64_t first = begin * step; first < std::min(end * step, p.batch); first += step) {
      MatrixProduct few = p;
      few.dtype = DType::kFloat;
      few.batch = std::min(step, p.batch - first);
      few.a_once = p.a_once || few.batch == 1;
      few.b_once = p.b_once || few.batch == 1;
      few.a = a;
      few.b = b;
      few.c = c;
      IntraOpPool& pool = context.intra_op();
      to_float(pool, p.dtype, at(p.a, p.a_once ? 0 : first * a_size), a,
               (p.a_once ? 1 : few.batch) * a_size);
      to_float(pool, p.dtype, at(p.b, p.b_once ? 0 : first * b_size), b,
               (p.b_once ? 1 : few.batch) * b_size);
      // Nothing is measured inside a piece.
      multiply_floats(context, few, assumed_float_way(few, threads_to_cut_for(context)));
      from_float(pool, c, p.dtype, at(p.c, first * c_size), few.batch * c_size);
    }
  };
  context.intra_op().parallel_for(blocks, cost * static_cast<double>(step), run);
}

void multiply_through_float(KernelContext& context, const MatrixProduct& p) {
  const std::int64_t floats = p.m * p.k + p.k * p.n + p.m * p.n;
  if (p.batch > 1 && p.a_index.empty() && p.b_index.empty() && floats <= tuning::kFloatBlock) {
    return multiply_batch(context, p, std::min(p.batch, tuning::kFloatBlock / floats));
  }
  const std::int64_t a_count = matrices(p.a_once, p.a_index, p.batch) * p.m * p.k;
  const std::int64_t b_count = matrices(p.b_once, p.b_index, p.batch) * p.k * p.n;
  const std::int64_t c_count = p.batch * p.m * p.n;
  const Array a = context.allocate_temp(DType::kFloat, Shape{a_count});
  const Array b = context.allocate_temp(DType::kFloat, Shape{b_count});
  const Array c = context.allocate_temp(DType::kFloat, Shape{c_count});
  to_float(context.intra_op(), p.dtype, p.a, a.data<float>(), a_count);
  to_float(context.intra_op(), p.dtype, p.b, b.data<float>(), b_count);
  MatrixProduct in_float = p;
  in_float.dtype = DType::kFloat;
  in_float.a = a.raw_data();
  in_float.b = b.raw_data();
  in_float.c = c.raw_data();
  multiply_floats_best(context, in_float);
  from_float(context.intra_op(), c.data<float>(), p.dtype, p.c, c_count);
}

template <class T>
void multiply_blocks(KernelContext& context, const MatrixProduct& p) {
  const MatrixGrid grid = cut_matrices(p, threads_to_cut_for(context));
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const IndexRange columns = part_of(i % grid.columns, grid.columns, p.n, 64);
      const IndexRange rows = part_of(i / grid.columns % grid.rows, grid.rows, p.m, 6);
      const IndexRange batch = part_of(i / grid.columns / grid.rows, grid.batch, p.batch, 1);
      if (rows.size() == 0 || columns.size() == 0) continue;
      for (std::int64_t j = batch.begin; j < batch.end; ++j) {
        Float16Product<T> one;
        one.m = rows.size();
        one.n = columns.size();
        one.k = p.k;
        one.transpose_a = p.transpose_a;
        one.a_stride = p.transpose_a ? p.m : p.k;
        one.a = static_cast<const T*>(p.a) + p.a_matrix(j) * p.m * p.k +
                rows.begin * (p.transpose_a ? 1 : p.k);
        one.transpose_b = p.transpose_b;
        one.b_stride = p.transpose_b ? p.k : p.n;
        one.b = static_cast<const T*>(p.b) + p.b_matrix(j) * p.k * p.n +
                columns.begin * (p.transpose_b ? p.k : 1);
        one.c_stride = p.n;
        one.c = static_cast<T*>(p.c) + j * p.m * p.n + rows.begin * p.n + columns.begin;
        multiply_in_blocks(one);
      }
    }
  };
  if (grid.pieces() == 1) return run(0, 1);
  context.intra_op().for_each_piece(grid.pieces(), run);
}

}  // namespace

Float16Way assumed_float16_way(const MatrixProduct& p) {
  if (p.dtype == DType::kBFloat16 && onednn::has_native_bfloat16()) return Float16Way::kMatMul;
  const bool large = std::min({p.m, p.n, p.k}) >= tuning::kMinBlockSide;
  return large ? Float16Way::kInBlocks : Float16Way::kThroughFloat;
}

bool multiply_float16(KernelContext& context, const MatrixProduct& p, Float16Way way) {
  switch (way) {
    case Float16Way::kMatMul:
      return p.dtype == DType::kBFloat16 && multiply_in_library(context, p, FloatWay::kMatMul);
    case Float16Way::kThroughFloat: multiply_through_float(context, p); return true;
    case Float16Way::kInBlocks:
      p.dtype == DType::kHalf ? multiply_blocks<Half>(context, p)
                              : multiply_blocks<BFloat16>(context, p);
      return true;
  }
  return false;
}

}  // namespace tandem::cpu
