#include "tandem/autodiff/custom_gradient.h"

#include <cmath>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

// tf.custom_gradient's example: exp(100) is infinite in float, and so the plain gradient NaN.
auto make_log1pexp() {
  return custom_gradient([](Tensor x) {
    const Tensor e = exp(x);
    return std::pair(math::log(1.0 + e), [e](Tensor dy) { return dy * (1.0 - 1.0 / (1.0 + e)); });
  });
}

TEST(CustomGradient, OfAFunctionThatReturnsItsGradient) {
  const auto log1pexp = make_log1pexp();
  const Variable x(Tensor(100.0));
  GradientTape tape;
  EXPECT_FLOAT_EQ(tape.gradient(log1pexp(x), x).item<float>(), 1.0f);
}

TEST(CustomGradient, InATracedFunction) {
  auto gradient = function([log1pexp = make_log1pexp()](Tensor x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(log1pexp(x), x);
  });
  EXPECT_FLOAT_EQ(gradient(Tensor(100.0)).item<float>(), 1.0f);
  EXPECT_FLOAT_EQ(gradient(Tensor(0.0)).item<float>(), 0.5f);
}

TEST(CustomGradient, OfSecondOrder) {
  const auto log1pexp = make_log1pexp();
  const Tensor x(0.0);
  GradientTape outer;
  outer.watch(x);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(x);
    first = inner.gradient(log1pexp(x), x);
  }
  EXPECT_FLOAT_EQ(outer.gradient(first, x).item<float>(), 0.25f);  // the sigmoid's slope
}

TEST(CustomGradient, OfSeveralInputsAndOutputs) {
  const auto both = custom_gradient([](Tensor a, Tensor b) {
    return std::pair(std::vector<Tensor>{a * b, a}, [a, b](const std::vector<Tensor>& dy) {
      return std::pair(dy[0] * b * 10.0 + dy[1], Tensor());
    });
  });
  const Variable a(Tensor(3.0)), b(Tensor(4.0));
  GradientTape tape({.persistent = true});
  const std::vector<Tensor> y = both(a, b);
  EXPECT_FLOAT_EQ(y[0].item<float>(), 12.0f);
  const auto [da, db] = tape.gradient(y[0] + y[1], {a, b});
  EXPECT_FLOAT_EQ(da.item<float>(), 41.0f);
  EXPECT_FALSE(db.defined());
}

TEST(CustomGradient, IsCalledOnceInAnEagerCall) {
  int calls = 0;
  const auto counted = custom_gradient([&](Tensor x) {
    ++calls;
    return std::pair(x, [](Tensor dy) { return dy * 3.0; });
  });
  const Tensor x(1.0);
  GradientTape tape;
  tape.watch(x);
  EXPECT_FLOAT_EQ(tape.gradient(counted(x), x).item<float>(), 3.0f);
  EXPECT_EQ(calls, 1);
}

TEST(CustomGradient, OfAnotherShapeIsTheUsersMistake) {
  const auto wrong = custom_gradient(
      [](Tensor x) { return std::pair(x * 2.0, [](Tensor) { return ones({5}); }); });
  const Tensor x{1.0, 2.0};
  GradientTape tape;
  tape.watch(x);
  const Tensor y = wrong(x);
  try {
    tape.gradient(y, x);
    FAIL() << "expected InvalidArgumentError";
  } catch (const InvalidArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("float[5]"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tandem
