// What users type first: making tensors, picking parts, reading numbers, changing variables.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

TEST(Einsum, TakesOperandsOneByOne) {
  const Tensor a{{1.0, 2.0}, {3.0, 4.0}};
  const Variable x(Tensor{1.0, 10.0});
  EXPECT_EQ(einsum("ij,j->i", a, x).to_string(), "[21. 43.]");
  EXPECT_EQ(einsum("ij->ji", a).to_string(), einsum("ij->ji", {a}).to_string());
  EXPECT_EQ(linalg::einsum("ij,ij->", a, a).to_string(), "30.0");
}

TEST(TensorFromValues, TakesWhatCppHas) {
  EXPECT_EQ(Tensor(std::vector<float>{1, 2, 3}).to_string(), "[1. 2. 3.]");
  const Tensor matrix(std::vector<std::vector<double>>{{1, 2}, {3, 4}});
  EXPECT_EQ(matrix.dtype(), float64);
  EXPECT_EQ(matrix.shape(), (Shape{2, 2}));
  EXPECT_EQ(Tensor(std::vector<long long>{1, 2}).dtype(), int64);
  EXPECT_EQ(Tensor(std::array<std::uint8_t, 2>{1, 2}).dtype(), uint8);
  EXPECT_EQ(Tensor(std::vector<bool>{true, false}).to_string(), "[ True False]");
  EXPECT_EQ(Tensor(std::vector<std::string>{"a"}).dtype(), string);
  const float memory[] = {1, 2};
  EXPECT_EQ(Tensor(std::span<const float>(memory)).to_string(), "[1. 2.]");
  EXPECT_THROW(Tensor(std::vector<std::vector<int>>{{1}, {1, 2}}), InvalidArgumentError);
  EXPECT_EQ(Tensor(std::vector<std::vector<int>>{{}, {}}).shape(), (Shape{2, 0}));
}

TEST(TensorFromValues, HasTheFamiliarNames) {
  EXPECT_EQ(convert_to_tensor(2, float64).dtype(), float64);
  EXPECT_EQ(convert_to_tensor(std::vector<int>{1, 2}, float32).to_string(), "[1. 2.]");
  EXPECT_EQ(convert_to_tensor(std::vector<Tensor>{1, 2}).to_string(), "[1 2]");
  EXPECT_THROW(convert_to_tensor(Tensor(1), float32), InvalidArgumentError);
  EXPECT_EQ(full({2}, 7).to_string(), "[7 7]");
  EXPECT_EQ(full_like(Tensor{1.0, 2.0}, 3).to_string(), "[3. 3.]");
  EXPECT_EQ(arange(3).to_string(), "[0 1 2]");
  EXPECT_EQ(arange(0, 1, 0.25).to_string(), "[0.   0.25 0.5  0.75]");
  EXPECT_EQ(randn({2, 3}).shape(), (Shape{2, 3}));
  float memory[] = {1, 2, 3, 4};
  const Tensor blob = from_blob(memory, {2, 2});
  memory[0] = 9;
  EXPECT_EQ(blob.at<float>({0, 0}), 9);
  EXPECT_EQ(call("AddV2", {Tensor(1), Tensor(2)})[0].item<int>(), 3);
}

