#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "tandem/core/dtype.h"
#include "tandem/kernels/cpu/random/philox.h"

// Random numbers of a distribution from the numbers of a Philox stream, bit by bit as TensorFlow
// makes them.
//
// A distribution has a `kGroup`: so many values come from one block (or, where draws may be
// rejected, from a part of the stream that belongs to the group alone). `operator()(source, out)`
// makes one group.

namespace tandem::cpu {

// ---- Numbers from [0, 1): random bits as the mantissa of a number from [1, 2), less one ----

inline float unit_float(std::uint32_t x) {
  return std::bit_cast<float>((127u << 23) | (x & 0x7fffffu)) - 1.0f;
}
inline double unit_double(std::uint32_t x0, std::uint32_t x1) {
  const std::uint64_t mantissa = (std::uint64_t{x0 & 0xfffffu} << 32) | x1;
  return std::bit_cast<double>((std::uint64_t{1023} << 52) | mantissa) - 1.0;
}
inline Half unit_half(std::uint32_t x) {
  return Half(half_bits_to_float(static_cast<std::uint16_t>((15u << 10) | (x & 0x3ffu))) - 1.0f);
}
inline BFloat16 unit_bfloat16(std::uint32_t x) {
  BFloat16 y;
  y.bits = static_cast<std::uint16_t>((127u << 7) | (x & 0x7fu));
  return BFloat16(static_cast<float>(y) - 1.0f);
}

template <class T>
struct Uniform {
  using Value = T;
  static constexpr int kGroup = sizeof(T) == 8 ? 2 : 4;
  static constexpr double kCost = 4.0;  // ns a group
  void operator()(const std::uint32_t* x, T* out) const {
    for (std::size_t i = 0; i < kGroup; ++i) {
      if constexpr (std::is_same_v<T, float>) {
        out[i] = unit_float(x[i]);
      } else if constexpr (std::is_same_v<T, double>) {
        out[i] = unit_double(x[2 * i], x[2 * i + 1]);
      } else if constexpr (std::is_same_v<T, Half>) {
        out[i] = unit_half(x[i]);
      } else {
        out[i] = unit_bfloat16(x[i]);
      }
    }
  }
};

/// All bits random.
template <class T>
struct FullInt {
  using Value = T;
  static constexpr int kGroup = sizeof(T) == 8 ? 2 : 4;
  static constexpr double kCost = 4.0;
  void operator()(const std::uint32_t* x, T* out) const {
    for (std::size_t i = 0; i < kGroup; ++i) {
      if constexpr (sizeof(T) == 8) {
        out[i] = static_cast<T>(Philox::join(x[2 * i], x[2 * i + 1]));
      } else {
        out[i] = static_cast<T>(x[i]);
      }
    }
  }
};

/// Integers from [low, high), by the remainder.
template <class T>
struct UniformInt {
  using Value = T;
  using Unsigned = std::make_unsigned_t<T>;
  static constexpr int kGroup = sizeof(T) == 8 ? 2 : 4;
  static constexpr double kCost = 10.0;
  T low;
  Unsigned width;
  UniformInt(T from, T to)
      : low(from),
        width(static_cast<Unsigned>(static_cast<Unsigned>(to) - static_cast<Unsigned>(from))) {}
  void operator()(const std::uint32_t* x, T* out) const {
    Unsigned bits[kGroup];
    FullInt<Unsigned>()(x, bits);
    for (int i = 0; i < kGroup; ++i)
      out[i] = static_cast<T>(static_cast<Unsigned>(low) + bits[i] % width);
  }
};

// ---- Normal numbers, by Box and Muller ----

inline void box_muller(std::uint32_t x0, std::uint32_t x1, float* out) {
  constexpr float kSmallest = 1.0e-7f;  // keeps the logarithm finite
  const float u1 = std::max(unit_float(x0), kSmallest);
  const auto angle =
      static_cast<float>(2.0 * std::numbers::pi * static_cast<double>(unit_float(x1)));
  const float radius = std::sqrt(-2.0f * std::log(u1));
  out[0] = std::sin(angle) * radius;
  out[1] = std::cos(angle) * radius;
}
inline void box_muller(std::uint32_t x0, std::uint32_t x1, std::uint32_t x2, std::uint32_t x3,
                       double* out) {
  constexpr double kSmallest = 1.0e-7;
  const double u1 = std::max(unit_double(x0, x1), kSmallest);
  const double angle = 2.0 * std::numbers::pi * unit_double(x2, x3);
  const double radius = std::sqrt(-2.0 * std::log(u1));
  out[0] = std::sin(angle) * radius;
  out[1] = std::cos(angle) * radius;
}

template <class T>
struct Normal {
  using Value = T;
  static constexpr int kGroup = sizeof(T) == 8 ? 2 : 4;
  static constexpr double kCost = 60.0;
  void operator()(const std::uint32_t* x, T* out) const {
    if constexpr (std::is_same_v<T, double>) {
      box_muller(x[0], x[1], x[2], x[3], out);
    } else {
      float wide[4];
      box_muller(x[0], x[1], wide);
      box_muller(x[2], x[3], wide + 2);
      for (int i = 0; i < 4; ++i) out[i] = T(wide[i]);
    }
  }
};

/// Normal numbers, those of magnitude 2 or more drawn again.
template <class T>
struct TruncatedNormal {
  using Value = T;
  static constexpr int kGroup = sizeof(T) == 8 ? 2 : 4;
  static constexpr double kCost = 80.0;
  /// Blocks of the stream set aside for a group: 256 numbers a value.
  static constexpr std::uint64_t kBlocksPerGroup = kGroup * 256 / 4;
  void operator()(PhiloxNumbers& next, T* out) const {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    for (int have = 0; have < kGroup;) {
      Wide pair[2];
      const std::uint32_t x0 = next();
      const std::uint32_t x1 = next();
      if constexpr (std::is_same_v<T, double>) {
        const std::uint32_t x2 = next();
        const std::uint32_t x3 = next();
        box_muller(x0, x1, x2, x3, pair);
      } else {
        box_muller(x0, x1, pair);
      }
      for (int k = 0; k < 2 && have < kGroup; ++k) {
        if (std::abs(pair[k]) < Wide(2)) out[have++] = T(pair[k]);
      }
    }
  }
};

}  // namespace tandem::cpu
