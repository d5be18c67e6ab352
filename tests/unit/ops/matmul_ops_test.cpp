// Products of matrices of sizes that fill no vector, register tile or block, against plain sums.

#include "tandem/ops/matmul_ops.h"

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/ops/ops.h"

namespace tandem {
namespace {

template <class T>
T value(std::int64_t i) {
  if constexpr (std::is_integral_v<T>) {
    // Sums overflow, and wrap around.
    return static_cast<T>(static_cast<std::uint64_t>(i + 1) * 0x9e3779b97f4a7c15u);
  } else {
    return T(static_cast<double>(i * 7 % 23) - 11);
  }
}

template <class T>
std::vector<T> values(std::int64_t count) {
  std::vector<T> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(value<T>(i));
  return out;
}

struct Size {
  std::int64_t m, k, n;
};
constexpr Size kSizes[] = {{1, 1, 1},      {1, 70, 9},     {2, 3, 35},    {5, 129, 1},
                           {7, 33, 17},    {13, 17, 1},    {33, 300, 5},  {97, 5, 70},
                           {130, 131, 66}, {3, 9000, 2},   {1, 301, 299}, {310, 290, 1},
                           {70, 97, 129},  {530, 33, 257}, {4, 300, 513}};

// Sums of whole numbers are exact in any order.
template <class T>
void expect_plain_sums() {
  for (const Size& s : kSizes) {
    const auto a = values<T>(s.m * s.k), b = values<T>(s.k * s.n);
    for (const bool turn_a : {false, true}) {
      for (const bool turn_b : {false, true}) {
        std::vector<T> expected;
        for (std::int64_t i = 0; i < s.m; ++i) {
          for (std::int64_t j = 0; j < s.n; ++j) {
            using Sum = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
            Sum sum{};
            for (std::int64_t l = 0; l < s.k; ++l) {
              const T x = a[static_cast<std::size_t>(turn_a ? l * s.m + i : i * s.k + l)];
              const T y = b[static_cast<std::size_t>(turn_b ? j * s.k + l : l * s.n + j)];
              sum += static_cast<Sum>(x) * static_cast<Sum>(y);
            }
            expected.push_back(static_cast<T>(sum));
          }
        }
        const Tensor x = Tensor::from(a, turn_a ? Shape{s.k, s.m} : Shape{s.m, s.k});
        const Tensor y = Tensor::from(b, turn_b ? Shape{s.n, s.k} : Shape{s.k, s.n});
        const Tensor c = matmul(x, y, {.transpose_a = turn_a, .transpose_b = turn_b});
        EXPECT_EQ(c.to_vector<T>(), expected) << s.m << " x " << s.k << " x " << s.n;
      }
    }
  }
}

TEST(MatMul, SizesThatFillNoBlock) {
  expect_plain_sums<std::int32_t>();
  expect_plain_sums<std::int64_t>();
  expect_plain_sums<float>();
  expect_plain_sums<double>();
  expect_plain_sums<std::complex<float>>();
}

TEST(MatMul, OneValueThatIsNoNumberStaysInItsRow) {
  auto a = values<double>(std::int64_t{40} * 40);
  a[40 * 3 + 5] = std::numeric_limits<double>::quiet_NaN();
  for (const std::int64_t n : {1, 40}) {
    const Tensor c = matmul(Tensor::from(a, {40, 40}), ones({40, n}, float64));
    const auto found = c.to_vector<double>();
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(std::isnan(found[i]), static_cast<std::int64_t>(i) / n == 3);
    }
  }
}

}  // namespace
}  // namespace tandem
