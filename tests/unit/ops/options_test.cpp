// Functions called as users of TensorFlow write them: options by name, dtypes as texts, sizes that
// are computed, ragged tensors where tensors stand.

#include <sstream>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

template <class T>
std::string printed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(Reductions, TakeOptionsByName) {
  const Tensor x = reshape(range(6, {.dtype = float32}), {2, 3});
  EXPECT_EQ(reduce_sum(x, 1, {.keepdims = true}).shape(), (Shape{2, 1}));
  EXPECT_EQ(reduce_sum(x, {.axis = 1}).to_vector<float>(), (std::vector<float>{3, 12}));
  EXPECT_EQ(reduce_max(x, {.axis = 0, .keepdims = true}).shape(), (Shape{1, 3}));
  EXPECT_EQ(reduce_mean(x, {0, 1}).item<float>(), 2.5F) << "braces without names are axes";
  EXPECT_EQ(reduce_mean(x, {}).item<float>(), 2.5F);
  EXPECT_EQ(reduce_min(x, 0, true).shape(), (Shape{1, 3}));
  EXPECT_EQ(reduce_all(x < 7.0, {.axis = {0, 1}}).item<bool>(), true);
  EXPECT_EQ(math::reduce_std(x, 1, {.keepdims = true}).shape(), (Shape{2, 1}));
  EXPECT_EQ(math::count_nonzero(x, {.axis = 0}).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{1, 2, 2}));
}

