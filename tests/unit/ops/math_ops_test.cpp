#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/histogram_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/special_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int>;
using Bools = std::vector<bool>;

Floats floats(const Tensor& t) { return t.to_vector<float>(); }
Ints ints(const Tensor& t) { return t.to_vector<int>(); }
Bools bools(const Tensor& t) {
  const auto values = t.data<bool>();
  return {values.begin(), values.end()};
}

// The message of the error that `call` must throw.
template <class E, class F>
std::string message_of_error(F call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Operand, NumbersTakeTheDtypeOfTheTensor) {
  const Tensor x = Tensor::from<std::int8_t>(std::vector<std::int8_t>{1, 2});
  EXPECT_EQ((x + 1).dtype(), int8);
  EXPECT_EQ((2 * x).dtype(), int8);
  EXPECT_EQ((x * 2.0).dtype(), int8);  // 2 is exact
  EXPECT_EQ((Tensor::from<double>({1.0}) * 0.1).data<double>()[0], 0.1);
  EXPECT_EQ((Tensor{1.5f} + std::size_t{2}).item<float>(), 3.5f);
  EXPECT_EQ(add(1, 2).dtype(), int32);
  EXPECT_EQ(add(std::int64_t{1}, std::int64_t{2}).dtype(), int64);
  EXPECT_EQ(add(1.0, 2.0).dtype(), float32);
  EXPECT_EQ(floats(Tensor{1.0f, 2.0f} + Operand({10.0, 20.0})), (Floats{11, 22}));
}

TEST(Operand, WhatDoesNotFitSaysSo) {
  const Tensor whole{1, 2};
  EXPECT_TRUE(has(message_of_error<InvalidArgumentError>([&] { (void)(whole * 2.5); }),
                  "2.5 does not fit"));
  const Tensor small = Tensor::from<std::int8_t>(std::vector<std::int8_t>{1});
  EXPECT_TRUE(has(message_of_error<InvalidArgumentError>([&] { (void)(small + 300); }),
                  "300 does not fit"));
  const Tensor unsigned_one = Tensor::from<std::uint32_t>(std::vector<std::uint32_t>{1});
  EXPECT_THROW((void)(unsigned_one + -1), InvalidArgumentError);
  EXPECT_THROW((void)(Tensor{1.0f} + 16777217), InvalidArgumentError);  // not exact in float
  EXPECT_NO_THROW((void)(Tensor{1.0f} + 16777216));
  EXPECT_THROW((void)(Tensor{1.0f} * 1e300), InvalidArgumentError);
  EXPECT_THROW((void)(Tensor{1.0f} + true), InvalidArgumentError);
  EXPECT_THROW((void)equal(Tensor{true}, 1), InvalidArgumentError);
  EXPECT_THROW((void)(whole + std::numeric_limits<double>::quiet_NaN()), InvalidArgumentError);
}

TEST(Operators, OfTensorsVariablesAndNumbers) {
  const Tensor x{1.0f, 2.0f, 3.0f};
  const Variable v(Tensor{2.0f, 2.0f, 2.0f});
  EXPECT_EQ(floats(x * v + 1), (Floats{3, 5, 7}));
  EXPECT_EQ(floats(10 - x), (Floats{9, 8, 7}));
  EXPECT_EQ(floats(-x), (Floats{-1, -2, -3}));
  EXPECT_EQ(ints(Tensor{-7, 7} % 3), (Ints{2, 1}));
  EXPECT_EQ(bools(x == 2), (Bools{false, true, false}));
  EXPECT_EQ(bools(x != v), (Bools{true, false, true}));
  EXPECT_EQ(bools(!(x < 3)), (Bools{false, false, true}));
  EXPECT_EQ(bools((x > 1) && (x < 3)), (Bools{false, true, false}));
  EXPECT_EQ(bools((x > 1) ^ (x > 2)), (Bools{false, true, false}));
  EXPECT_EQ(ints(Tensor{6, 5} & 3), (Ints{2, 1}));
}

