#pragma once

#include <cstdint>

namespace tandem::cpu {

/// c[i, j] = sum over l of a[i, l] b[l, j], for matrices that are parts of larger arrays. The
/// elements of a row of b and c are neighbours, those of a lie `a_column` apart; the other numbers
/// are elements from one row to the next. `c` overlaps neither a nor b.
///
/// On the calling thread, compiled for each kind of processor: for products that are too small, or
/// whose rows lie too far apart, for the library to pack them. Sums are in the same
/// order for every row and column, whatever m and n are.
template <class T>
struct StridedProductOf {
  std::int64_t m = 0;  ///< rows of c
  std::int64_t n = 0;  ///< columns of c
  std::int64_t k = 0;  ///< length of the sums
  const T* a = nullptr;
  std::int64_t a_row = 0, a_column = 1;
  const T* b = nullptr;
  std::int64_t b_row = 0;
  T* c = nullptr;
  std::int64_t c_row = 0;
  bool add = false;  ///< to what c holds
};
using StridedProduct = StridedProductOf<float>;

void multiply_strided(const StridedProduct& product);
// Integers wrap around.
void multiply_strided(const StridedProductOf<std::uint32_t>& product);
void multiply_strided(const StridedProductOf<std::uint64_t>& product);
/// c = a x for a dense matrix of m rows and a vector of k elements.
void multiply_vector(const std::uint32_t* a, const std::uint32_t* x, std::int64_t m, std::int64_t k,
                     std::uint32_t* c);
void multiply_vector(const std::uint64_t* a, const std::uint64_t* x, std::int64_t m, std::int64_t k,
                     std::uint64_t* c);

}  // namespace tandem::cpu
