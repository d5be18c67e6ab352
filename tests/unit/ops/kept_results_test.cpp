// What optimising and planning must not change.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/ops/activation_ops.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/ops/fusion_util.h"

namespace tandem {
namespace {

using Tensors = std::vector<Tensor>;

Tensor counted(std::int64_t n, DType dtype) {
  std::vector<float> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 0.0f);
  return cast(Tensor::from(values, {n}), dtype);
}

// The result has as many bytes as the row, but more elements: it may not lie there.
TEST(KeptResults, AComputedRowIsComparedWithSeveralLengths) {
  constexpr std::int64_t kColumns = 512;
  for (const DType dtype : {DType::kHalf, DType::kFloat, DType::kInt32, DType::kDouble}) {
    for (const std::int64_t batch : {1, 2, 3, 4, 8}) {
      const auto f = function([&](const Tensor& x, const Tensor& n) {
        const Tensor row = reshape(x + cast(Tensor{0.0f}, dtype), {1, kColumns});
        return reduce_sum(cast(less(row, reshape(n, {batch, 1})), DType::kInt32), {1});
      });
      const Tensor lengths = counted(batch, dtype) * cast(Tensor{50.0f}, dtype);
      const Tensor got = f(counted(kColumns, dtype), lengths);
      for (std::int64_t i = 0; i < batch; ++i)
        EXPECT_EQ(got.to_vector<std::int32_t>()[static_cast<std::size_t>(i)], 50 * i)
            << dtype << ", batch " << batch;
    }
  }
}

TEST(KeptResults, ZeroKeepsItsSign) {
  const auto f = function([](const Tensor& x) { return x / 0.0f + x / -0.0f; });
  EXPECT_TRUE(std::isnan(f(Tensor{1.0f}).item<float>())) << "infinity and minus infinity";
}

TEST(KeptResults, SizesThatDoNotFitAreAnError) {
  const auto f = function([](const Tensor& x, const Tensor& sizes) {
    return reshape(reshape(x, IntList(sizes)), {2, 3});
  });
  const Tensor x = counted(6, DType::kFloat);
  EXPECT_EQ(f(x, Tensor::from(std::vector<std::int32_t>{6}, {1})).shape(), (Shape{2, 3}));
  EXPECT_THROW(f(x, Tensor::from(std::vector<std::int32_t>{5}, {1})), InvalidArgumentError);
}

// Larger than a last cache, and no multiple of a block.
TEST(KeptResults, LargeResultsAreWholeFusedOrNot) {
  constexpr std::int64_t kCount = 20'000'003;
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<int>(i % 1021) - 510);
  const Tensor x = Tensor::from(values);
  const auto sum_up = [](const Tensor& in) { return nn::relu(in * 2.0f + 1.0f); };
  const auto f = function([&](const Tensor& in) { return sum_up(in); });
  for (const std::vector<float>& got : {sum_up(x).to_vector<float>(), f(x).to_vector<float>()}) {
    ASSERT_EQ(got.size(), values.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      wrong += got[i] != std::max(0.0f, values[i] * 2 + 1);
    EXPECT_EQ(wrong, 0u);
  }
}

// Each batch size may ask for weights in another order.
TEST(KeptResults, PackedWeightsServeAnyBatch) {
  constexpr std::int64_t kSide = 512;
  const Tensor weights = numbers({kSide, kSide}, 1), bias = numbers({kSide}, 2);
  const auto f = function(
      [&](const Tensor& x) {
        return nn::relu(nn::bias_add(matmul(x, fixed(weights)), fixed(bias)));
      },
      {.input_shapes = {PartialShape{-1, kSide}}});
  for (std::int64_t batch = 1; batch <= 700; batch += batch < 40 ? 3 : 60) {
    const Tensor x = numbers({batch, kSide}, 3);
    const Tensor want = nn::relu(matmul(x, weights) + bias);
    const Tensor error = reduce_max(abs(f(x) - want)) / reduce_max(abs(want));
    EXPECT_LT(error.item<float>(), 1e-5f) << batch;
  }
}

TEST(KeptResults, MomentsInOnePassAreExactFarFromZero) {
  const Tensor x = numbers({64, 5, 24}, 3) + 1000.0f;
  const Body moments = [](const Tensors& in) {
    const Tensor mean = reduce_mean(in[0], {0, 1}, true);
    return Tensors{mean, reduce_mean(math::squared_difference(in[0], mean), {0, 1}, true)};
  };
  const MutableFunction f = optimized_graph(moments, {x});
  EXPECT_EQ(count_op(f, "_Moments"), 1) << f.graph.to_string();
  EXPECT_EQ(count_op(f, "Mean"), 0) << f.graph.to_string();
  expect_as_eager(moments, {x}, 1e-4);
}

// In several pieces, each of another mean: far apart, and one that holds an infinity.
TEST(KeptResults, MomentsOfManyRowsAreJoined) {
  constexpr std::int64_t kRows = 100'000, kColumns = 4;
  std::vector<float> values(kRows * kColumns);
  for (std::int64_t i = 0; i < kRows; ++i) {
    for (std::int64_t k = 0; k < kColumns; ++k)
      values[static_cast<std::size_t>(i * kColumns + k)] =
          static_cast<float>(i / 1000 * (k + 1)) + static_cast<float>(i % 7);
  }
  const Body moments = [](const Tensors& in) {
    const Tensor mean = reduce_mean(in[0], {0}, true);
    return Tensors{mean, reduce_mean(math::squared_difference(in[0], mean), {0}, true)};
  };
  const Tensor x = Tensor::from(values, {kRows, kColumns});
  EXPECT_EQ(count_op(optimized_graph(moments, {x}), "_Moments"), 1);
  const Tensor wide = cast(x, DType::kDouble);
  const Tensors want = moments({wide});
  const auto f = function([&](const Tensor& in) { return moments({in}); });
  const Tensors got = f(x);
  for (std::size_t i = 0; i < 2; ++i) {
    const Tensor error = abs(cast(got[i], DType::kDouble) - want[i]) / want[i];
    EXPECT_LT(reduce_max(error).item<double>(), 1e-6) << (i == 0 ? "mean" : "variance");
  }

  values[0] = std::numeric_limits<float>::infinity();
  values[(kRows - 1) * kColumns + 1] = -values[0];
  values[2] = values[0];
  values[(kRows - 1) * kColumns + 2] = -values[0];
  const std::vector<float> means = f(Tensor::from(values, {kRows, kColumns}))[0].to_vector<float>();
  EXPECT_EQ(means[0], values[0]);
  EXPECT_EQ(means[1], -values[0]);
  EXPECT_TRUE(std::isnan(means[2])) << "infinities of both signs";
  EXPECT_TRUE(std::isfinite(means[3]));
}

}  // namespace
}  // namespace tandem
