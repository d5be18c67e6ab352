// What optimising and planning must not change.

#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
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

}  // namespace
}  // namespace tandem