TEST(Range, TakesTwoNumbersAndADtype) {
  EXPECT_EQ(range(1, 4).to_vector<int>(), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(range(3, {.dtype = float32}).to_vector<float>(), (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(range(1, 6, 2, {.dtype = "int64"}).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{1, 3, 5}));
  EXPECT_EQ(range(0, 1.5, 0.5).to_vector<float>(), (std::vector<float>{0, 0.5F, 1}))
      << "tf.range promotes";
}

TEST(Dtypes, AreTakenAsTexts) {
  EXPECT_EQ(cast(Tensor(1.5), "int32").item<int>(), 1);
  EXPECT_EQ(zeros({2}, "int64").dtype(), int64);
  EXPECT_EQ(random::normal({2}, {.dtype = "float64"}).dtype(), float64);
  EXPECT_THROW(cast(Tensor(1.5), "int33"), InvalidArgumentError);
}

TEST(Sizes, MayBeScalarTensors) {
  const auto noise = function([](Tensor x) { return random::normal({shape(x)[0], 3}); });
  EXPECT_EQ(noise(ones({4, 2})).shape(), (Shape{4, 3}));
  EXPECT_EQ(noise(ones({5, 2})).shape(), (Shape{5, 3}));
  EXPECT_EQ(reshape(ones({6}), {Tensor(2), -1}).shape(), (Shape{2, 3}));
  EXPECT_EQ(reshape(ones({6}), {Tensor{3, 2}}).shape(), (Shape{3, 2})) << "one vector is the list";
  EXPECT_THROW(reshape(ones({6}), {Tensor(2.0), 3}), InvalidArgumentError);
}

TEST(Positions, AreTensorFlows) {
  const Tensor u = random::uniform({100}, 2, 3);
  EXPECT_GE(reduce_min(u).item<float>(), 2);
  EXPECT_LT(reduce_max(u).item<float>(), 3);
  EXPECT_EQ(random::uniform({4}, 0, 10, int32).dtype(), int32);
  EXPECT_EQ(roll(Tensor{1, 2, 3}, 1, 0).to_vector<int>(), (std::vector<int>{3, 1, 2}));
  EXPECT_EQ(tensordot(ones({2, 3}), ones({4, 3}), {{1}, {1}}).shape(), (Shape{2, 4}));
}

TEST(Ragged, ConstantsStandInBraces) {
  const RaggedTensor x = ragged::constant<int>({{1, 2}, {3}, {}});
  EXPECT_EQ(printed(x), "<tf.RaggedTensor [[1, 2], [3], []]>");
  EXPECT_EQ(printed(ragged::constant<std::string>({{"a", "b"}, {"c"}})),
            "<tf.RaggedTensor [[b'a', b'b'], [b'c']]>");
  EXPECT_EQ(printed(ragged::constant<int>({{{1}, {2, 3}}, {}})),
            "<tf.RaggedTensor [[[1], [2, 3]], []]>");
}

TEST(Ragged, StacksAndConcatenates) {
  const RaggedTensor x = ragged::constant<int>({{1, 2}, {3}});
  const RaggedTensor y = ragged::constant<int>({{}, {4, 5}});
  EXPECT_EQ(printed(stack({x, y})), "<tf.RaggedTensor [[[1, 2], [3]], [[], [4, 5]]]>");
  EXPECT_EQ(printed(ragged::stack({x, y}, 1)), "<tf.RaggedTensor [[[1, 2], []], [[3], [4, 5]]]>");
  EXPECT_EQ(printed(concat({x, y}, 0)), "<tf.RaggedTensor [[1, 2], [3], [], [4, 5]]>");
  EXPECT_EQ(printed(concat({x, y}, 1)), "<tf.RaggedTensor [[1, 2], [3, 4, 5]]>");
  const RaggedTensor deep = stack({x, y});
  EXPECT_EQ(printed(concat({deep, deep}, 0)),
            "<tf.RaggedTensor [[[1, 2], [3]], [[], [4, 5]], [[1, 2], [3]], [[], [4, 5]]]>");
  EXPECT_THROW(stack({x, deep}), InvalidArgumentError);
  EXPECT_EQ(stack({Tensor(1), Tensor(2)}).to_vector<int>(), (std::vector<int>{1, 2}));
}

TEST(Ragged, IsReducedIndexedAndCalculatedWith) {
  const RaggedTensor x = ragged::constant<float>({{1, 2}, {3}, {4, 5, 6}});
  EXPECT_EQ(reduce_sum(x).item<float>(), 21);
  EXPECT_EQ(reduce_sum(x, 1).to_vector<float>(), (std::vector<float>{3, 3, 15}));
  EXPECT_EQ(reduce_mean(x, 1).to_vector<float>(), (std::vector<float>{1.5F, 3, 5}));
  EXPECT_EQ(printed(x[Slice(1, none)]), "<tf.RaggedTensor [[3.0], [4.0, 5.0, 6.0]]>");
  EXPECT_EQ(reduce_sum(x * x + 1.0 - x / 2).item<float>(), 91 + 6 - 10.5F);
  EXPECT_EQ(cast(x, int32).dtype(), int32);
  EXPECT_THROW(x + ragged::constant<float>({{1}, {2, 3}, {4, 5, 6}}), InvalidArgumentError);
}

TEST(Split, IsPrintedAndStackedAsRagged) {
  const auto words = strings::split(Tensor{"a b", "c"});
  EXPECT_EQ(printed(words), "<tf.RaggedTensor [[b'a', b'b'], [b'c']]>");
  EXPECT_EQ(printed(stack({words, words})),
            "<tf.RaggedTensor [[[b'a', b'b'], [b'c']], [[b'a', b'b'], [b'c']]]>");
  EXPECT_EQ(words.to_tensor().shape(), (Shape{2, 2}));
  EXPECT_EQ(strings::split("a,b", ",").values.num_elements(), 2);
}

TEST(Sparse, IsPrinted) {
  EXPECT_EQ(printed(sparse::from_dense(Tensor{{0, 7}})),
            "SparseTensor(indices=tf.Tensor([[0 1]], shape=(1, 2), dtype=int64), "
            "values=tf.Tensor([7], shape=(1,), dtype=int32), "
            "dense_shape=tf.Tensor([1 2], shape=(2,), dtype=int64))");
}

}  // namespace
}  // namespace tandem
