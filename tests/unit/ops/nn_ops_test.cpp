#include "tandem/ops/nn_ops.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/random_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/tensor.h"

namespace tandem {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::ThrowsMessage;

Tensor image(const Shape& shape) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
    values.push_back(static_cast<float>((i * 7919) % 101) - 50.0f);
  }
  return Tensor::from(values, shape);
}

// Filters of one entry with so many weights are multiplied in another way, in float alone.
TEST(Convolution, ManyWeightsOfOneEntry) {
  const Tensor x = random::stateless_normal({2, 5, 7, 512}, {1, 2});
  const Tensor filter = random::stateless_normal({1, 1, 512, 1024}, {3, 4});
  for (const nn::Size2D stride :
       {nn::Size2D(1, 1), nn::Size2D(2, 2), nn::Size2D(1, 3), nn::Size2D(5, 1), nn::Size2D(2, 4)}) {
    const auto results = [&](DType dtype) {
      const Tensor in = cast(x, dtype), weights = cast(filter, dtype);
      GradientTape tape;
      tape.watch(in);
      tape.watch(weights);
      const Tensor y = nn::conv2d(in, weights, stride, "VALID");
      const std::vector<Tensor> gradients = tape.gradient(y * y, std::vector<Tensor>{in, weights});
      return std::vector<Tensor>{y, gradients[0], gradients[1]};
    };
    const std::vector<Tensor> single = results(float32), twice = results(float64);
    for (std::size_t i = 0; i < single.size(); ++i) {
      ASSERT_EQ(single[i].shape(), twice[i].shape());
      const Tensor error = reduce_max(abs(cast(single[i], float64) - twice[i]));
      EXPECT_LT((error / reduce_max(abs(twice[i]))).item<double>(), 1e-6);
    }
  }
}

