#include "tandem/core/half.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace tandem {
namespace {

// The value of a pattern by the formula of its format, in exact double arithmetic.
double value_of(unsigned bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
  const double sign = bits >> (exponent_bits + mantissa_bits) ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

template <class T, int kExponentBits, int kMantissaBits>
void check_every_pattern() {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    T t;
    t.bits = static_cast<std::uint16_t>(bits);
    const double exact = value_of(bits, kExponentBits, kMantissaBits);
    const float value = static_cast<float>(t);
    if (std::isnan(exact)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(T(value)))) << bits;
      ASSERT_FALSE(t == t) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), exact) << bits;
    ASSERT_EQ(std::signbit(value), bits >= 32768) << bits;
    ASSERT_EQ(T(value).bits, bits);
  }
}

// Between two neighbours the middle goes to the even one, what is nearer to one goes to that one.
template <class T>
void check_rounding(unsigned last_finite) {
  for (unsigned bits = 0; bits < last_finite; ++bits) {
    T low, high;
    low.bits = static_cast<std::uint16_t>(bits);
    high.bits = static_cast<std::uint16_t>(bits + 1);
    const float at = static_cast<float>((static_cast<double>(static_cast<float>(low)) +
                                         static_cast<double>(static_cast<float>(high))) /
                                        2);
    const unsigned even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(T(at).bits, even) << bits;
    ASSERT_EQ(T(-at).bits, even + 32768) << bits;
    ASSERT_EQ(T(std::nextafter(at, 0.0f)).bits, bits) << bits;
    ASSERT_EQ(T(std::nextafter(at, INFINITY)).bits, bits + 1) << bits;
  }
}

TEST(Half, EveryPatternHasItsValue) { check_every_pattern<Half, 5, 10>(); }
TEST(Half, RoundsToNearestEven) { check_rounding<Half>(0x7bff); }

TEST(Half, OverflowsToInfinity) {
  EXPECT_EQ(Half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Half(65519.996f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(-1e30f).bits, 0xfc00);
  EXPECT_EQ(Half(1e-30f).bits, 0);
  EXPECT_EQ(Half(-1e-30f).bits, 0x8000);
}

TEST(BFloat16, EveryPatternHasItsValue) { check_every_pattern<BFloat16, 8, 7>(); }
TEST(BFloat16, RoundsToNearestEven) { check_rounding<BFloat16>(0x7f7f); }

TEST(BFloat16, OverflowsToInfinity) {
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(BFloat16(3.3895314e38f).bits, 0x7f7f);
  EXPECT_EQ(BFloat16(-INFINITY).bits, 0xff80);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::denorm_min()).bits, 0);
}

TEST(HalfAndBFloat16, CompareAsFloats) {
  EXPECT_TRUE(Half(0.0f) == Half(-0.0f));
  EXPECT_FALSE(Half(1.0f) == Half(2.0f));
  EXPECT_TRUE(BFloat16(0.0f) == BFloat16(-0.0f));
}

}  // namespace
}  // namespace tandem
