#include "tandem/ops/training_ops.h"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

std::vector<float> floats(const Tensor& t) { return t.to_vector<float>(); }

std::string message_of_error(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

training::AdamScalars adam_scalars(float step) {
  return {std::pow(0.9f, step), std::pow(0.999f, step), 0.001f, 0.9f, 0.999f, 1e-7f};
}

TEST(TrainingOps, GradientDescentStepsAgainstTheGradient) {
  const Variable w(Tensor{1.0, 2.0});
  training::apply_gradient_descent(w, 0.5, Tensor{1.0, -2.0});
  EXPECT_THAT(floats(w), ElementsAre(0.5, 3));
}

TEST(TrainingOps, MomentumRemembers) {
  const Variable w(Tensor{1.0});
  const Variable slot(zeros({1}));
  for (int i = 0; i < 2; ++i) training::apply_keras_momentum(w, slot, 0.1, Tensor{1.0}, 0.5);
  EXPECT_THAT(floats(w), ElementsAre(FloatNear(1 - 0.1 - 0.15, 1e-6)));
  EXPECT_THAT(floats(slot), ElementsAre(FloatNear(-0.15, 1e-6)));
}

TEST(TrainingOps, AdamsFirstStepIsTheLearningRate) {
  const Variable w(zeros({3}));
  const Variable m(zeros({3})), v(zeros({3}));
  training::apply_adam(w, m, v, adam_scalars(1), Tensor{3.0, -0.1, 0.0});
  EXPECT_THAT(floats(w), ElementsAre(FloatNear(-0.001, 1e-6), FloatNear(0.001, 1e-5), 0));
}

// Lengths that leave rests of every size, and parts for several threads: the same bits always.
TEST(TrainingOps, ResultsDoNotDependOnHowTheWorkIsCut) {
  const std::int64_t n = 100'003;
  std::vector<float> values(static_cast<std::size_t>(n)), gradient(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i));
    gradient[i] = std::cos(static_cast<float>(3 * i));
  }
  const auto step = [&](int threads, std::int64_t from, std::int64_t to) {
    Runtime runtime(Runtime::Options{1, threads});
    const RuntimeScope scope(runtime);
    const auto part = [&](const std::vector<float>& all) {
      return Tensor::from(std::vector<float>(all.begin() + from, all.begin() + to), {to - from});
    };
    const Variable w(part(values));
    const Variable m(zeros({to - from})), v(zeros({to - from}));
    training::apply_adam(w, m, v, adam_scalars(1), part(gradient));
    return floats(w);
  };
  const auto whole = step(1, 0, n);
  EXPECT_EQ(step(3, 0, n), whole);
  for (std::int64_t length = 1; length < 40; ++length) {
    const auto some = step(1, 0, length);
    ASSERT_TRUE(std::equal(some.begin(), some.end(), whole.begin())) << length;
  }
}

TEST(TrainingOps, WorkInTracedFunctions) {
  const Variable w(Tensor{1.0, 2.0});
  const Variable m(zeros({2})), v(zeros({2}));
  auto step = function([&](Tensor grad, Tensor rate) {
    training::apply_gradient_descent(w, rate, grad);
    return w.read_value();
  });
  EXPECT_THAT(floats(step(Tensor{1.0, 1.0}, Tensor(1.0))), ElementsAre(0, 1));
  EXPECT_THAT(floats(step(Tensor{1.0, 1.0}, Tensor(0.5))), ElementsAre(-0.5, 0.5));
}

TEST(TrainingOps, RefuseWhatDoesNotFitAndChangeNothing) {
  const Variable w(Tensor{1.0, 2.0});
  const Variable m(zeros({2})), v(zeros({3}));
  EXPECT_THAT(message_of_error([&] {
                training::apply_gradient_descent(w, Tensor{0.1}, Tensor{1.0, 1.0});
              }),
              HasSubstr("alpha is not a scalar: [1]"));
  EXPECT_THAT(message_of_error([&] { training::apply_gradient_descent(w, 0.1, Tensor{1.0}); }),
              HasSubstr("var and grad do not have the same shape[2] [1]"));
  EXPECT_THAT(message_of_error([&] {
                training::apply_adam(w, m, v, adam_scalars(1), Tensor{1.0, 1.0});
              }),
              HasSubstr("v and grad do not have the same shape[3] [2]"));
  EXPECT_THAT(message_of_error([&] {
                training::apply_adam(w, m, m, adam_scalars(1), Tensor{1.0, 1.0});
              }),
              HasSubstr("its own slot"));
  EXPECT_THROW(training::apply_gradient_descent(w, scalar(1.0), tensor<double>({1, 1})),
               InvalidArgumentError);
  EXPECT_THAT(floats(w), ElementsAre(1, 2));
}

TEST(TrainingOps, ValuesReadBeforeAStepStayAsTheyWere) {
  const Variable w(Tensor{1.0, 2.0});
  const Tensor before = w;
  training::apply_gradient_descent(w, 1.0, Tensor{1.0, 1.0});
  EXPECT_THAT(floats(before), ElementsAre(1, 2));
}

}  // namespace
}  // namespace tandem
