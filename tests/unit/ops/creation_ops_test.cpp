#include "tandem/ops/creation_ops.h"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<float> floats(const Tensor& t) { return t.to_vector<float>(); }

std::string message_of_error(const std::function<void()>& f) {
  try {
    f();
  } catch (const InvalidArgumentError& e) {
    return e.what();
  }
  return "no error";
}

TEST(CreationOps, FillsShapes) {
  EXPECT_THAT(floats(zeros({2})), ElementsAre(0, 0));
  EXPECT_THAT(ones({2}, int64).to_vector<std::int64_t>(), ElementsAre(1, 1));
  EXPECT_THAT(ones({2}, boolean).to_vector<bool>(), ElementsAre(true, true));
  EXPECT_THAT(zeros({1}, string).to_vector<std::string>(), ElementsAre(""));
  EXPECT_EQ(zeros({}).shape(), Shape{});
  EXPECT_EQ(zeros({2, 0}).shape(), (Shape{2, 0}));
  EXPECT_EQ(static_cast<float>(ones({1}, float16).at<Half>({0})), 1.0f);
  EXPECT_EQ(fill({2, 2}, Tensor("a")).at<std::string>({1, 1}), "a");
  EXPECT_EQ(zeros(shape(zeros({3, 4}))).shape(), (Shape{3, 4}));
  EXPECT_THAT(message_of_error([] { zeros({-1}); }), HasSubstr("must be >= 0"));
  EXPECT_THAT(message_of_error([] {
                fill({2}, Tensor{1, 2});
              }),
              HasSubstr("value must represent a scalar, got shape [2]"));
  EXPECT_THROW(zeros({INT64_MAX, 2}), InvalidArgumentError);
  EXPECT_THROW(zeros({std::int64_t{1} << 58}), ResourceExhaustedError);
}

TEST(CreationOps, FillHasAGradientForAVectorOfOneElement) {
  const Tensor value = Tensor::from(std::vector<float>{2});
  GradientTape tape;
  tape.watch(value);
  const Tensor filled = fill({2, 3}, value);
  const Tensor gradient = tape.gradient(filled, value);
  EXPECT_EQ(gradient.shape(), Shape{1});
  EXPECT_THAT(floats(gradient), ElementsAre(6));
}

