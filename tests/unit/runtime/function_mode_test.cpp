#include "tandem/runtime/function_mode.h"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/check_numerics.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(code_name(error.code())) + ": " + error.what();
  }
  return "";
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

struct RunEagerly {
  RunEagerly() { config::run_functions_eagerly(true); }
  ~RunEagerly() { config::run_functions_eagerly(false); }
};

TEST(FunctionMode, RunsTheCodeAtEachCallWhereFunctionsRunEagerly) {
  int calls = 0;
  const auto f = function([&](Tensor x) {
    ++calls;
    return x.is_symbolic() ? x : x * 2.0f;
  });
  {
    const RunEagerly eagerly;
    EXPECT_TRUE(config::functions_run_eagerly());
    EXPECT_EQ(f(Tensor(3.0f)).item<float>(), 6);
    EXPECT_EQ(f(Tensor(4.0f)).item<float>(), 8);
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(f.num_traces(), 0u);
    const auto nothing = function([&](Tensor) { ++calls; });
    nothing(Tensor(1.0f));
    EXPECT_EQ(calls, 3);
    GradientTape tape;
    const Tensor x(3.0f);
    tape.watch(x);
    EXPECT_EQ(tape.gradient(f(x), x).item<float>(), 2);
    const auto concrete = f.concrete(Tensor(1.0f));
    EXPECT_THAT(error_of([&] { concrete(Tensor(1.0f)); }),
                AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("run_functions_eagerly(false)")));
  }
  EXPECT_EQ(f(Tensor(3.0f)).item<float>(), 3);
  EXPECT_EQ(f.num_traces(), 1u);
}

TEST(FunctionMode, AFunctionThatCallsItselfIsReportedOnce) {
  std::function<Tensor(Tensor)> again;
  const auto f = function([&](Tensor x) { return again(x) + 1.0f; }, {.name = "endless"});
  again = [&](Tensor x) { return f(x * 2.0f); };
  const std::string text = error_of([&] { f(Tensor{1.0f}); });
  EXPECT_THAT(text, HasSubstr("Does it call itself?"));
  EXPECT_EQ(count(text, "while tracing function 'endless'"), 1) << text;
}

struct CheckNumerics {
  CheckNumerics() { debugging::enable_check_numerics(); }
  ~CheckNumerics() { debugging::disable_check_numerics(); }
};

TEST(CheckNumerics, NamesTheOpThatMadeTheFirstNan) {
  const auto risky = [](Tensor x) { return math::log(x) * 2.0f; };
  EXPECT_EQ(error_of([&] { risky(Tensor{-1.0f}); }), "");
  const CheckNumerics checks;
  EXPECT_THAT(error_of([&] { risky(Tensor{-1.0f}); }),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("op \"Log\""), HasSubstr("float")));
  EXPECT_EQ(error_of([&] { risky(Tensor{1.0f}); }), "");
  const auto traced = function(risky, {.name = "risky"});
  EXPECT_EQ(error_of([&] { traced(Tensor{1.0f}); }), "");
  EXPECT_THAT(error_of([&] { traced(Tensor{-1.0f}); }),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("op \"Log\""), HasSubstr("risky")));
  GradientTape tape;
  const Tensor x{4.0f};
  tape.watch(x);
  EXPECT_EQ(tape.gradient(math::log(x), x).to_vector<float>()[0], 0.25f);
}

}  // namespace
}  // namespace tandem
