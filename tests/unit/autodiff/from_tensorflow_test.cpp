// What people who come from TensorFlow write first.
#include <vector>

#include <gtest/gtest.h>

#include <tandem/tandem.h>

namespace tandem {
namespace {

TEST(FromTensorFlow, GradientsByAListOfVariables) {
  const Variable w(Tensor(2.0)), b(Tensor(1.0));
  GradientTape tape;
  const Tensor loss = w * w * 3.0 + b;
  const std::vector<Tensor> gradients = tape.gradient(loss, {w, b});
  ASSERT_EQ(gradients.size(), 2u);
  EXPECT_EQ(gradients[0].item<float>(), 12);
  EXPECT_EQ(gradients[1].item<float>(), 1);
}

TEST(FromTensorFlow, GradientsByAListOfTensorsAndVariables) {
  const Variable w(Tensor(2.0)), unused(Tensor(1.0));
  const Tensor x{3.0, 4.0};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor loss = reduce_sum(x * w);
  const std::vector<Tensor> both = tape.gradient(loss, {x, w});
  EXPECT_EQ(both[0].to_vector<float>(), (std::vector<float>{2, 2}));
  EXPECT_EQ(both[1].item<float>(), 7);
  EXPECT_EQ(tape.gradient(loss, {x, x}).size(), 2u);
  EXPECT_EQ(tape.gradient(loss, {w}).size(), 1u);
  EXPECT_EQ(tape.gradient(loss, {x}).size(), 1u);
  EXPECT_EQ(tape.gradient(loss, w).item<float>(), 7);
  EXPECT_FALSE(tape.gradient(loss, {w, unused})[1].defined());
  EXPECT_EQ(tape.gradient(loss, {w, unused}, UnconnectedGradients::kZero)[1].item<float>(), 0);
  EXPECT_EQ(tape.gradient(loss, std::vector<Variable>{w}).size(), 1u);
  EXPECT_EQ(tape.gradient(std::vector<Tensor>{loss}, {x}, {Tensor(2.0)}).size(), 1u);
}

TEST(FromTensorFlow, TheValueOfAVariable) {
  const Variable v(Tensor{1.0, 2.0});
  const Tensor before = v.value();
  v.assign_add({1.0, 1.0});
  EXPECT_EQ(before.to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{2, 3}));
}

TEST(FromTensorFlow, Constants) {
  EXPECT_EQ(constant({1.0, 2.0}).dtype(), DType::kFloat);
  EXPECT_EQ(constant({{1, 2}, {3, 4}}).shape(), (Shape{2, 2}));
  EXPECT_EQ(constant(3).item<int>(), 3);
  EXPECT_EQ(constant("text").dtype(), DType::kString);
  EXPECT_EQ(constant({1, 2}, float64).to_vector<double>(), (std::vector<double>{1, 2}));
  EXPECT_EQ(constant(0.5, float32, {2, 3}).shape(), (Shape{2, 3}));
}

TEST(FromTensorFlow, RowsOfAnyElement) {
  EXPECT_EQ((Tensor{{true, false}}.dtype()), DType::kBool);
  const Tensor flags{{true, false}, {false, false}};
  EXPECT_EQ(flags.shape(), (Shape{2, 2}));
  EXPECT_TRUE(flags.at<bool>({0, 0}));
  EXPECT_FALSE(flags.at<bool>({1, 0}));
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_EQ((Tensor{{large, large}}.at<std::int64_t>({0, 1})), large);
  EXPECT_EQ((Tensor{{"a", "b", "c"}, {"d", "e", "f"}}.at<std::string>({1, 2})), "f");
  EXPECT_EQ((Tensor{{{true}, {false}}}.shape()), (Shape{1, 2, 1}));
  EXPECT_EQ((Tensor{{{1.0f, 2.0f}}}.dtype()), DType::kFloat);
  EXPECT_EQ((Tensor{{1, 2}, {3, 4}}.dtype()), DType::kInt32);
  EXPECT_EQ((Tensor{{1.0, 2.0}}.dtype()), DType::kFloat);
  EXPECT_THROW((Tensor{{true}, {true, false}}), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem
