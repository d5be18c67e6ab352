#pragma once

#include <bit>
#include <cstdint>

namespace tandem {

/// Converts a float to the nearest bfloat16 (ties to even; NaN stays NaN).
constexpr std::uint16_t float_to_bfloat16_bits(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  bits += 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<std::uint16_t>(bits >> 16);
}

/// Converts a float to the nearest IEEE binary16 (ties to even; overflow to infinity; subnormals
/// kept).
constexpr std::uint16_t float_to_half_bits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // subnormal half or zero
    if (magnitude < 0x33000000u) return static_cast<std::uint16_t>(sign);
    const std::uint32_t shift = 126u - (magnitude >> 23);
    const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint32_t rounded = mantissa >> shift;
    const std::uint32_t rest = mantissa & ((1u << shift) - 1u);
    const std::uint32_t half_way = 1u << (shift - 1u);
    const std::uint32_t up = (rest > half_way || (rest == half_way && (rounded & 1u))) ? 1u : 0u;
    return static_cast<std::uint16_t>(sign | (rounded + up));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

constexpr float half_bits_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  std::uint32_t exponent = (half >> 10) & 0x1fu;
  std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 31u) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0u) {
    if (mantissa == 0u) return std::bit_cast<float>(sign);
    exponent = 1u;
    while ((mantissa & 0x400u) == 0u) {
      mantissa <<= 1;
      --exponent;
    }
    mantissa &= 0x3ffu;
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

/// The C++ element type of DType::kHalf: storage only; arithmetic is done in float.
struct Half {
  std::uint16_t bits = 0;
  constexpr Half() = default;
  constexpr explicit Half(float value) : bits(float_to_half_bits(value)) {}
  constexpr explicit operator float() const { return half_bits_to_float(bits); }
  constexpr bool operator==(const Half& other) const { return float(*this) == float(other); }
};

/// The C++ element type of DType::kBFloat16: storage only; arithmetic is done in float.
struct BFloat16 {
  std::uint16_t bits = 0;
  constexpr BFloat16() = default;
  constexpr explicit BFloat16(float value) : bits(float_to_bfloat16_bits(value)) {}
  constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  constexpr bool operator==(const BFloat16& other) const { return float(*this) == float(other); }
};

}  // namespace tandem
