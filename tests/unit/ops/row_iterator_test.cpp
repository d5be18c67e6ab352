// Loops over the rows of tensors, and how ragged tensors come from dense ones.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class Rows>
std::vector<std::string> texts(const Rows& rows) {
  std::vector<std::string> all;
  for (const Tensor row : rows) all.push_back(row.to_string());
  return all;
}

TEST(Rows, AreGoneOverOneByOne) {
  EXPECT_THAT(texts(Tensor{{1, 2}, {3, 4}}), ElementsAre("[1 2]", "[3 4]"));
  EXPECT_THAT(texts(Tensor{1.5, 2.5}), ElementsAre("1.5", "2.5"));
  EXPECT_THAT(texts(zeros({0, 3})), ElementsAre());
  const Tensor x{{1, 2}, {3, 4}, {5, 6}};
  const std::vector<Tensor> rows(x.begin(), x.end());
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[2].to_string(), "[5 6]");
  EXPECT_EQ(x.ndim(), 2);
}

TEST(Rows, OfAFunctionsArgumentAreUnrolledAndHaveGradients) {
  auto weighted = function([](Tensor x) {
    Tensor sum(0.0);
    double factor = 1;
    for (const Tensor row : x) sum = sum + factor++ * reduce_sum(row);
    return sum;
  });
  const Tensor x{{1.0, 2.0}, {3.0, 4.0}};
  GradientTape tape;
  tape.watch(x);
  const Tensor y = weighted(x);
  EXPECT_EQ(y.item<float>(), 3.0F + 2 * 7.0F);
  EXPECT_EQ(tape.gradient(y, x).to_string(), Tensor({{1.0, 1.0}, {2.0, 2.0}}).to_string());
}

TEST(Rows, AreRefusedWhereThereIsNoNumberOfThem) {
  try {
    texts(Tensor(3));
    ADD_FAILURE();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Cannot iterate over a scalar tensor"));
  }
  auto all = function([](Tensor x) { return stack(std::vector<Tensor>(x.begin(), x.end())); },
                      {.input_shapes = {{none, 2}}});
  try {
    all(ones({3, 2}));
    ADD_FAILURE();
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("unknown first dimension"));
    EXPECT_THAT(error.what(), HasSubstr("td::map_fn"));
  }
}

TEST(Rows, OfRaggedTensorsHaveTheirLengths) {
  const auto words = ragged::constant(std::vector<std::vector<int>>{{1, 2, 3}, {}, {4}});
  EXPECT_THAT(texts(words), ElementsAre("[1 2 3]", "[]", "[4]"));
}

TEST(Ragged, SlicesRowsAndWhatIsInThem) {
  const auto x = ragged::constant(std::vector<std::vector<int>>{{1, 2, 3}, {}, {4}});
  const auto text = [&](std::initializer_list<Slice> slices) { return x[slices].to_string(); };
  EXPECT_EQ(text({Slice(), Slice(0, 2)}), "<tf.RaggedTensor [[1, 2], [], [4]]>");
  EXPECT_EQ(text({Slice(), Slice(-2, none)}), "<tf.RaggedTensor [[2, 3], [], [4]]>");
  EXPECT_EQ(text({Slice(), Slice(none, -1)}), "<tf.RaggedTensor [[1, 2], [], []]>");
  EXPECT_EQ(text({Slice(), Slice(none, none, -1)}), "<tf.RaggedTensor [[3, 2, 1], [], [4]]>");
  EXPECT_EQ(text({Slice(), Slice(5, none)}), "<tf.RaggedTensor [[], [], []]>");
  EXPECT_EQ(text({Slice(1, none), Slice(none, none, 2)}), "<tf.RaggedTensor [[], [4]]>");
  const auto nested =
      ragged::constant(std::vector<std::vector<std::vector<int>>>{{{1}, {2, 3}}, {}, {{4, 5}}});
  EXPECT_EQ((nested[{Slice(), Slice(1, none)}].to_string()),
            "<tf.RaggedTensor [[[2, 3]], [], []]>");
  EXPECT_THROW(text({Slice(), Slice(none, none, 0)}), InvalidArgumentError);
}

