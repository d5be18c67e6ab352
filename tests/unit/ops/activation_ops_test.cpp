#include "tandem/ops/activation_ops.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/runtime/tensor.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::ThrowsMessage;

const float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(Activations, KeepNaN) {
  const Tensor x{kNaN, -1.0f, 7.0f};
  EXPECT_TRUE(std::isnan(nn::relu(x).at<float>({0})));
  EXPECT_TRUE(std::isnan(nn::relu6(x).at<float>({0})));
  EXPECT_THAT(nn::relu6(Tensor{-1.0, 3.0, 7.0}).to_vector<float>(), ElementsAre(0, 3, 6));
}

// Long enough for vectors and a rest, which must agree.
TEST(Activations, DoNotDependOnTheLength) {
  for (const std::int64_t n : {1, 7, 8, 33, 100, 1027}) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>(i % 13) - 6.0f);
    const auto relu = nn::relu(Tensor::from(values)).to_vector<float>();
    const auto elu = nn::elu(Tensor::from(values)).to_vector<float>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(relu[i], std::max(values[i], 0.0f));
      EXPECT_FLOAT_EQ(elu[i], values[i] < 0 ? std::expm1(values[i]) : values[i]);
    }
  }
}

TEST(Activations, ReluGradientFollowsTheSign) {
  const Tensor x{-1.0, 0.0, 2.0};
  GradientTape tape;
  tape.watch(x);
  const Tensor y = nn::relu(x);
  EXPECT_THAT(tape.gradient(y, x).to_vector<float>(), ElementsAre(0, 0, 1));
}

TEST(Activations, GeluAndSwishAreTheirFormulas) {
  const std::vector<float> values{-3, -0.5f, 0, 0.7f, 4};
  const auto exact = nn::gelu(Tensor::from(values)).to_vector<float>();
  const auto tanh_formula = nn::gelu(Tensor::from(values), true).to_vector<float>();
  const auto swish = nn::swish(Tensor::from(values), 2.0).to_vector<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = values[i];
    EXPECT_NEAR(exact[i], x * 0.5 * std::erfc(-x / std::sqrt(2.0)), 1e-6);
    EXPECT_NEAR(tanh_formula[i],
                0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))), 1e-6);
    EXPECT_NEAR(swish[i], x / (1 + std::exp(-2 * x)), 1e-6);
  }
}

TEST(Softmax, WorksAlongAnyAxis) {
  const Tensor x{{{1.0, 2.0}, {3.0, 5.0}}, {{0.0, 0.5}, {-1.0, 2.0}}};
  for (const std::int64_t axis : {0, 1, 2, -1, -2, -3}) {
    std::vector<std::int64_t> swap{0, 1, 2};
    std::swap(swap[static_cast<std::size_t>((axis + 3) % 3)], swap[2]);
    const Tensor expected = transpose(nn::softmax(transpose(x, swap)), swap);
    EXPECT_EQ(nn::softmax(x, axis).to_vector<float>(), expected.to_vector<float>()) << axis;
  }
  EXPECT_THROW(nn::softmax(x, 3), InvalidArgumentError);
  EXPECT_THAT([] { nn::softmax(Tensor(1.0)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("logits must have >= 1 dimension")));
}

TEST(Softmax, SumsToOneForRowsOfAnyLength) {
  for (const std::int64_t n : {1, 2, 3, 5, 8, 15, 16, 17, 31, 64, 100, 1000}) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < 3 * n; ++i) values.push_back(std::sin(static_cast<float>(i)) * 20);
    const auto p = nn::softmax(Tensor::from(values, {3, n})).to_vector<float>();
    const auto log_p = nn::log_softmax(Tensor::from(values, {3, n})).to_vector<float>();
    for (std::int64_t row = 0; row < 3; ++row) {
      double sum = 0;
      for (std::int64_t i = row * n; i < (row + 1) * n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        sum += p[at];
        EXPECT_NEAR(std::exp(log_p[at]), p[at], 1e-5);
      }
      EXPECT_NEAR(sum, 1, 1e-5) << n;
    }
  }
}

TEST(Softmax, TakesTheHalfTypes) {
  const Tensor x{{1.0, 2.0, 3.0}};
  const auto exact = nn::softmax(x).to_vector<float>();
  for (const DType dtype : {float16, bfloat16}) {
    const Tensor y = nn::softmax(cast(x, dtype));
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_THAT(cast(y, float32).to_vector<float>(), Pointwise(FloatNear(4e-3f), exact));
  }
}

TEST(BiasAdd, ExplainsWhatDoesNotFit) {
  const Tensor x{{1.0, 2.0, 3.0}};
  EXPECT_THAT(
      [&] {
        nn::bias_add(x, Tensor{1.0, 2.0});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("[2] vs. [1,3]")));
  EXPECT_THAT([&] { nn::bias_add(Tensor{1.0}, Tensor{1.0}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("must be at least 2D: [1]")));
  EXPECT_THROW(nn::bias_add(x, Tensor{1.0, 2.0, 3.0}, "XY"), InvalidArgumentError);
}

// Sums are split by the shape: many rows, few channels, and the other way round.
TEST(BiasAdd, GradientSumsAllRows) {
  for (const auto& [rows, channels] : {std::pair{5000, 3}, {70000, 1}, {3, 5000}, {257, 64}}) {
    const Tensor x = Tensor::from(
        std::vector<float>(static_cast<std::size_t>(rows * channels), 1.0f), {rows, channels});
    const Tensor bias = Tensor::from(std::vector<float>(static_cast<std::size_t>(channels)));
    GradientTape tape;
    tape.watch(bias);
    const Tensor y = nn::bias_add(x, bias);
    const auto sums = tape.gradient(y, bias).to_vector<float>();
    EXPECT_EQ(sums,
              std::vector<float>(static_cast<std::size_t>(channels), static_cast<float>(rows)));
  }
}

}  // namespace
}  // namespace tandem
