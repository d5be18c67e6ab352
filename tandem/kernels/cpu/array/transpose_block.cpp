// Blocks of a matrix transposed by Highway: every processor with vectors shuffles 16 bytes at a
// time, which is enough for work that is bound by memory.

#include "tandem/kernels/cpu/array/transpose_block.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/array/transpose_block.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kLine = 64;  // bytes of a cache line

#if HWY_TARGET == HWY_SCALAR

template <class T>
inline constexpr std::int64_t kSquare = 1;

template <class T>
HWY_INLINE void transpose_square(T* to, std::int64_t, const T* from, std::int64_t) {
  *to = *from;
}

#else

template <class T>
inline constexpr std::int64_t kSquare = 16 / static_cast<std::int64_t>(sizeof(T));

// kSquare x kSquare: rows i and i + kSquare / 2 are interleaved until every element has come to its
// place.
template <class T>
HWY_INLINE void transpose_square(T* to, std::int64_t to_row, const T* from, std::int64_t from_row) {
  constexpr std::int64_t n = kSquare<T>;
  const hn::FixedTag<T, static_cast<std::size_t>(n)> d;
  using Vec = hn::Vec<decltype(d)>;
  Vec v[n];
  for (std::int64_t i = 0; i < n; ++i) v[i] = hn::LoadU(d, from + i * from_row);
  for (std::int64_t stage = 1; stage < n; stage *= 2) {
    Vec w[n];
    for (std::int64_t i = 0; i < n / 2; ++i) {
      w[2 * i] = hn::InterleaveLower(d, v[i], v[i + n / 2]);
      w[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + n / 2]);
    }
    for (std::int64_t i = 0; i < n; ++i) v[i] = w[i];
  }
  for (std::int64_t i = 0; i < n; ++i) hn::StoreU(v[i], d, to + i * to_row);
}

#endif

// A tile of one cache line each way. It passes through a buffer, because lines at distances of a
// power of two would drive each other out of the cache before they are complete.
template <class T>
HWY_INLINE void transpose_tile(T* to, std::int64_t to_row, const T* from,
                               std::int64_t from_column) {
  constexpr std::int64_t edge = kLine / static_cast<std::int64_t>(sizeof(T));
  alignas(64) T buffer[edge * edge];
  for (std::int64_t c = 0; c < edge; c += kSquare<T>) {
    for (std::int64_t r = 0; r < edge; r += kSquare<T>) {
      transpose_square(buffer + r * edge + c, edge, from + c * from_column + r, from_column);
    }
  }
  for (std::int64_t r = 0; r < edge; ++r) std::memcpy(to + r * to_row, buffer + r * edge, kLine);
}

template <class T>
void transpose_edge(T* to, std::int64_t to_row, const T* from, std::int64_t from_column,
                    std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) to[r * to_row + c] = from[c * from_column + r];
  }
}

// Tiles go by squares of kSide x kSide, which bounds the number of memory pages in use at a time.
constexpr std::int64_t kSide = 8;

template <class T>
void transpose(T* to, std::int64_t to_row, const T* from, std::int64_t from_column,
               std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t edge = kLine / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t whole_rows = rows / edge * edge;
  const std::int64_t whole_columns = columns / edge * edge;
  for (std::int64_t c0 = 0; c0 < whole_columns; c0 += kSide * edge) {
    const std::int64_t c1 = std::min(whole_columns, c0 + kSide * edge);
    for (std::int64_t r0 = 0; r0 < whole_rows; r0 += kSide * edge) {
      const std::int64_t r1 = std::min(whole_rows, r0 + kSide * edge);
      for (std::int64_t c = c0; c < c1; c += edge) {
        for (std::int64_t r = r0; r < r1; r += edge) {
          transpose_tile(to + r * to_row + c, to_row, from + c * from_column + r, from_column);
        }
      }
    }
    transpose_edge(to + whole_rows * to_row + c0, to_row, from + c0 * from_column + whole_rows,
                   from_column, rows - whole_rows, c1 - c0);
  }
  // The last columns, in stripes that stay in the cache.
  for (std::int64_t r = 0; r < rows; r += edge) {
    transpose_edge(to + r * to_row + whole_columns, to_row, from + whole_columns * from_column + r,
                   from_column, std::min(edge, rows - r), columns - whole_columns);
  }
}

}  // namespace

#define TANDEM_DEFINE_TRANSPOSE(BITS)                                             \
  void transpose##BITS(std::uint##BITS##_t* to, std::int64_t to_row,              \
                       const std::uint##BITS##_t* from, std::int64_t from_column, \
                       std::int64_t rows, std::int64_t columns) {                 \
    transpose(to, to_row, from, from_column, rows, columns);                      \
  }
TANDEM_DEFINE_TRANSPOSE(8)
TANDEM_DEFINE_TRANSPOSE(16)
TANDEM_DEFINE_TRANSPOSE(32)
TANDEM_DEFINE_TRANSPOSE(64)
#undef TANDEM_DEFINE_TRANSPOSE

}  // namespace HWY_NAMESPACE
}  // namespace tandem::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

#define TANDEM_DISPATCH_TRANSPOSE(BITS)                                                  \
  HWY_EXPORT(transpose##BITS);                                                           \
  void transpose_block(std::uint##BITS##_t* to, std::int64_t to_row,                     \
                       const std::uint##BITS##_t* from, std::int64_t from_column,        \
                       std::int64_t rows, std::int64_t columns) {                        \
    HWY_DYNAMIC_DISPATCH(transpose##BITS)(to, to_row, from, from_column, rows, columns); \
  }
TANDEM_DISPATCH_TRANSPOSE(8)
TANDEM_DISPATCH_TRANSPOSE(16)
TANDEM_DISPATCH_TRANSPOSE(32)
TANDEM_DISPATCH_TRANSPOSE(64)
#undef TANDEM_DISPATCH_TRANSPOSE

}  // namespace tandem::cpu
#endif  // HWY_ONCE