TEST(TensorIndex, PicksAsPythonDoes) {
  const Tensor x = reshape(range(6), {2, 3});
  EXPECT_EQ(x[0].to_string(), "[0 1 2]");
  EXPECT_EQ(x[-1].to_string(), "[3 4 5]");
  EXPECT_EQ(x[std::size_t{1}].to_string(), "[3 4 5]");
  EXPECT_EQ((x[{ellipsis, 1}].to_string()), "[1 4]");
  EXPECT_EQ(x[Slice(1, none)].shape(), (Shape{1, 3}));
  EXPECT_EQ(x[newaxis].shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(x[x > 2].to_string(), "[3 4 5]");
  EXPECT_EQ((x[Tensor{1, 0, 1}].shape()), (Shape{3, 3}));
  EXPECT_THROW(x[5], InvalidArgumentError);
  EXPECT_THROW((x[{Tensor{1, 0}, 0}]), InvalidArgumentError);
}

TEST(TensorItem, ConvertsWhereNothingIsLost) {
  EXPECT_EQ(Tensor(2.0f).item<int>(), 2);
  EXPECT_EQ(Tensor(3).item<double>(), 3.0);
  EXPECT_EQ(Tensor(true).item<int>(), 1);
  EXPECT_EQ(scalar<std::uint64_t>(~0ull).item<std::uint64_t>(), ~0ull);
  EXPECT_EQ(Tensor("a").item<std::string>(), "a");
  EXPECT_THROW(Tensor(2.5f).item<int>(), InvalidArgumentError);
  EXPECT_THROW(scalar(0.1).item<float>(), InvalidArgumentError);
  EXPECT_THROW(Tensor(300).item<std::uint8_t>(), InvalidArgumentError);
  EXPECT_THROW(Tensor(-1).item<unsigned>(), InvalidArgumentError);
  EXPECT_THROW(Tensor((std::int64_t{1} << 53) + 1).item<double>(), InvalidArgumentError);
  EXPECT_THROW(scalar<std::int64_t>(INT64_MAX).item<double>(), InvalidArgumentError);
  EXPECT_THROW(scalar(9.3e18).item<std::int64_t>(), InvalidArgumentError);
}

TEST(VariableAssignment, WorksWithOperatorsAndParts) {
  Variable w(zeros({3, 2}));
  w = ones({3, 2});
  w += 1;
  w -= Tensor{0.5, 1.0};
  EXPECT_EQ(w.value()[0].to_string(), "[1.5 1. ]");
  w[0] = 5;
  w[{ellipsis, 1}] += 1;
  w[2] = w[0];
  EXPECT_EQ(w.value().to_string(), "[[5.  6. ]\n [1.5 2. ]\n [5.  6. ]]");
  const Tensor last = w[-1];
  EXPECT_EQ(last.to_string(), "[5. 6.]");
  EXPECT_THROW(w[0] = ones({3}), InvalidArgumentError);
  const auto step = function([w](Tensor x) mutable {
    w[0] = x;
    w += 1;
    return w.value();
  });
  EXPECT_EQ(step(Tensor(1.0f))[0].to_string(), "[2. 2.]");
}

TEST(Functional, MapsAndFolds) {
  const Tensor x{{1.0, 2.0}, {3.0, 4.0}};
  const auto sums = [](Tensor m) { return map_fn([](Tensor row) { return reduce_sum(row); }, m); };
  EXPECT_EQ(sums(x).to_string(), "[3. 7.]");
  EXPECT_EQ(function(sums)(x).to_string(), "[3. 7.]");
  const auto running = [](Tensor v) { return scan([](Tensor a, Tensor b) { return a + b; }, v); };
  const Tensor v{1.0, 2.0, 3.0};
  EXPECT_EQ(running(v).to_string(), "[1. 3. 6.]");
  EXPECT_EQ(function(running)(v).to_string(), "[1. 3. 6.]");
  EXPECT_EQ(foldl([](Tensor a, Tensor b) { return a * 2.0 + b; }, v, Tensor(0.0f)).item<float>(),
            11);
  EXPECT_EQ(foldr([](Tensor a, Tensor b) { return a * 2.0 + b; }, v, Tensor(0.0f)).item<float>(),
            17);
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(tape.gradient(reduce_sum(function(sums)(x) * Tensor{1.0, 2.0}), x).to_string(),
            "[[1. 1.]\n [2. 2.]]");
}

TEST(Ragged, IsAValueOfFunctionsToo) {
  const RaggedTensor x = ragged::constant(std::vector<std::vector<int>>{{1, 2, 3}, {}, {4}});
  EXPECT_EQ(x.to_string(), "<tf.RaggedTensor [[1, 2, 3], [], [4]]>");
  EXPECT_EQ(x.to_tensor().to_string(), "[[1 2 3]\n [0 0 0]\n [4 0 0]]");
  EXPECT_EQ(x.row_lengths().to_string(), "[3 0 1]");
  EXPECT_EQ(x[0].to_string(), "[1 2 3]");
  EXPECT_EQ(ragged::reduce_sum(x).to_string(), "[6 0 4]");
  const auto twice = function(
      [](RaggedTensor r) { return ragged::map_flat_values([](Tensor t) { return t * 2; }, r); });
  EXPECT_EQ(twice(x).to_string(), "<tf.RaggedTensor [[2, 4, 6], [], [8]]>");
  EXPECT_THROW(RaggedTensor::from_row_splits(range(3), Tensor{0, 4}), InvalidArgumentError);
}

TEST(Debugging, AssertsReportTheValues) {
  debugging::assert_equal(Tensor{1, 2}, Tensor{1, 2});
  try {
    debugging::assert_less(Tensor{1, 2}, 2, "too large");
    FAIL();
  } catch (const InvalidArgumentError& e) {
    EXPECT_NE(std::string(e.what()).find("too large"), std::string::npos);
  }
  const auto checked = function([](Tensor x) {
    debugging::assert_positive(x);
    return x + 1;
  });
  EXPECT_EQ(checked(Tensor(1)).item<int>(), 2);
  EXPECT_THROW(checked(Tensor(-1)), InvalidArgumentError);
  EXPECT_THROW(debugging::assert_rank(Tensor(1), 2), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem
