// Products of half and bfloat16 matrices block by block, against sums of doubles.

#include "tandem/kernels/cpu/linalg/float16_product.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace {

using tandem::BFloat16;
using tandem::Half;
using tandem::cpu::Float16Product;

template <class T>
void check(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a, bool transpose_b,
           std::int64_t gap) {
  const std::int64_t a_rows = transpose_a ? k : m, a_stride = (transpose_a ? m : k) + gap;
  const std::int64_t b_rows = transpose_b ? n : k, b_stride = (transpose_b ? k : n) + gap;
  const std::int64_t c_stride = n + gap;
  std::mt19937 random(static_cast<unsigned>(m * 7 + n * 3 + k));
  std::uniform_real_distribution<float> uniform(-1, 1);
  const auto filled = [&](std::int64_t count) {
    std::vector<T> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(T(uniform(random)));
    return values;
  };
  const std::vector<T> a = filled(a_rows * a_stride), b = filled(b_rows * b_stride);
  const T untouched(-77.0f);
  std::vector<T> c(static_cast<std::size_t>(m * c_stride), untouched);
  Float16Product<T> p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a = a.data();
  p.a_stride = a_stride;
  p.transpose_a = transpose_a;
  p.b = b.data();
  p.b_stride = b_stride;
  p.transpose_b = transpose_b;
  p.c = c.data();
  p.c_stride = c_stride;
  multiply_in_blocks(p);
  const auto at = [](const std::vector<T>& x, std::int64_t i) {
    return static_cast<float>(x[static_cast<std::size_t>(i)]);
  };
  // One rounding of the sum to 8 (11) bits, and those of the sum in float.
  const double rounding = std::is_same_v<T, BFloat16> ? 1.0 / 256 : 1.0 / 2048;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const double x = at(a, transpose_a ? l * a_stride + i : i * a_stride + l);
        const double y = at(b, transpose_b ? j * b_stride + l : l * b_stride + j);
        sum += x * y;
        size += std::abs(x * y);
      }
      ASSERT_NEAR(at(c, i * c_stride + j), sum, std::abs(sum) * rounding + size * 1e-5)
          << m << " x " << n << " x " << k << " at " << i << ", " << j;
    }
    for (std::int64_t j = n; j < c_stride; ++j)
      ASSERT_EQ(at(c, i * c_stride + j), static_cast<float>(untouched)) << "beyond the row's end";
  }
}

TEST(Float16Product, AgreesWithSumsOfDoubles) {
  struct Sizes {
    std::int64_t m, n, k;
  };
  for (const Sizes s : {Sizes{1, 1, 1}, Sizes{5, 3, 2}, Sizes{6, 64, 128}, Sizes{7, 65, 129},
                        Sizes{40, 100, 300}, Sizes{400, 33, 70}, Sizes{13, 130, 1500}}) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        check<BFloat16>(s.m, s.n, s.k, transpose_a, transpose_b, 0);
        check<Half>(s.m, s.n, s.k, transpose_a, transpose_b, 5);
      }
    }
  }
}

TEST(Float16Product, KeepsInfinityAndNan) {
  const float inf = std::numeric_limits<float>::infinity();
  const BFloat16 a[] = {BFloat16(inf), BFloat16(1.0f), BFloat16(3e38f), BFloat16(3e38f)};
  const BFloat16 b[] = {BFloat16(1.0f), BFloat16(0.0f), BFloat16(1.0f), BFloat16(0.0f)};
  BFloat16 c[4];
  Float16Product<BFloat16> p;
  p.m = p.n = p.k = p.a_stride = p.b_stride = p.c_stride = 2;
  p.a = a;
  p.b = b;
  p.c = c;
  multiply_in_blocks(p);
  EXPECT_EQ(static_cast<float>(c[0]), inf);
  EXPECT_TRUE(std::isnan(static_cast<float>(c[1])));
  EXPECT_EQ(static_cast<float>(c[2]), inf);  // the sum overflows
  EXPECT_EQ(static_cast<float>(c[3]), 0.0f);
}

}  // namespace
