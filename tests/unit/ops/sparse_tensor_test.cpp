#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/ragged_tensor.h"
#include "tandem/ops/sparse_ops.h"
#include "tandem/runtime/traced_function.h"

namespace tandem::sparse {
namespace {

using testing::HasSubstr;

// Numbers in braces are int32, as most indices are that a program computes: tf.SparseTensor
// converts those too.
TEST(SparseTensor, TakesIndicesAndSizesOfInt32) {
  const SparseTensor x{.indices = {{0, 1}, {2, 0}}, .values = {1.0, 2.0}, .dense_shape = {3, 2}};
  EXPECT_EQ(x.indices.dtype(), DType::kInt64);
  EXPECT_EQ(x.dense_shape.dtype(), DType::kInt64);
  EXPECT_EQ(to_dense(x).to_string(), "[[0. 1.]\n [0. 0.]\n [2. 0.]]");
  const SparseTensor column{.indices = {{0}, {2}}, .values = {1.0, 2.0}, .dense_shape = {3}};
  EXPECT_EQ(column.indices.shape(), (Shape{2, 1}));
  EXPECT_EQ(to_dense(column).to_string(), "[1. 0. 2.]");
  const std::vector<std::vector<int>> rows{{0, 1}};
  const SparseTensor of_vectors{rows, {7.0}, std::vector<std::size_t>{1, 2}};
  EXPECT_EQ(to_dense(of_vectors).to_string(), "[[0. 7.]]");
  SparseTensor assigned = x;
  assigned.dense_shape = Tensor{4, 2};
  EXPECT_EQ(to_dense(assigned).shape(), (Shape{4, 2}));
}

TEST(SparseTensor, ConvertsWhileTracing) {
  auto dense = function([](Tensor indices, Tensor size) {
    return to_dense(SparseTensor{indices, ones({2}), size});
  });
  EXPECT_EQ(dense(Tensor{{1}, {2}}, Tensor{3}).to_string(), "[0. 1. 1.]");
}

TEST(SparseTensor, HasAShapeAndADtype) {
  const SparseTensor x{.indices = {{0, 1}}, .values = {1.5}, .dense_shape = {3, 4}};
  EXPECT_EQ(x.shape(), PartialShape({3, 4}));
  EXPECT_EQ(x.rank(), 2);
  EXPECT_EQ(x.dtype(), float32);
  auto traced = function([](SparseTensor s) {
    EXPECT_EQ(s.shape(), PartialShape({-1, -1}));
    return sparse::to_dense(s);
  });
  EXPECT_EQ(traced(x).shape(), (Shape{3, 4}));
}

TEST(SparseTensor, RefusesOtherDtypes) {
  try {
    const SparseTensor refused{
        .indices = Tensor{{0.0, 1.0}}, .values = {1.0}, .dense_shape = {3, 2}};
    FAIL() << "no error";
  } catch (const InvalidArgumentError& e) {
    EXPECT_THAT(e.what(), HasSubstr("must be integers, got float"));
  }
}

}  // namespace
}  // namespace tandem::sparse
