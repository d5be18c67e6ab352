// RaggedTensors and SparseTensors in datasets. The values are those of tf.data's ragged_batch,
// dense_to_sparse_batch and from_tensor_slices for the same input.
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/data/data.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/ragged_functions.h"

namespace tandem::data {
namespace {

using Numbers = std::vector<std::int64_t>;

Numbers numbers(const Tensor& t) { return cast(t, int64).to_vector<std::int64_t>(); }

RaggedTensor words() {
  return ragged::constant(std::vector<std::vector<std::int64_t>>{{1, 2, 3}, {}, {4}, {5, 6}});
}

TEST(RaggedDatasets, RowsAreTensorsOfDifferentLengths) {
  const Dataset rows = from_tensor_slices(words());
  EXPECT_EQ(rows.size(), 4);
  std::vector<Numbers> seen;
  for (const Element& e : rows) seen.push_back(numbers(e[0]));
  EXPECT_EQ(seen, (std::vector<Numbers>{{1, 2, 3}, {}, {4}, {5, 6}}));
}

TEST(RaggedDatasets, BatchesOfThemAreRaggedAgain) {
  std::vector<std::string> seen;
  for (const Element& e : from_tensor_slices(words()).ragged_batch(3))
    seen.push_back(ragged_of(e).to_string());
  EXPECT_EQ(seen, (std::vector<std::string>{"<tf.RaggedTensor [[1, 2, 3], [], [4]]>",
                                            "<tf.RaggedTensor [[5, 6]]>"}));
  EXPECT_EQ(from_tensor_slices(words()).ragged_batch(3, {.drop_remainder = true}).size(), 1);
  Iterator it = from_tensor_slices(words()).ragged_batch(4, {.row_splits_dtype = int32}).iterator();
  EXPECT_EQ(it.next()[1].dtype(), int32);
}

TEST(RaggedDatasets, RowsOfHigherRankKeepTheirSplits) {
  const RaggedTensor deep = RaggedTensor::from_nested_row_splits(
      Tensor(Numbers{1, 2, 3, 4, 5}), {Tensor(Numbers{0, 2, 3}), Tensor(Numbers{0, 1, 3, 5})});
  std::vector<std::string> seen;
  for (const Element& e : from_tensor_slices(deep)) seen.push_back(ragged_of(e).to_string());
  EXPECT_EQ(seen, (std::vector<std::string>{"<tf.RaggedTensor [[1], [2, 3]]>",
                                            "<tf.RaggedTensor [[4, 5]]>"}));
}

TEST(RaggedDatasets, ScalarsBesideThemBecomeAVector) {
  const Dataset labels = from_tensor_slices(Tensor(Numbers{7, 8, 9, 6}));
  Iterator it = zip({from_tensor_slices(words()), labels}).ragged_batch(2).iterator();
  const Element e = it.next();
  ASSERT_EQ(e.size(), 3U);
  EXPECT_EQ(ragged_of(e).to_string(), "<tf.RaggedTensor [[1, 2, 3], []]>");
  EXPECT_EQ(numbers(e[2]), (Numbers{7, 8}));
}

TEST(RaggedDatasets, WhatDoesNotFitIsNamed) {
  const Dataset mixed = range(2).map([](const Element& e) {
    return Element{ones({1, e[0].item<std::int64_t>() + 1})};
  });
  Iterator it = mixed.ragged_batch(2).iterator();
  try {
    it.next();
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("ragged_batch"),
                                             testing::HasSubstr("in its first size alone")));
  }
  EXPECT_THROW(range(2).ragged_batch(0), InvalidArgumentError);
  EXPECT_THROW(range(2).ragged_batch(1, {.row_splits_dtype = float32}), InvalidArgumentError);
  EXPECT_THROW(ragged_of(Element{Tensor(1)}), InvalidArgumentError);
  EXPECT_THROW(ragged_of(Element{Tensor(1)}, 5), InvalidArgumentError);
}

TEST(SparseDatasets, BatchesHoldEveryValue) {
  const Dataset rows = from_tensor_slices(
      ragged::constant(std::vector<std::vector<std::int64_t>>{{1, 0, 3}, {}, {4}, {5, 6}}));
  Iterator it = rows.sparse_batch(2, {-1}).iterator();
  const SparseTensor first = sparse_of(it.next());
  EXPECT_EQ(numbers(first.indices), (Numbers{0, 0, 0, 1, 0, 2}));
  EXPECT_EQ(numbers(first.values), (Numbers{1, 0, 3}));
  EXPECT_EQ(numbers(first.dense_shape), (Numbers{2, 3}));
  EXPECT_EQ(numbers(sparse_of(it.next()).dense_shape), (Numbers{2, 2}));
  Iterator fixed = rows.sparse_batch(4, {2}).iterator();
  EXPECT_THROW(fixed.next(), InvalidArgumentError);
}

TEST(SparseDatasets, RowsOfASparseTensor) {
  const SparseTensor x{Tensor({{0, 1}, {2, 0}, {2, 2}}), Tensor(Numbers{5, 6, 7}),
                       Tensor(Numbers{3, 4})};
  std::vector<Numbers> places, values;
  for (const Element& e : from_tensor_slices(x)) {
    const SparseTensor row = sparse_of(e);
    EXPECT_EQ(numbers(row.dense_shape), (Numbers{4}));
    places.push_back(numbers(row.indices));
    values.push_back(numbers(row.values));
  }
  EXPECT_EQ(places, (std::vector<Numbers>{{1}, {}, {0, 2}}));
  EXPECT_EQ(values, (std::vector<Numbers>{{5}, {}, {6, 7}}));
  const SparseTensor unordered{Tensor({{2, 1}, {0, 0}}), Tensor(Numbers{5, 6}),
                               Tensor(Numbers{3, 4})};
  EXPECT_THROW(from_tensor_slices(unordered), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem::data