TEST(Operators, CompoundAssignmentLeavesOthersAlone) {
  Tensor x{1.0f, 2.0f};
  const Tensor before = x;
  x += 1;
  x *= x;
  EXPECT_EQ(floats(x), (Floats{4, 9}));
  EXPECT_EQ(floats(before), (Floats{1, 2}));
  EXPECT_THROW(x -= Tensor({1.0f, 2.0f, 3.0f}), InvalidArgumentError);
  EXPECT_EQ(floats(x), (Floats{4, 9}));
}

TEST(Arithmetic, BroadcastsInBothDirections) {
  const Tensor column = Tensor::from<float>({1, 2}, {2, 1});
  const Tensor row = Tensor::from<float>({10, 20, 30}, {3});
  EXPECT_EQ((column + row).shape(), (Shape{2, 3}));
  EXPECT_EQ(floats(column + row), (Floats{11, 21, 31, 12, 22, 32}));
  EXPECT_EQ(floats(row - column), (Floats{9, 19, 29, 8, 18, 28}));
  EXPECT_EQ((Tensor::from(std::vector<float>{}, {0}) + 1.0).shape(), (Shape{0}));
  const std::string text = message_of_error<InvalidArgumentError>([] {
    (void)(Tensor{1.0f, 2.0f} + Tensor{1.0f, 2.0f, 3.0f});
  });
  EXPECT_TRUE(has(text, "Incompatible shapes: [2] vs. [3]")) << text;
}

// Lengths around those of vectors, from addresses aligned to the element alone.
TEST(Arithmetic, EveryLengthAndAlignment) {
  std::vector<float> values(100);
  for (int i = 0; i < 100; ++i)
    values[static_cast<std::size_t>(i)] = static_cast<float>(i) * 0.25f - 7;
  for (int offset = 0; offset < 3; ++offset) {
    for (int n = 0; n < 70; ++n) {
      const Tensor x = Tensor::wrap(values.data() + offset, float32, Shape{n});
      const Floats sum = floats(x + x), root = floats(sqrt(square(x))), e = floats(exp(x));
      const Bools negative = bools(x < 0);
      for (int i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const float v = values[at + static_cast<std::size_t>(offset)];
        ASSERT_EQ(sum[at], v + v) << n;
        ASSERT_EQ(root[at], std::fabs(v)) << n;
        ASSERT_NEAR(e[at], std::exp(v), 1e-6 * std::exp(v)) << n;
        ASSERT_EQ(negative[at], v < 0) << n;
      }
    }
  }
}

TEST(Arithmetic, DtypesAreNotMixed) {
  const std::string text =
      message_of_error<InvalidArgumentError>([] { (void)(Tensor{1.0f} + Tensor{1}); });
  EXPECT_TRUE(has(text, "td::cast")) << text;
}

TEST(Arithmetic, DivisionOfIntegers) {
  EXPECT_EQ((Tensor{7} / 2).dtype(), float64);
  EXPECT_EQ((Tensor{7} / 2).data<double>()[0], 3.5);
  EXPECT_EQ(ints(floordiv(Tensor{7, -7}, 2)), (Ints{3, -4}));
  EXPECT_EQ(ints(truncatediv(Tensor{7, -7}, 2)), (Ints{3, -3}));
  EXPECT_EQ(ints(truncatemod(Tensor{7, -7}, 2)), (Ints{1, -1}));
  EXPECT_TRUE(has(message_of_error<InvalidArgumentError>([] { (void)floordiv(Tensor{1}, 0); }),
                  "Integer division by zero"));
  // The one quotient that does not fit wraps around.
  const int least = std::numeric_limits<int>::min();
  EXPECT_EQ(ints(truncatediv(Tensor{least}, -1)), (Ints{least}));
  EXPECT_EQ(ints(floormod(Tensor{least}, -1)), (Ints{0}));
  EXPECT_THROW((void)pow(Tensor{2}, -1), InvalidArgumentError);
}

