#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/linalg/matrix_product.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

// What products of T are summed in: float for the short formats, unsigned numbers for integers,
// where overflow wraps.
template <class T>
auto sum_type() {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return float{};
  } else if constexpr (std::is_integral_v<T>) {
    return std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>{};
  } else {
    return T{};
  }
}
template <class T>
using SumOf = decltype(sum_type<T>());

template <class T>
struct Matrix {
  const T* data;
  std::int64_t row_stride;
  std::int64_t column_stride;
  bool conjugate;
  SumOf<T> operator()(std::int64_t row, std::int64_t column) const {
    const auto value = static_cast<SumOf<T>>(data[row * row_stride + column * column_stride]);
    if constexpr (std::is_same_v<T, std::complex<float>> ||
                  std::is_same_v<T, std::complex<double>>) {
      return conjugate ? std::conj(value) : value;
    } else {
      return value;
    }
  }
};

constexpr std::int64_t kRows = 4;
constexpr std::int64_t kColumns = 16;

// Columns [column, column + kColumns) of b, one row after the other, zeros beyond the edge.
template <class T>
void pack(const Matrix<T>& b, std::int64_t k, std::int64_t column, std::int64_t columns,
          SumOf<T>* panel) {
  for (std::int64_t p = 0; p < k; ++p) {
    for (std::int64_t j = 0; j < kColumns; ++j) {
      panel[p * kColumns + j] = j < columns ? b(p, column + j) : SumOf<T>{};
    }
  }
}

template <class T>
void tile(const Matrix<T>& a, std::int64_t row, std::int64_t rows, std::int64_t k,
          const SumOf<T>* panel, T* c, std::int64_t n, std::int64_t columns) {
  SumOf<T> sums[kRows][kColumns] = {};
  for (std::int64_t p = 0; p < k; ++p) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const SumOf<T> factor = a(row + r, p);
      for (std::int64_t j = 0; j < kColumns; ++j) sums[r][j] += factor * panel[p * kColumns + j];
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t j = 0; j < columns; ++j) c[r * n + j] = static_cast<T>(sums[r][j]);
  }
}

// Row by row, where the products are too small or too narrow for panels.
template <class T>
void multiply_rows(const Matrix<T>& a, const Matrix<T>& b, std::int64_t row, std::int64_t rows,
                   std::int64_t n, std::int64_t k, T* c) {
  for (std::int64_t r = row; r < row + rows; ++r) {
    for (std::int64_t j = 0; j < n; ++j) {
      SumOf<T> sum{};
      for (std::int64_t p = 0; p < k; ++p) sum += a(r, p) * b(p, j);
      c[r * n + j] = static_cast<T>(sum);
    }
  }
}

template <class T>
void multiply(KernelContext& context, const MatrixProduct& p) {
  constexpr std::int64_t kNarrow = 8, kSmall = 256, kMaxRows = 256;
  const bool in_rows = p.n < kNarrow || p.k == 0 || p.m <= kSmall / p.n / p.k;
  const std::int64_t width = in_rows ? p.n : kColumns;
  const std::int64_t panels = (p.n + width - 1) / width;
  const std::int64_t blocks = (p.m + kMaxRows - 1) / kMaxRows;
  const auto work = [&](std::int64_t begin, std::int64_t end) {
    std::vector<SumOf<T>> panel(in_rows ? 0 : static_cast<std::size_t>(p.k * kColumns));
    for (std::int64_t piece = begin; piece < end; ++piece) {
      const std::int64_t block = piece % blocks, i = piece / blocks / panels;
      const std::int64_t column = piece / blocks % panels * width;
      const std::int64_t columns = std::min(width, p.n - column);
      const std::int64_t first = block * kMaxRows, last = std::min(p.m, first + kMaxRows);
      const Matrix<T> a{static_cast<const T*>(p.a) + p.a_matrix(i) * p.m * p.k,
                        p.transpose_a ? 1 : p.k, p.transpose_a ? p.m : 1, p.conjugate_a};
      const Matrix<T> b{static_cast<const T*>(p.b) + p.b_matrix(i) * p.k * p.n,
                        p.transpose_b ? 1 : p.n, p.transpose_b ? p.k : 1, p.conjugate_b};
      T* c = static_cast<T*>(p.c) + i * p.m * p.n + column;
      if (in_rows) {
        multiply_rows(a, b, first, last - first, p.n, p.k, c);
        continue;
      }
      if (piece == begin || block == 0) pack(b, p.k, column, columns, panel.data());
      for (std::int64_t row = first; row < last; row += kRows) {
        tile(a, row, std::min(kRows, last - row), p.k, panel.data(), c + row * p.n, p.n, columns);
      }
    }
  };
  const double cost = static_cast<double>(std::min(p.m, kMaxRows)) *
                      static_cast<double>(std::max<std::int64_t>(p.k, 1) * width) * 0.3;
  context.intra_op().parallel_for(checked_multiply(p.batch, panels * blocks), cost, work);
}

}  // namespace

void multiply_matrices_reference(KernelContext& context, const MatrixProduct& p) {
  if (p.batch == 0 || p.m == 0 || p.n == 0) return;
  with_addable(p.dtype, [&]<class T>() { multiply<T>(context, p); });
}

}  // namespace tandem::cpu
