#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tandem/kernels/cpu/elementwise/float16_rows.h"
#include "tandem/kernels/cpu/support/number_types.h"

// What reductions are made of: how two values are combined, and the same for a row and for the
// columns of a matrix.

namespace tandem::cpu {

enum class Reduction { kSum, kSquares, kProduct, kMax, kMin };

/// The value that changes nothing.
template <Reduction kKind, class C>
C reduction_identity() {
  if constexpr (kKind == Reduction::kProduct) {
    return C(1);
  } else if constexpr (kKind == Reduction::kMax || kKind == Reduction::kMin) {
    using L = std::numeric_limits<C>;
    if constexpr (L::has_infinity)
      return kKind == Reduction::kMax ? -L::infinity() : L::infinity();
    else
      return kKind == Reduction::kMax ? L::lowest() : L::max();
  } else {
    return C(0);
  }
}

/// Two partial results as one. NaN wins over everything.
template <Reduction kKind, class C>
inline C combine(C a, C b) {
  if constexpr (kKind == Reduction::kProduct) {
    if constexpr (std::is_integral_v<C>)
      return static_cast<C>(1u * a * b);  // no int that could overflow
    else
      return a * b;
  } else if constexpr (kKind == Reduction::kMax) {
    return b > a || b != b ? b : a;
  } else if constexpr (kKind == Reduction::kMin) {
    return b < a || b != b ? b : a;
  } else {
    return static_cast<C>(a + b);
  }
}

/// An element as it goes into the result.
template <Reduction kKind, class C, class T>
inline C contribution(T x) {
  const C value = static_cast<C>(x);
  if constexpr (kKind != Reduction::kSquares) {
    return value;
  } else if constexpr (is_complex_type<C>) {
    return C(value.real() * value.real() + value.imag() * value.imag());
  } else if constexpr (std::is_integral_v<C>) {
    return static_cast<C>(1u * value * value);
  } else {
    return value * value;
  }
}

/// The loops of one reduction of elements T in C.
template <class T, class C>
struct ReduceSteps {
  /// The result of n elements in a row.
  C (*row)(const T* x, std::int64_t n);
  /// Combines acc[j] with column j of a matrix whose rows are `stride` elements apart.
  void (*columns)(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, C* acc);
};

// Aligned: its loops are of so few instructions that where they lie makes up to a third of the
// time.
template <Reduction kKind, class T, class C>
[[gnu::aligned(64)]] C reduce_row(const T* x, std::int64_t n) {
  constexpr int kLanes = 32;  // independent accumulators, which compilers turn into vectors
  std::int64_t i = 0;
  C result = reduction_identity<kKind, C>();
  if (n >= 2 * kLanes) {
    C acc[kLanes];
    for (int k = 0; k < kLanes; ++k) acc[k] = contribution<kKind, C>(x[k]);
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      for (int k = 0; k < kLanes; ++k)
        acc[k] = combine<kKind>(acc[k], contribution<kKind, C>(x[i + k]));
    }
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int k = 0; k < width; ++k) acc[k] = combine<kKind>(acc[k], acc[k + width]);
    }
    result = acc[0];
  }
  for (; i < n; ++i) result = combine<kKind>(result, contribution<kKind, C>(x[i]));
  return result;
}

template <Reduction kKind, class T, class C>
void reduce_columns(const T* __restrict x, std::int64_t rows, std::int64_t stride,
                    std::int64_t columns, C* __restrict acc) {
  constexpr std::int64_t kBlock = 16;
  // Vectors of SSE2 do not compare integers of 64 bits: one by one is faster.
  constexpr bool kVectors = !std::is_integral_v<C> || sizeof(C) < 8 ||
                            (kKind != Reduction::kMax && kKind != Reduction::kMin);
  const std::int64_t whole = kVectors ? columns - columns % kBlock : 0;
  const T* row = x;
  for (std::int64_t r = 0; whole > 0 && r < rows; ++r, row += stride) {
    for (std::int64_t j = 0; j < whole; j += kBlock) {
      for (std::int64_t k = 0; k < kBlock; ++k)
        acc[j + k] = combine<kKind>(acc[j + k], contribution<kKind, C>(row[j + k]));
    }
  }
  row = x;
  for (std::int64_t r = 0; whole < columns && r < rows; ++r, row += stride) {
    for (std::int64_t j = whole; j < columns; ++j)
      acc[j] = combine<kKind>(acc[j], contribution<kKind, C>(row[j]));
  }
}

/// The loops for float and double, with the best instructions that the processor has.
template <class F>
ReduceSteps<F, F> simd_reduce_steps(Reduction kind);

/// 16-bit floats, through float.
template <Reduction kKind, class T>
float reduce_float16_row(const T* x, std::int64_t n) {
  constexpr std::int64_t kChunk = 512;
  float chunk[kChunk];
  const auto steps = simd_reduce_steps<float>(kKind);
  float result = reduction_identity<kKind, float>();
  for (std::int64_t i = 0; i < n; i += kChunk) {
    const std::int64_t count = std::min(kChunk, n - i);
    to_floats(x + i, chunk, count);
    result = combine<kKind>(result, steps.row(chunk, count));
  }
  return result;
}

template <Reduction kKind, class T>
void reduce_float16_columns(const T* x, std::int64_t rows, std::int64_t stride,
                            std::int64_t columns, float* acc) {
  constexpr std::int64_t kChunk = 512;
  float chunk[kChunk];
  const auto steps = simd_reduce_steps<float>(kKind);
  if (stride == columns && columns <= kChunk / 2) {  // several rows at once
    for (std::int64_t r = 0; r < rows;) {
      const std::int64_t n = std::min(kChunk / columns, rows - r);
      to_floats(x + r * columns, chunk, n * columns);
      steps.columns(chunk, n, columns, columns, acc);
      r += n;
    }
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r, x += stride) {
    for (std::int64_t j = 0; j < columns; j += kChunk) {
      const std::int64_t count = std::min(kChunk, columns - j);
      to_floats(x + j, chunk, count);
      steps.columns(chunk, 1, count, count, acc + j);
    }
  }
}

/// The loops for T: C is float for 16-bit floats, any type that T converts to otherwise.
template <Reduction kKind, class T, class C>
constexpr ReduceSteps<T, C> reduce_steps() {
  if constexpr (std::is_floating_point_v<T> && std::is_same_v<T, C>) {
    return simd_reduce_steps<T>(kKind);
  } else if constexpr (is_float16<T>) {
    return {reduce_float16_row<kKind, T>, reduce_float16_columns<kKind, T>};
  } else {
    return {reduce_row<kKind, T, C>, reduce_columns<kKind, T, C>};
  }
}

}  // namespace tandem::cpu