TEST(Dropout, KeepsTheMeanAndScales) {
  const Tensor x = Tensor::from(std::vector<float>(10'000, 1.0f));
  const auto y = nn::dropout(x, 0.2, {.seed = 7}).to_vector<float>();
  int dropped = 0;
  for (const float v : y) {
    if (v == 0) {
      ++dropped;
    } else {
      EXPECT_FLOAT_EQ(v, 1.25f);
    }
  }
  EXPECT_NEAR(dropped, 2000, 200);
}

TEST(Dropout, NoiseOfASmallerShapeIsRepeated) {
  const Tensor x = Tensor::from(std::vector<float>(600, 1.0f), {20, 30});
  const Tensor y = nn::dropout(x, 0.5, {.noise_shape = Tensor{20, 1}, .seed = 1});
  for (std::int64_t row = 0; row < 20; ++row) {
    for (std::int64_t i = 1; i < 30; ++i) EXPECT_EQ(y.at<float>({row, i}), y.at<float>({row, 0}));
  }
}

TEST(Dropout, RefusesWhatMakesNoSense) {
  const Tensor x{1.0, 2.0};
  EXPECT_TRUE(nn::dropout(x, 0).is_same(x));
  for (const double rate : {-0.1, 1.0, std::nan("")}) {
    EXPECT_THAT([&] { nn::dropout(x, rate); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr("[0, 1)")));
  }
  EXPECT_THROW(nn::dropout(Tensor{1, 2}, 0.5), InvalidArgumentError);
}

TEST(Pooling, ExplicitPaddingCountsForNothing) {
  const Tensor x = Tensor::from(std::vector<float>{-1, -2, -3, -4}, {1, 2, 2, 1});
  const Tensor y = nn::max_pool2d(x, 2, 2, nn::Padding({1, 1}, {1, 1}));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(-1, -2, -3, -4));
  EXPECT_THAT(
      [&] {
        nn::max_pool2d(x, 2, 2, nn::Padding({2, 0}, {0, 0}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("smaller than the window size 2")));
  EXPECT_THAT(
      [&] {
        nn::avg_pool2d(x, 2, 2, nn::Padding({1, 1}, {1, 1}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("td::pad")));
  EXPECT_THROW(nn::max_pool2d(x, 4, 1, "VALID"), InvalidArgumentError);
}

TEST(Pooling, NaNIsLargerThanNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::int64_t channels : {1, 20}) {
    std::vector<float> values(static_cast<std::size_t>(4 * channels), 1.0f);
    values[0] = values[static_cast<std::size_t>(2 * channels)] = nan;
    const Tensor x = Tensor::from(values, {1, 2, 2, channels});
    EXPECT_EQ(nn::max_pool2d(x, 2, 2, "VALID").at<float>({0, 0, 0, 0}), 1.0f);
    // A window of nothing else has the lowest value.
    EXPECT_EQ(nn::max_pool2d(x, 1, 2, "VALID").at<float>({0, 0, 0, 0}),
              std::numeric_limits<float>::lowest());
  }
}

// Fast loops over channels and plain ones must say the same.
TEST(Pooling, OrderOfAxesDoesNotMatter) {
  for (const std::int64_t channels : {1, 3, 8, 16, 37}) {
    for (const std::int64_t stride : {1, 2, 3}) {
      for (const char* padding : {"SAME", "VALID"}) {
        const Tensor x = image({2, 7, 6, channels});
        const Tensor y = transpose(x, {0, 3, 1, 2});
        GradientTape tape({.persistent = true});
        tape.watch(x);
        tape.watch(y);
        const Tensor a = nn::max_pool2d(x, 2, stride, padding);
        const Tensor b = nn::max_pool2d(y, 2, stride, padding, "NCHW");
        EXPECT_EQ(a.to_vector<float>(), transpose(b, {0, 2, 3, 1}).to_vector<float>());
        EXPECT_EQ(tape.gradient(a * a, x).to_vector<float>(),
                  transpose(tape.gradient(b * b, y), {0, 2, 3, 1}).to_vector<float>());
        const Tensor c = nn::avg_pool2d(x, {3, 2}, stride, padding);
        const Tensor d = nn::avg_pool2d(y, {3, 2}, stride, padding, "NCHW");
        EXPECT_THAT(c.to_vector<float>(),
                    Pointwise(FloatNear(1e-4f), transpose(d, {0, 2, 3, 1}).to_vector<float>()));
      }
    }
  }
}

TEST(BatchNorm, InferenceNeedsMoments) {
  const Tensor ones{1.0, 1.0};
  EXPECT_THAT(
      [&] {
        nn::fused_batch_norm(image({1, 2, 2, 2}), ones, ones, {.is_training = false});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("`mean` and `variance` must both be given")));
}

TEST(BatchNorm, OrderOfAxesDoesNotMatter) {
  for (const std::int64_t channels : {1, 5, 16, 33}) {
    const Tensor x = image({3, 6, 5, channels});
    const Tensor y = transpose(x, {0, 3, 1, 2});
    std::vector<float> values;
    for (std::int64_t i = 0; i < channels; ++i)
      values.push_back(1.0f + 0.1f * static_cast<float>(i));
    const Tensor scale = Tensor::from(values);
    GradientTape tape({.persistent = true});
    for (const Tensor& t : {x, y, scale}) tape.watch(t);
    const auto a = nn::fused_batch_norm(x, scale, scale);
    const auto b = nn::fused_batch_norm(y, scale, scale, {.data_format = "NCHW"});
    const Tensor weights = image({3, 6, 5, channels});
    const Tensor loss_a = a.y * weights;
    const Tensor loss_b = b.y * transpose(weights, {0, 3, 1, 2});
    const auto near = [](const Tensor& s, const Tensor& t, float tolerance) {
      EXPECT_THAT(s.to_vector<float>(), Pointwise(FloatNear(tolerance), t.to_vector<float>()));
    };
    near(a.y, transpose(b.y, {0, 2, 3, 1}), 1e-4f);
    near(a.mean, b.mean, 1e-4f);
    near(a.variance, b.variance, 1e-2f);
    near(tape.gradient(loss_a, x), transpose(tape.gradient(loss_b, y), {0, 2, 3, 1}), 1e-3f);
    near(tape.gradient(loss_a, scale), tape.gradient(loss_b, scale), 0.05f);
  }
}

// A mean far from zero must not swallow the variance.
TEST(BatchNorm, StaysExactFarFromZero) {
  std::vector<float> values;
  for (int i = 0; i < 4096; ++i) values.push_back(10'000.0f + static_cast<float>(i % 2));
  const Tensor ones{1.0};
  const auto result = nn::fused_batch_norm(Tensor::from(values, {4, 32, 32, 1}), ones, Tensor{0.0});
  EXPECT_NEAR(result.mean.item<float>(), 10'000.5, 0.02);
  EXPECT_NEAR(result.variance.item<float>(), 0.25, 1e-3);
  EXPECT_NEAR(result.y.at<float>({0, 0, 0, 0}), -1, 0.05);
}

TEST(Norms, MomentsAndNormalizations) {
  const Tensor x{{1.0, 3.0}, {5.0, 7.0}};
  const auto m = nn::moments(x, {0});
  EXPECT_THAT(m.mean.to_vector<float>(), ElementsAre(3, 5));
  EXPECT_THAT(m.variance.to_vector<float>(), ElementsAre(4, 4));
  EXPECT_EQ(nn::moments(x, {1}, true).mean.shape(), (Shape{2, 1}));
  const auto half = nn::moments(cast(x, float16), {0, 1});
  EXPECT_EQ(half.mean.dtype(), float16);
  EXPECT_EQ(static_cast<float>(half.variance.item<Half>()), 5.0f);
  const Tensor y = nn::batch_normalization(x, m.mean, m.variance, Tensor{1.0, 2.0}, {}, 0);
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(0, 1, 2, 3));
  const Tensor unit = nn::l2_normalize(Tensor{{3.0, 4.0}, {0.0, 0.0}}, {1});
  EXPECT_THAT(unit.to_vector<float>(),
              Pointwise(FloatNear(1e-6f), std::vector<float>{0.6f, 0.8f, 0, 0}));
}

// One channel: x / (1 + x^2)^0.5; its gradient is (1 + x^2)^-1.5.
TEST(Norms, LocalResponse) {
  const Tensor x = Tensor::from(std::vector<float>{2}, {1, 1, 1, 1});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = nn::local_response_normalization(x);
  EXPECT_NEAR(y.item<float>(), 2 / std::sqrt(5.0), 1e-6);
  EXPECT_NEAR(tape.gradient(y, x).item<float>(), std::pow(5.0, -1.5), 1e-6);
}

TEST(Embedding, LooksRowsUp) {
  const Tensor table{{1.0, 2.0}, {3.0, 4.0}};
  EXPECT_THAT(nn::embedding_lookup(table, Tensor{1, 0}).to_vector<float>(),
              ElementsAre(3, 4, 1, 2));
  EXPECT_THROW(nn::embedding_lookup(table, Tensor{2}), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem
