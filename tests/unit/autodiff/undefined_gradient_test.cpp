#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(UndefinedGradient, IsReportedWithTheVariablesNameWhereAnOpIsGivenIt) {
  const Variable used(ones({2}), {.name = "used"}), idle(ones({2}), {.name = "idle"});
  GradientTape tape;
  const auto gradients = tape.gradient(reduce_sum(used * 2.0f), {used, idle});
  ASSERT_FALSE(gradients[1].defined());
  try {
    idle.assign_sub(gradients[1]);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("variable 'idle'"), Not(HasSubstr("'used'")),
                                    HasSubstr("no path from the loss")));
  }
}

TEST(UndefinedGradient, IsReportedInFunctionsToo) {
  const Variable used(ones({2}), {.name = "used"}), idle(ones({2}), {.name = "idle"});
  const auto f = function([&](const Tensor& x) {
    GradientTape tape;
    return tape.gradient(reduce_sum(used * x), {used, idle})[1] + x;
  });
  try {
    f(ones({2}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("idle"), HasSubstr("no path from the loss")));
  }
}

TEST(UndefinedGradient, OfAnEarlierTapeIsNotNamedLater) {
  const Variable idle(ones({2}), {.name = "idle"});
  {
    GradientTape tape;
    const Tensor x{1.0f};
    tape.watch(x);
    static_cast<void>(tape.gradient(x * x, idle));
  }
  GradientTape tape;
  const Tensor x{1.0f};
  tape.watch(x);
  static_cast<void>(tape.gradient(x * x, x));
  try {
    static_cast<void>(x + Tensor());
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), Not(HasSubstr("idle")));
  }
}

}  // namespace
}  // namespace tandem