TEST(CreationOps, LikeAnother) {
  const Tensor x{{1, 2}, {3, 4}};
  EXPECT_THAT(zeros_like(x).to_vector<std::int32_t>(), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(floats(ones_like(x, float32)), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(x.to_vector<std::int32_t>(), ElementsAre(1, 2, 3, 4)) << "the other stays as it is";
}

TEST(CreationOps, RangesEndBeforeTheLimit) {
  EXPECT_THAT(range(4).to_vector<std::int32_t>(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(range(3, 9, 4).to_vector<std::int32_t>(), ElementsAre(3, 7));
  EXPECT_THAT(range(3, 0, -1).to_vector<std::int32_t>(), ElementsAre(3, 2, 1));
  EXPECT_THAT(range(0).to_vector<std::int32_t>(), IsEmpty());
  EXPECT_THAT(floats(range(0.0, 1.0, 0.25)), ElementsAre(0, 0.25, 0.5, 0.75));
  EXPECT_THAT(message_of_error([] { range(0, 5, 0); }), HasSubstr("Requires delta != 0"));
  EXPECT_THAT(message_of_error([] { range(5, 0, 1); }),
              HasSubstr("Requires start <= limit when delta > 0: 5/0"));
  EXPECT_THAT(message_of_error([] { range(0.0f, INFINITY, 1.0f); }), HasSubstr("finite"));
  EXPECT_THROW(
      range(Tensor(std::int64_t{0}), Tensor(std::int64_t{1} << 57), Tensor(std::int64_t{1})),
      ResourceExhaustedError);
  EXPECT_THAT(range(scalar<std::int64_t>(INT64_MIN), scalar<std::int64_t>(INT64_MAX),
                    scalar<std::int64_t>(INT64_MAX))
                  .to_vector<std::int64_t>(),
              ElementsAre(INT64_MIN, -1, INT64_MAX - 1));
}

TEST(CreationOps, LinspaceEndsAtItsEnds) {
  EXPECT_THAT(floats(linspace(0.0, 1.0, 5)), ElementsAre(0, 0.25, 0.5, 0.75, 1));
  EXPECT_THAT(floats(linspace(3.0, -1.0, 1)), ElementsAre(3));
  EXPECT_EQ(linspace(0.1, 0.7, 1000).at<float>({999}), 0.7f);
  EXPECT_THAT(message_of_error([] { linspace(0.0, 1.0, 0); }), HasSubstr("Requires num > 0"));
}

TEST(CreationOps, OneHotPutsOnAtTheIndex) {
  EXPECT_THAT(floats(one_hot(Tensor{0, 2, -1, 9}, 3)),
              ElementsAre(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0));
  const Tensor columns =
      one_hot(Tensor{1, 0}, 3, {.on_value = 5, .off_value = -1, .axis = 0, .dtype = int32});
  EXPECT_EQ(columns.shape(), (Shape{3, 2}));
  EXPECT_THAT(columns.to_vector<std::int32_t>(), ElementsAre(-1, 5, 5, -1, -1, -1));
  EXPECT_EQ(one_hot(Tensor(1), 2, {.dtype = boolean}).to_vector<bool>(),
            (std::vector<bool>{false, true}));
  EXPECT_THAT(message_of_error([] { one_hot(Tensor{0}, -1); }), HasSubstr("depth"));
  EXPECT_THAT(message_of_error([] { one_hot(Tensor{0}, 2, {.axis = 5}); }),
              HasSubstr("Expected axis to be -1"));
}

TEST(CreationOps, EyeIsTheUnitMatrix) {
  EXPECT_THAT(floats(eye(2)), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(eye(2, 3, int32).to_vector<std::int32_t>(), ElementsAre(1, 0, 0, 0, 1, 0));
  EXPECT_EQ(eye(2, {}, float32, {5}).shape(), (Shape{5, 2, 2}));
}

TEST(CreationOps, ConstantsKeepTheirValueOrRefuse) {
  EXPECT_EQ(constant(Tensor(7), float64).item<double>(), 7.0);
  EXPECT_EQ(constant(Tensor(0.5), float64).item<double>(), 0.5);
  EXPECT_EQ(constant(Tensor(3.0), int32).item<std::int32_t>(), 3);
  EXPECT_EQ(constant(Tensor(1.0), float32, {2, 2}).shape(), (Shape{2, 2}));
  EXPECT_EQ(constant(Tensor{1, 2, 3, 4}, int64, {2, 2}).at<std::int64_t>({1, 0}), 3);
  EXPECT_THAT(message_of_error([] { constant(Tensor(0.5), int32); }),
              HasSubstr("cannot be represented"));
  EXPECT_THAT(message_of_error([] { constant(Tensor(300), uint8); }),
              HasSubstr("cannot be represented"));
  EXPECT_THAT(message_of_error([] { constant(Tensor(-1), uint64); }),
              HasSubstr("cannot be represented"));
  EXPECT_THAT(message_of_error([] { constant(Tensor(16777217), float32); }),
              HasSubstr("cannot be represented"));
  EXPECT_THROW(constant(Tensor{1, 2}, int32, {3}), InvalidArgumentError);
}

TEST(CreationOps, TracedSizesComeFromArguments) {
  auto f = function([](Tensor n) { return ones(n); });
  EXPECT_EQ(f(Tensor{2, 3}).shape(), (Shape{2, 3}));
  EXPECT_EQ(f(Tensor{4, 1}).shape(), (Shape{4, 1}));
}

}  // namespace
}  // namespace tandem
