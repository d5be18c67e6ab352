#include "tandem/kernels/cpu/linalg/float16_product.h"

#include <algorithm>

#include "tandem/kernels/cpu/array/transpose_block.h"
#include "tandem/kernels/cpu/support/scratch.h"
#include "tandem/kernels/cpu/support/thresholds.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/linalg/float16_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/kernels/cpu/elementwise/float16_rows-inl.h"
#include "tandem/kernels/cpu/linalg/strided_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace {

// Columns of b that are converted at a time: four vectors of 16 floats, or two of 8 four times.
constexpr std::int64_t kWidth = 64;

// Rows [first, first + rows) and columns [begin, end) of turn(a) as floats: kDepth columns at a
// time, each a matrix of its own. Those of a transposed one lie as they did, one row for each
// column.
template <class T>
void PackRows(const Float16Product<T>& p, std::int64_t first, std::int64_t rows, std::int64_t begin,
              std::int64_t end, float* to) {
  for (std::int64_t l = begin; l < end; l += kDepth) {
    const std::int64_t depth = std::min(kDepth, end - l);
    if (p.transpose_a) {
      for (std::int64_t j = 0; j < depth; ++j, to += rows)
        ToFloats(p.a + (l + j) * p.a_stride + first, to, rows);
    } else {
      for (std::int64_t i = 0; i < rows; ++i, to += depth)
        ToFloats(p.a + (first + i) * p.a_stride + l, to, depth);
    }
  }
}

// Entries [l, l + depth) x [j, j + columns) of turn(b) as rows of kWidth floats.
template <class T>
void PackColumns(const Float16Product<T>& p, std::int64_t l, std::int64_t depth, std::int64_t j,
                 std::int64_t columns, float* to) {
  const T* from = p.b + l * p.b_stride + j;
  std::int64_t stride = p.b_stride;
  HWY_ALIGN T turned[kDepth * kWidth];
  if (p.transpose_b) {
    transpose_block(reinterpret_cast<std::uint16_t*>(turned), kWidth,
                    reinterpret_cast<const std::uint16_t*>(p.b + j * p.b_stride + l), p.b_stride,
                    depth, columns);
    from = turned;
    stride = kWidth;
  }
  for (std::int64_t i = 0; i < depth; ++i) ToFloats(from + i * stride, to + i * kWidth, columns);
}

// The same rows of c, as floats until their sums are complete.
struct Sums {
  float* data;
  std::int64_t row;  // floats from one row to the next
};

// Adds the terms [begin, end) of the sums of some rows of c in the columns from `j` on.
template <class T>
void AddTerms(const Float16Product<T>& p, std::int64_t rows, std::int64_t j, std::int64_t begin,
              std::int64_t end, const float* a, float* b, const Sums& c) {
  for (std::int64_t l = begin; l < end; l += kDepth) {
    const std::int64_t depth = std::min(kDepth, end - l);
    const std::int64_t columns = std::min(kWidth, p.n - j);
    PackColumns(p, l, depth, j, columns, b);
    StridedProductOf<float> part;
    part.m = rows;
    part.n = columns;
    part.k = depth;
    part.a = a + rows * (l - begin);
    part.a_row = p.transpose_a ? 1 : depth;
    part.a_column = p.transpose_a ? rows : 1;
    part.b = b;
    part.b_row = kWidth;
    part.c = c.data;
    part.c_row = c.row;
    part.add = l > 0;
    MultiplyStrided(part);
  }
}

template <class T>
void MultiplyInBlocks(const Float16Product<T>& p) {
  // Equal blocks of rows, of which a core's second cache holds one as floats. They are multiples of
  // the tiles' six rows. Of long rows it holds a part, and the sums of all columns wait for the
  // rest.
  const std::int64_t length = std::min(p.k, tuning::kBlockColumns);
  const std::int64_t fitting = std::min(tuning::kBlockFloats / length, tuning::kMaxBlockRows);
  const std::int64_t blocks = (p.m + fitting - 1) / fitting;
  const std::int64_t height = ((p.m + blocks - 1) / blocks + 5) / 6 * 6;
  const bool in_parts = length < p.k;
  const std::int64_t row = in_parts ? (p.n + kWidth - 1) / kWidth * kWidth : kWidth;
  const Scratch scratch(static_cast<std::size_t>(height * (length + row) + kDepth * kWidth) *
                        sizeof(float));
  float* const b = scratch.as<float>();
  float* const c = b + kDepth * kWidth;
  float* const a = c + height * row;
  for (std::int64_t first = 0; first < p.m; first += height) {
    const std::int64_t rows = std::min(height, p.m - first);
    for (std::int64_t begin = 0; begin < p.k; begin += length) {
      const std::int64_t end = std::min(p.k, begin + length);
      PackRows(p, first, rows, begin, end, a);
      for (std::int64_t j = 0; j < p.n; j += kWidth) {
        const Sums sums{c + (in_parts ? j : 0), row};
        AddTerms(p, rows, j, begin, end, a, b, sums);
        if (end < p.k) continue;
        const std::int64_t columns = std::min(kWidth, p.n - j);
        for (std::int64_t i = 0; i < rows; ++i)
          FromFloats(sums.data + i * row, p.c + (first + i) * p.c_stride + j, columns);
      }
    }
  }
}

void Halves(const Float16Product<Half>& p) { MultiplyInBlocks(p); }
void BFloat16s(const Float16Product<BFloat16>& p) { MultiplyInBlocks(p); }

}  // namespace
}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(Halves);
HWY_EXPORT(BFloat16s);

void multiply_in_blocks(const Float16Product<Half>& product) {
  HWY_DYNAMIC_DISPATCH(Halves)(product);
}
void multiply_in_blocks(const Float16Product<BFloat16>& product) {
  HWY_DYNAMIC_DISPATCH(BFloat16s)(product);
}

}  // namespace tandem::cpu
#endif  // HWY_ONCE