// TensorFlow's results.
TEST(RaggedFromTensor, ShortensRowsByLengthsOrPadding) {
  const Tensor x{{5, 7, 0}, {0, 3, 0}, {6, 0, 0}};
  EXPECT_EQ(RaggedTensor::from_tensor(x).to_string(),
            "<tf.RaggedTensor [[5, 7, 0], [0, 3, 0], [6, 0, 0]]>");
  EXPECT_EQ(RaggedTensor::from_tensor(x, {1, 0, 3}).to_string(),
            "<tf.RaggedTensor [[5], [], [6, 0, 0]]>");
  EXPECT_EQ(RaggedTensor::from_tensor(x, {.padding = 0}).to_string(),
            "<tf.RaggedTensor [[5, 7], [0, 3], [6]]>");
  EXPECT_EQ(RaggedTensor::from_tensor(x, {-1, 1, 0}).to_string(),
            "<tf.RaggedTensor [[], [0], []]>");
  EXPECT_EQ(RaggedTensor::from_tensor(zeros({2, 0}), {.padding = 0}).to_string(),
            "<tf.RaggedTensor [[], []]>");
  EXPECT_EQ(RaggedTensor::from_tensor(x, {}, 0).to_string(),
            RaggedTensor::from_tensor(x, {.padding = 0}).to_string());
  const Tensor pairs{{{1, 0}, {2, 0}, {0, 0}}, {{0, 0}, {3, 4}, {0, 0}}};
  EXPECT_EQ(RaggedTensor::from_tensor(pairs, {.padding = {0, 0}}).to_string(),
            "<tf.RaggedTensor [[[1, 0], [2, 0]], [[0, 0], [3, 4]]]>");
  EXPECT_THROW(RaggedTensor::from_tensor(x, {.lengths = {1, 2, 3}, .padding = 0}),
               InvalidArgumentError);
  EXPECT_THROW(RaggedTensor::from_tensor(x, {.padding = {0, 0}}), InvalidArgumentError);
}

TEST(RaggedFromTensor, MakesSeveralAxesRagged) {
  const Tensor x{{{1, 0}, {2, 0}, {0, 0}}, {{0, 0}, {3, 4}, {0, 0}}};
  const RaggedTensor all = RaggedTensor::from_tensor(x, {.ragged_rank = 2});
  EXPECT_EQ(all.ragged_rank(), 2);
  EXPECT_TRUE(all_equal(all.to_tensor(), x));
  EXPECT_EQ(RaggedTensor::from_tensor(x, {.padding = 0, .ragged_rank = 2}).to_string(),
            "<tf.RaggedTensor [[[1], [2], []], [[], [3, 4], []]]>");
  EXPECT_EQ(
      RaggedTensor::from_tensor(x, {.lengths = {1, 0, 2, 2, 1, 0}, .ragged_rank = 2}).to_string(),
      "<tf.RaggedTensor [[[1], [], [0, 0]], [[0, 0], [3], []]]>");
  EXPECT_THROW(RaggedTensor::from_tensor(x, {.ragged_rank = 3}), InvalidArgumentError);
}

TEST(RaggedWithValues, KeepsTheOutermostSplits) {
  const auto x = ragged::constant(std::vector<std::vector<int>>{{1, 2}, {}, {3}});
  EXPECT_EQ(x.with_values(x.values() * 10).to_string(), "<tf.RaggedTensor [[10, 20], [], [30]]>");
  const auto rows = ragged::constant(std::vector<std::vector<int>>{{1}, {2, 3}, {}});
  const RaggedTensor nested = x.with_values(rows);
  EXPECT_EQ(nested.to_string(), "<tf.RaggedTensor [[[1], [2, 3]], [], [[]]]>");
  EXPECT_EQ(nested.with_values(Tensor{7, 8, 9}).to_string(), "<tf.RaggedTensor [[7, 8], [], [9]]>");
  EXPECT_THROW(x.with_values(Tensor{1, 2}), InvalidArgumentError);
  EXPECT_THROW(texts(nested), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem
