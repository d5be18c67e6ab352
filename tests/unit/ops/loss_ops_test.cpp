#include "tandem/ops/loss_ops.h"

#include <cmath>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/pad_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/tensor.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::ThrowsMessage;

TEST(SparseCrossEntropy, NamesALabelOutOfRange) {
  const Tensor logits{{1.0, 2.0, 3.0}, {1.0, 2.0, 3.0}};
  EXPECT_THAT(
      [&] {
        nn::sparse_softmax_cross_entropy_with_logits(Tensor{0, 3}, logits);
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("label value of 3"),
                                                HasSubstr("valid range of [0, 3)"),
                                                HasSubstr("Label values: 0 3"))));
  EXPECT_THROW(nn::sparse_softmax_cross_entropy_with_logits(Tensor{-1, 0}, logits),
               InvalidArgumentError);
}

// Gradients of the loss towards logits and labels, which the op, or an op before it, broadcasts.
std::vector<Tensor> dense_gradients(const Shape& of_logits, const Shape& of_labels, bool before) {
  const auto values = [](const Shape& shape, float first) {
    std::vector<float> numbers;
    for (std::int64_t i = 0; i < shape.num_elements(); ++i)
      numbers.push_back(first + 0.25f * static_cast<float>(i * i % 7));
    return Tensor::from(numbers, shape);
  };
  const Tensor logits = values(of_logits, -0.5f), labels = values(of_labels, 0.125f);
  GradientTape tape;
  tape.watch(logits);
  tape.watch(labels);
  const auto wide = [&](const Tensor& x) { return before ? broadcast_to(x, {2, 3}) : x; };
  const Tensor loss = raw_op("SoftmaxCrossEntropyWithLogits", {wide(logits), wide(labels)})[0];
  const Tensor target = reduce_sum(loss * Tensor{2.0f, -3.0f});
  return tape.gradient(target, std::vector<Tensor>{logits, labels});
}

TEST(CrossEntropy, HasGradientsOfTheShapesThatItBroadcast) {
  const std::vector<std::pair<Shape, Shape>> cases{
      {{1, 3}, {2, 3}}, {{2, 3}, {1, 3}}, {{2, 1}, {2, 3}}, {{2, 3}, {2, 1}},
      {{1, 1}, {2, 3}}, {{3}, {2, 3}},    {{2, 3}, {3}},    {{2, 1}, {1, 3}}};
  for (const auto& [logits, labels] : cases) {
    const auto made = dense_gradients(logits, labels, false);
    const auto expected = dense_gradients(logits, labels, true);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(made[i].shape(), i == 0 ? logits : labels);
      EXPECT_THAT(made[i].to_vector<float>(),
                  Pointwise(FloatNear(1e-5f), expected[i].to_vector<float>()));
    }
  }
}

TEST(SparseCrossEntropy, TakesAnyRank) {
  const Tensor one{1.0, 2.0, 3.0};
  const float expected = std::log(std::exp(-2.0f) + std::exp(-1.0f) + 1);
  EXPECT_NEAR(nn::sparse_softmax_cross_entropy_with_logits(Tensor(2), one).item<float>(), expected,
              1e-6);
  const Tensor cube =
      Tensor::from(std::vector<float>{1, 2, 3, 3, 2, 1, 1, 3, 2, 2, 3, 1}, {2, 2, 3});
  const Tensor loss = nn::sparse_softmax_cross_entropy_with_logits(Tensor{{2, 0}, {1, 1}}, cube);
  EXPECT_EQ(loss.shape(), (Shape{2, 2}));
  EXPECT_THAT(loss.to_vector<float>(),
              Pointwise(FloatNear(1e-6f), std::vector<float>(4, expected)));
  EXPECT_THAT(
      [&] {
        nn::sparse_softmax_cross_entropy_with_logits(Tensor{0, 1}, cube);
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Rank mismatch")));
  EXPECT_THAT(
      [&] {
        nn::sparse_softmax_cross_entropy_with_logits(Tensor::from(std::vector<int>{0, 1}, {2, 1}),
                                                     cube);
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("[2,1]")));
}

TEST(CrossEntropy, TakesAnyAxisAndBroadcasts) {
  const Tensor logits =
      Tensor::from(std::vector<float>{1, 2, 3, 3, 2, 1, 1, 3, 2, 2, 3, 1}, {2, 2, 3});
  const Tensor labels =
      Tensor::from(std::vector<float>{0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0}, {2, 2, 3});
  const auto expected = nn::softmax_cross_entropy_with_logits(labels, logits);
  EXPECT_EQ(expected.shape(), (Shape{2, 2}));
  const auto moved = nn::softmax_cross_entropy_with_logits(transpose(labels, {2, 0, 1}),
                                                           transpose(logits, {2, 0, 1}), 0);
  EXPECT_EQ(moved.to_vector<float>(), expected.to_vector<float>());
  const Tensor row = Tensor::from(std::vector<float>{0, 0, 1}, {1, 1, 3});
  const auto broadcast = nn::softmax_cross_entropy_with_logits(row, logits);
  EXPECT_EQ(broadcast.shape(), (Shape{2, 2}));
  EXPECT_EQ(broadcast.at<float>({0, 0}), expected.at<float>({0, 0}));
  const auto half =
      nn::softmax_cross_entropy_with_logits(cast(labels, float16), cast(logits, float16));
  EXPECT_EQ(half.dtype(), float16);
  EXPECT_NEAR(static_cast<float>(half.at<Half>({0, 0})), expected.at<float>({0, 0}), 1e-3);
  EXPECT_THROW(nn::softmax_cross_entropy_with_logits(labels, logits, 3), InvalidArgumentError);
  EXPECT_THROW(nn::softmax_cross_entropy_with_logits(Tensor(1.0), Tensor(1.0)),
               InvalidArgumentError);
}

TEST(CrossEntropy, TakesUnknownSizesWhileTracing) {
  const PartialShape unknown_sizes = PartialShape::unknown_of_rank(3);
  const auto f = function(
      [](Tensor labels, Tensor logits) {
        return nn::softmax_cross_entropy_with_logits(std::move(labels), std::move(logits));
      },
      {.input_shapes = {unknown_sizes, unknown_sizes}});
  const Tensor logits = Tensor::from(std::vector<float>{1, 2, 3, 3, 2, 1}, {2, 1, 3});
  const Tensor labels = Tensor::from(std::vector<float>{0, 0, 1, 1, 0, 0}, {2, 1, 3});
  EXPECT_EQ(f(labels, logits).to_vector<float>(),
            nn::softmax_cross_entropy_with_logits(labels, logits).to_vector<float>());
}

// The loss's gradient towards the logits is softmax - labels.
TEST(CrossEntropy, SecondGradientTowardsLabels) {
  const Tensor logits{{1.0, 2.0, 3.0}}, labels{{0.2, 0.3, 0.5}}, weights{{1.0, 10.0, 100.0}};
  GradientTape outer;
  outer.watch(labels);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(logits);
    const Tensor loss = nn::softmax_cross_entropy_with_logits(labels, logits);
    first = inner.gradient(loss, logits);
  }
  EXPECT_THAT(outer.gradient(reduce_sum(first * weights), labels).to_vector<float>(),
              ElementsAre(-1, -10, -100));
}

TEST(SigmoidCrossEntropy, IsSmoothAtZeroAndFiniteFarOut) {
  const Tensor logits{0.0, 1000.0, -1000.0}, labels{0.25, 0.0, 0.0};
  GradientTape tape;
  tape.watch(logits);
  const Tensor loss = nn::sigmoid_cross_entropy_with_logits(labels, logits);
  EXPECT_THAT(loss.to_vector<float>(), ElementsAre(FloatNear(std::log(2.0f), 1e-6f), 1000, 0));
  EXPECT_THAT(tape.gradient(loss, logits).to_vector<float>(), ElementsAre(0.25, 1, 0));
  EXPECT_THAT([&] { nn::sigmoid_cross_entropy_with_logits(Tensor{1.0}, logits); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("must have the same shape")));
}

TEST(InTopK, CountsTies) {
  const Tensor predictions{{1.0, 5.0, 5.0}, {3.0, 2.0, 1.0}};
  const Tensor hit = nn::in_top_k(Tensor{2, 1}, predictions, 1);
  EXPECT_TRUE(hit.at<bool>({0}));
  EXPECT_FALSE(hit.at<bool>({1}));
  EXPECT_THROW(nn::in_top_k(Tensor{2}, predictions, 1), InvalidArgumentError);
}

TEST(L2Loss, SumsManyPieces) {
  EXPECT_EQ(nn::l2_loss(Tensor::from(std::vector<float>(100'003, 2.0f))).item<float>(), 200'006.0f);
}

}  // namespace
}  // namespace tandem