TEST(Arithmetic, ValuesThatAreNoNumbers) {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(maximum(Tensor{nan}, 1.0).item<float>()));
  EXPECT_TRUE(std::isnan(minimum(Tensor{1.0f}, Tensor{nan}).item<float>()));
  EXPECT_EQ(floats(math::divide_no_nan(Tensor{1.0f, nan}, 0.0)), (Floats{0, 0}));
  EXPECT_EQ(floats(math::multiply_no_nan(Tensor{inf, 2.0f}, Tensor{0.0f, 3.0f})), (Floats{0, 6}));
  EXPECT_EQ(floats(math::xlogy(Tensor{0.0f}, 0.0)), (Floats{0}));
  EXPECT_EQ(floats(exp(Tensor{-inf, inf})), (Floats{0, inf}));
  EXPECT_EQ(floats(math::log(Tensor{0.0f, inf})), (Floats{-inf, inf}));
  EXPECT_EQ(floats(tanh(Tensor{-inf, inf})), (Floats{-1, 1}));
  EXPECT_EQ(floats(sigmoid(Tensor{-inf, inf})), (Floats{0, 1}));
  for (const Tensor& t : {exp(Tensor{nan}), math::log(Tensor{nan}), tanh(Tensor{nan}),
                          sigmoid(Tensor{nan}), math::erf(Tensor{nan}), math::log(Tensor{-1.0f})}) {
    EXPECT_TRUE(std::isnan(t.item<float>()));
  }
  EXPECT_EQ(bools(Tensor{nan} == nan), (Bools{false}));
}

TEST(Arithmetic, SixteenBitFloatsRoundOnce) {
  const Tensor x = Tensor::from<BFloat16>({BFloat16(1.0f), BFloat16(3.0f)});
  const Tensor y = x / 3;
  EXPECT_EQ(y.dtype(), bfloat16);
  EXPECT_EQ(y.data<BFloat16>()[0].bits, BFloat16(1.0f / 3).bits);
  const Tensor h = sqrt(Tensor::from<Half>({Half(2.0f)}));
  EXPECT_EQ(h.data<Half>()[0].bits, Half(std::sqrt(2.0f)).bits);
  EXPECT_EQ(bools(x > 2), (Bools{false, true}));
}

TEST(Comparison, WholeTensorsAndShapesThatDoNotFit) {
  const Tensor x{1, 2};
  EXPECT_TRUE(all_equal(x, Tensor{1, 2}));
  EXPECT_FALSE(all_equal(x, Tensor{1, 3}));
  EXPECT_FALSE(all_equal(x, Tensor{1.0f, 2.0f}));
  EXPECT_TRUE(all_equal(Tensor(2.0f), 2));
  EXPECT_THROW((void)(x == Tensor{1, 2, 3}), InvalidArgumentError);
  const Tensor one =
      raw_op("Equal", {x, Tensor{1, 2, 3}}, {{"incompatible_shape_error", false}})[0];
  EXPECT_EQ(one.shape(), Shape{});
  EXPECT_FALSE(one.item<bool>());
  EXPECT_EQ(bools(Tensor({"a", "b"}) == "b"), (Bools{false, true}));
  EXPECT_THROW((void)(Tensor{true} < Tensor{true}), InvalidArgumentError);
}

TEST(Unary, WrongDtypesAreRefused) {
  EXPECT_THROW((void)exp(Tensor{1}), InvalidArgumentError);
  EXPECT_THROW((void)negative(Tensor{true}), InvalidArgumentError);
  EXPECT_THROW((void)floor(Tensor{1}), InvalidArgumentError);
  EXPECT_EQ(ints(round(Tensor{3})), (Ints{3}));
  EXPECT_EQ(floats(round(Tensor{0.5f, 1.5f, -2.5f})), (Floats{0, 2, -2}));
}

TEST(Special, SumsThatCouldRunForEver) {
  // Far below 0 the terms before q are not walked through.
  EXPECT_NEAR(math::zeta(scalar(2.0), scalar(-1e15 + 0.5)).item<double>(), 9.8696, 1e-3);
  EXPECT_NEAR(math::polygamma(Tensor(1.0), Tensor(1.0)).item<float>(), 1.644934, 1e-6);
}

// Neighbours among them are the same double.
TEST(Histogram, LargeIntegersAreReportedApart) {
  const std::int64_t low = std::int64_t{1} << 62;
  const Tensor values = Tensor::from(std::vector<std::int64_t>{low, low + 5, low + 9, 1}, {4});
  const Tensor range = Tensor::from(std::vector<std::int64_t>{low, low + 10}, {2});
  EXPECT_EQ(histogram_fixed_width(values, range, 5).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{2, 0, 1, 0, 1}));
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const Tensor ends = Tensor::from(std::vector<std::int64_t>{-most, most}, {2});
  EXPECT_EQ(histogram_fixed_width(ends, ends, 2).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{1, 1}));
}

TEST(Gradients, UndoBroadcasting) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor row{1.0f, 2.0f, 3.0f};
  const Tensor column = Tensor::from<float>({1, 2}, {2, 1});
  GradientTape tape({.persistent = true});
  tape.watch(row);
  tape.watch(column);
  const Tensor y = x * row + column;
  EXPECT_EQ(floats(tape.gradient(y, row)), (Floats{5, 7, 9}));
  EXPECT_EQ(floats(tape.gradient(y, column)), (Floats{3, 3}));
  EXPECT_EQ(tape.gradient(y, column).shape(), (Shape{2, 1}));
}

TEST(Gradients, TiesOfMaximumGoToTheFirst) {
  const Tensor x{1.0f, 2.0f, 3.0f}, y{2.0f, 2.0f, 2.0f};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  tape.watch(y);
  const Tensor z = maximum(x, y);
  EXPECT_EQ(floats(tape.gradient(z, x)), (Floats{0, 1, 1}));
  EXPECT_EQ(floats(tape.gradient(z, y)), (Floats{1, 0, 0}));
}

// In rows and in columns, wherever the NaN stands in a vector.
TEST(Reductions, LargestAndSmallestKeepNan) {
  for (std::size_t at = 0; at < 96; at += 5) {
    std::vector<float> values(96, 1.0f);
    values[at] = std::nanf("");
    const Tensor x = Tensor::from(values);
    EXPECT_TRUE(std::isnan(reduce_max(x).item<float>())) << at;
    EXPECT_TRUE(std::isnan(reduce_min(x).item<float>())) << at;
    const Tensor columns = Tensor::from(values, {3, 32});
    EXPECT_TRUE(std::isnan(reduce_max(columns, 0).to_vector<float>()[at % 32])) << at;
  }
}

// The product could take over the memory of exp(c), which nothing holds but the tape that is about
// to record it.
TEST(Gradients, RecordedInputsAreNotOverwritten) {
  const Tensor c{1.0f, 2.0f};
  const Tensor x{3.0f, 4.0f};
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * exp(c);
  const Floats gradient = floats(tape.gradient(y, x));
  EXPECT_FLOAT_EQ(gradient[0], std::exp(1.0f));
  EXPECT_FLOAT_EQ(gradient[1], std::exp(2.0f));
}

TEST(Broadcast, RepeatsShortRows) {
  // Rows of 3 that are repeated 2,000 times each, those of a batch of 3, or 5 times each.
  for (const std::int64_t repeated : {2000, 5}) {
    const std::int64_t batch = repeated == 5 ? 1000 : 3;
    Floats x(static_cast<std::size_t>(batch * repeated * 3)),
        row(static_cast<std::size_t>(batch * 3));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 101);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i % 7);
    const Tensor a = Tensor::from(x, {batch, repeated, 1, 3});
    const Tensor b = Tensor::from(row, {batch, 1, 1, 3});
    const Floats left = floats(a - b), right = floats(b - a);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t of_row = i / static_cast<std::size_t>(repeated * 3) * 3 + i % 3;
      ASSERT_EQ(left[i], x[i] - row[of_row]) << i;
      ASSERT_EQ(right[i], row[of_row] - x[i]) << i;
    }
  }
}

}  // namespace
}  // namespace tandem
