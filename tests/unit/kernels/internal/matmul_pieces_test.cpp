// Products whose number of rows changes from call to call are computed in pieces of a few sizes
// once many primitives were made: with the same bits.
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/kernels/cpu/onednn/matmul.h"

namespace tandem::cpu::onednn {
namespace {

std::vector<float> numbers(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::uint64_t state = 0x9E3779B97F4A7C15u * (seed + 1);
  for (float& v : values) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    v = static_cast<float>(state >> 40) * 0x1p-23f - 1.0f;
  }
  return values;
}

// Rows of the product of the same operands, however many are asked for. `guard` floats behind the
// result stay as they are.
void expect_same_rows(std::int64_t n, std::int64_t k, bool transpose_b) {
  constexpr std::int64_t kMost = 600, kGuard = 64;
  const std::vector<float> a = numbers(kMost * k, 1), b = numbers(k * n, 2);
  MatMul what{.m = kMost, .n = n, .k = k, .transpose_b = transpose_b};
  what.a_stride = k;
  what.b_stride = transpose_b ? k : n;
  what.c_stride = n;
  what.b_step = n * k;
  std::vector<float> all(static_cast<std::size_t>(kMost * n));
  ASSERT_TRUE(matmul(what, a.data(), b.data(), all.data()));
  for (std::int64_t rows = 9; rows < kMost; rows += rows < 80 ? 1 : 23) {
    what.m = rows;
    what.a_step = rows * k;
    what.c_step = rows * n;
    std::vector<float> some(static_cast<std::size_t>(rows * n + kGuard), 7.0f);
    ASSERT_TRUE(matmul(what, a.data(), b.data(), some.data()));
    ASSERT_EQ(
        std::memcmp(some.data(), all.data(), static_cast<std::size_t>(rows * n) * sizeof(float)), 0)
        << rows << " rows";
    for (std::int64_t i = rows * n; i < rows * n + kGuard; ++i)
      ASSERT_EQ(some[static_cast<std::size_t>(i)], 7.0f) << rows << " rows";
  }
}

TEST(MatMulPieces, HaveTheBitsOfTheWhole) {
  expect_same_rows(10, 128, false);
  expect_same_rows(128, 10, true);
  expect_same_rows(33, 100, false);
}

}  // namespace
}  // namespace tandem::cpu::onednn
