#include <algorithm>

#include "tandem/kernels/cpu/array/transpose_block.h"
#include "tandem/kernels/cpu/linalg/matrix_product.h"
#include "tandem/kernels/cpu/linalg/strided_product.h"

namespace tandem::cpu {
namespace {

// Pieces are some rows of a matrix in some columns: rows enough that b is not read too often, and a
// part of b that stays in a core's cache while they pass.
constexpr std::int64_t kRows = 96, kColumns = 256;

template <class T>
void multiply(KernelContext& context, const MatrixProduct& p) {
  const T* b = static_cast<const T*>(p.b);
  Array turned;
  const bool vector = p.n == 1 && !p.transpose_a;
  if (p.transpose_b && p.n > 1) {
    // Rows of b have to be neighbours.
    const std::int64_t count = p.b_once ? 1
                               : p.b_index.empty()
                                   ? p.batch
                                   : *std::max_element(p.b_index.begin(), p.b_index.end()) + 1;
    turned = context.allocate_temp(p.dtype, Shape{count * p.k * p.n});
    T* const to = turned.data<T>();
    context.intra_op().parallel_for(count, static_cast<double>(p.k) * static_cast<double>(p.n),
                                    [&](std::int64_t begin, std::int64_t end) {
                                      for (std::int64_t i = begin; i < end; ++i) {
                                        const std::int64_t at = i * p.k * p.n;
                                        transpose_block(to + at, p.n, b + at, p.k, p.k, p.n);
                                      }
                                    });
    b = to;
  }
  const std::int64_t down = (p.m + kRows - 1) / kRows, across = (p.n + kColumns - 1) / kColumns;
  const double cost = static_cast<double>(std::min(p.m, kRows)) *
                      static_cast<double>(std::min(p.n, kColumns)) * static_cast<double>(p.k) * 0.1;
  context.intra_op().parallel_for(
      p.batch * down * across, cost + 50, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t at = begin; at < end; ++at) {
          const std::int64_t i = at / down / across;
          const std::int64_t row = at % down * kRows, column = at / down % across * kColumns;
          StridedProductOf<T> piece;
          piece.m = std::min(kRows, p.m - row);
          piece.n = std::min(kColumns, p.n - column);
          piece.k = p.k;
          piece.a_row = p.transpose_a ? 1 : p.k;
          piece.a_column = p.transpose_a ? p.m : 1;
          piece.a = static_cast<const T*>(p.a) + p.a_matrix(i) * p.m * p.k + row * piece.a_row;
          piece.b_row = p.n;
          piece.b = b + p.b_matrix(i) * p.k * p.n + column;
          piece.c_row = p.n;
          piece.c = static_cast<T*>(p.c) + i * p.m * p.n + row * p.n + column;
          if (vector) {
            multiply_vector(piece.a, piece.b, piece.m, p.k, piece.c);
          } else {
            multiply_strided(piece);
          }
        }
      });
}

}  // namespace

bool multiply_matrices_integer(KernelContext& context, const MatrixProduct& p) {
  // Not worth it for next to no work.
  if (p.m <= 32 / p.n / std::max<std::int64_t>(p.k, 1)) return false;
  switch (p.dtype) {
    case DType::kInt32:
    case DType::kUint32: multiply<std::uint32_t>(context, p); return true;
    case DType::kInt64:
    case DType::kUint64: multiply<std::uint64_t>(context, p); return true;
    default: return false;
  }
}

}  // namespace tandem::cpu
