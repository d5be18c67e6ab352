#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

Tensor polynomial(Tensor x) { return x * x * 3.0 + x - 1.0; }

TEST(Function, GivesWhatTheSameCodeGivesEagerly) {
  auto f = function(polynomial);
  const Tensor x{1.0, -2.5, 4.0};
  EXPECT_EQ(f(x).to_vector<float>(), polynomial(x).to_vector<float>());
}

TEST(Function, TracesOncePerSignature) {
  int traces = 0;
  auto f = function([&traces](Tensor x) {
    ++traces;
    return x + x;
  });
  f(Tensor{1.0, 2.0});
  f(Tensor{3.0, 4.0});
  EXPECT_EQ(traces, 1);
  f(Tensor{1, 2});
  EXPECT_EQ(traces, 2);
  f(Tensor{{1.0, 2.0}});
  EXPECT_EQ(traces, 3);
}

TEST(Function, SizesThatKeepChangingBecomeUnknown) {
  auto f = function([](Tensor x) { return reduce_sum(x); });
  for (int n = 1; n <= 20; ++n) {
    EXPECT_EQ(f(Tensor::from(std::vector<float>(static_cast<std::size_t>(n), 1.0f))).item<float>(),
              static_cast<float>(n));
  }
  EXPECT_LE(f.num_traces(), 4u);
}

TEST(Function, TakesAndReturnsStructures) {
  auto f = function([](std::vector<Tensor> list, double factor) {
    return std::pair(list[0] + list[1], std::vector<Tensor>{list[0] * factor});
  });
  auto [sum, scaled] = f(std::vector<Tensor>{Tensor(1.0), Tensor(2.0)}, 10.0);
  EXPECT_EQ(sum.item<float>(), 3.0f);
  EXPECT_EQ(scaled.at(0).item<float>(), 10.0f);
  EXPECT_EQ(f(std::vector<Tensor>{Tensor(1.0), Tensor(2.0)}, 20.0).second.at(0).item<float>(),
            20.0f);
}

TEST(Function, CapturesTensorsAndVariables) {
  const Tensor outside{1.0, 2.0};
  Variable v(Tensor(10.0));
  auto f = function([&](Tensor x) { return x * v + outside; });
  EXPECT_EQ(f(Tensor{1.0, 1.0}).to_vector<float>(), (std::vector<float>{11, 12}));
  v.assign(Tensor(20.0));
  EXPECT_EQ(f(Tensor{1.0, 1.0}).to_vector<float>(), (std::vector<float>{21, 22}));
}

TEST(Function, SideEffectsHappenInTheOrderOfTheProgram) {
  Variable v(Tensor(1.0));
  auto f = function([&](Tensor x) {
    const Tensor before = v.read_value();
    v.assign(x);
    v.assign_add(Tensor(5.0));
    const Tensor between = v.read_value();
    v.assign(before + between);
    return std::vector<Tensor>{before, between};
  });
  const auto r = f(Tensor(100.0));
  EXPECT_EQ(r[0].item<float>(), 1.0f);
  EXPECT_EQ(r[1].item<float>(), 105.0f);
  EXPECT_EQ(v.read_value().item<float>(), 106.0f);
}

TEST(Function, AResultIsNotChangedByALaterCall) {
  auto f = function([](Tensor x) { return x + 1.0; });
  const Tensor first = f(Tensor{1.0, 2.0});
  const Tensor second = f(Tensor{10.0, 20.0});
  EXPECT_EQ(first.to_vector<float>(), (std::vector<float>{2, 3}));
  EXPECT_EQ(second.to_vector<float>(), (std::vector<float>{11, 21}));
}

TEST(Function, AVariablesValueIsNotChangedByALaterCall) {
  Variable v(Tensor{0.0, 0.0});
  auto f = function([&](Tensor x) { v.assign(x * 2.0); });
  f(Tensor{1.0, 2.0});
  const Tensor kept = v.read_value();
  f(Tensor{10.0, 20.0});
  EXPECT_EQ(kept.to_vector<float>(), (std::vector<float>{2, 4}));
  EXPECT_EQ(v.read_value().to_vector<float>(), (std::vector<float>{20, 40}));
}

TEST(Function, Nests) {
  auto inner = function([](Tensor x) { return x * 2.0; });
  auto outer = function([&](Tensor x) { return inner(x) + inner(x + 1.0); });
  EXPECT_EQ(outer(Tensor(3.0)).item<float>(), 14.0f);
}

TEST(Function, ASymbolicTensorHasNoValueAndSaysWhatToDo) {
  auto reads = function([](Tensor x) { return Tensor(x.item<float>()); });
  try {
    reads(Tensor(1.0));
    FAIL();
  } catch (const FailedPreconditionError& e) {
    EXPECT_NE(std::string(e.what()).find("being traced"), std::string::npos) << e.what();
  }
  auto branches = function([](Tensor x) { return x > 0.0 ? x : -x; });
  try {
    branches(Tensor(1.0));
    FAIL();
  } catch (const FailedPreconditionError& e) {
    EXPECT_NE(std::string(e.what()).find("td::cond"), std::string::npos) << e.what();
  }
}

TEST(Function, AnEscapedSymbolIsAnError) {
  Tensor escaped;
  auto f = function([&](Tensor x) {
    escaped = x + 1.0;
    return x;
  });
  f(Tensor(1.0));
  EXPECT_THROW(escaped + 1.0, FailedPreconditionError);
  auto g = function([&](Tensor x) { return x + escaped; });
  EXPECT_THROW(g(Tensor(1.0)), FailedPreconditionError);
}

TEST(Function, AThrowingCallableLeavesTheFunctionUsable) {
  bool fail = true;
  auto f = function([&](Tensor x) {
    if (fail) throw std::runtime_error("the user's own trouble");
    return x + 1.0;
  });
  try {
    f(Tensor(1.0));
    FAIL();
  } catch (const UnknownError& e) {
    EXPECT_NE(std::string(e.what()).find("the user's own trouble"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("while tracing"), std::string::npos) << e.what();
  }
  fail = false;
  EXPECT_EQ(f(Tensor(1.0)).item<float>(), 2.0f);
}

TEST(Function, ARunTimeErrorNamesTheNodeAndLeavesTheFunctionUsable) {
  auto f = function([](Tensor a, Tensor b) { return a + b; },
                    {.name = "adder", .input_shapes = {PartialShape{-1}, PartialShape{-1}}});
  try {
    f(Tensor{1.0, 2.0}, Tensor{1.0, 2.0, 3.0});
    FAIL();
  } catch (const InvalidArgumentError& e) {
    EXPECT_NE(std::string(e.what()).find("Incompatible shapes: [2] vs. [3]"), std::string::npos)
        << e.what();
    EXPECT_NE(std::string(e.what()).find("AddV2"), std::string::npos) << e.what();
  }
  EXPECT_EQ(f(Tensor{1.0}, Tensor{2.0}).to_vector<float>(), (std::vector<float>{3}));
}

TEST(Function, IndependentWorkGoesOnAfterAFailure) {
  Variable v(Tensor(0.0));
  auto f = function(
      [&](Tensor a, Tensor b) {
        Tensor bad = a + b;
        v.assign_add(Tensor(1.0));
        return bad;
      },
      {.input_shapes = {PartialShape{-1}, PartialShape{-1}}});
  EXPECT_THROW(f(Tensor{1.0, 2.0}, Tensor{1.0, 2.0, 3.0}), InvalidArgumentError);
  EXPECT_EQ(v.read_value().item<float>(), 1.0f);
}

TEST(Function, OneFunctionRunsOnManyThreadsAtOnce) {
  const Tensor w{{1.0, 2.0}, {3.0, 4.0}};
  auto f = function([&](Tensor x) {
    for (int i = 0; i < 20; ++i) x = tanh(matmul(x, w)) + x;
    return reduce_sum(x);
  });
  const Tensor x{{0.1, 0.2}, {0.3, 0.4}};
  const float expected = f(x).item<float>();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) wrong += f(x).item<float>() != expected;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Function, AConcreteFunctionIsCalledAsTheFunction) {
  int traces = 0;
  auto f = function([&](Tensor x, std::pair<Tensor, int> y) {
    ++traces;
    return std::pair(x + y.first, x * static_cast<float>(y.second));
  });
  const Tensor x{1.0, 2.0};
  const auto concrete = f.concrete(x, std::pair(x, 3));
  const auto [sum, product] = concrete(Tensor{5.0, 6.0}, std::pair(x, 3));
  EXPECT_EQ(sum.to_vector<float>(), (std::vector<float>{6, 8}));
  EXPECT_EQ(product.to_vector<float>(), (std::vector<float>{15, 18}));
  EXPECT_EQ(traces, 1);
  EXPECT_EQ(concrete.name(), f.concrete(x, std::pair(x, 3)).name());
}

TEST(Function, AConcreteFunctionRefusesWhatItWasNotTracedFor) {
  const Tensor captured{1.0, 1.0};
  auto f = function([&](Tensor x, int n) { return x * static_cast<float>(n) + captured; },
                    {.name = "scaled"});
  const auto concrete = f.concrete(Tensor{1.0, 2.0}, 2);
  EXPECT_EQ(concrete(Tensor{1.0, 2.0}, 2).to_vector<float>(), (std::vector<float>{3, 5}));
  const auto expect_refused = [&](const Tensor& x, int n, const std::string& why) {
    try {
      concrete(x, n);
      ADD_FAILURE() << why;
    } catch (const InvalidArgumentError& e) {
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("'scaled_"), std::string::npos) << e.what();
    }
  };
  expect_refused(Tensor{1.0, 2.0, 3.0}, 2, "argument 0 is float[3] but the trace is for float[2]");
  expect_refused(Tensor{1, 2}, 2, "argument 0 is int32[2] but the trace is for float[2]");
  expect_refused(Tensor{1.0, 2.0}, 3, "other values of those that are no tensors");
  EXPECT_EQ(f.num_traces(), 1u);
}

TEST(Function, AConcreteFunctionIsTracedIntoOthers) {
  Variable w(Tensor(2.0));
  auto inner = function([&](Tensor x) { return x * x * w; });
  const auto concrete = inner.concrete(Tensor(0.0));
  auto outer = function([&](Tensor x) { return concrete(x) + 1.0; });
  EXPECT_EQ(outer(Tensor(3.0)).item<float>(), 19.0f);
  GradientTape tape;
  EXPECT_EQ(tape.gradient(concrete(Tensor(3.0)), w).item<float>(), 9.0f);
}

TEST(Cond, RunsOneBranchEagerlyAndTraced) {
  const auto body = [](Tensor x) {
    return cond(
        x > 0.0, [&] { return x * 2.0; }, [&] { return x - 1.0; });
  };
  auto f = function(body);
  for (float value : {3.0f, -3.0f}) {
    EXPECT_EQ(f(Tensor(value)).item<float>(), body(Tensor(value)).item<float>());
  }
}

TEST(Cond, EffectsOfTheOtherBranchDoNotHappen) {
  Variable v(Tensor(0.0));
  auto f = function([&](Tensor x) {
    return cond(
        x > 0.0,
        [&] {
          v.assign_add(Tensor(1.0));
          return x;
        },
        [&] {
          v.assign_add(Tensor(100.0));
          return -x;
        });
  });
  f(Tensor(1.0));
  EXPECT_EQ(v.read_value().item<float>(), 1.0f);
  f(Tensor(-1.0));
  EXPECT_EQ(v.read_value().item<float>(), 101.0f);
}

TEST(Cond, BranchesOfDifferentDtypesAreRefused) {
  auto f = function([](Tensor x) {
    return cond(
        x > 0.0, [&] { return x; }, [&] { return Tensor(1); });
  });
  EXPECT_THROW(f(Tensor(1.0)), InvalidArgumentError);
}

TEST(WhileLoop, CountsEagerlyAndTraced) {
  const auto body = [](Tensor n) {
    auto [i, product] =
        while_loop([&](const auto& s) { return s.first < n; },
                   [](const auto& s) { return std::pair(s.first + 1, s.second * 2.0); },
                   std::pair(Tensor(0), Tensor(1.0)));
    return product;
  };
  auto f = function(body);
  EXPECT_EQ(body(Tensor(10)).item<float>(), 1024.0f);
  EXPECT_EQ(f(Tensor(10)).item<float>(), 1024.0f);
  EXPECT_EQ(f(Tensor(0)).item<float>(), 1.0f);
}

TEST(WhileLoop, AtMostSoManyIterations) {
  auto f = function([](Tensor x) {
    return while_loop([](const Tensor&) { return Tensor(true); },
                      [](const Tensor& v) { return v + 1.0; }, x, {.maximum_iterations = 7});
  });
  EXPECT_EQ(f(Tensor(0.0)).item<float>(), 7.0f);
}

// Once for each trace and not for each call, which is always a mistake; TensorFlow refuses it too.
TEST(Function, AVariableThatItsBodyLetsGoOfIsRefused) {
  const auto refused = [](auto&& f) {
    try {
      f(Tensor(1.0f));
    } catch (const FailedPreconditionError& e) {
      return std::string(e.what());
    }
    return std::string("no FailedPreconditionError");
  };
  const auto expect_named = [](const std::string& text) {
    EXPECT_NE(text.find("td::Variable 'scratch' was made in the function's body"), text.npos)
        << text;
  };
  auto counts = function([](Tensor x) {
    const Variable v(Tensor(1.0f), {.name = "scratch"});
    v.assign_add(x);
    return v.read_value();
  });
  expect_named(refused(counts));
  expect_named(refused(counts));  // nothing of the first try is left
  auto in_branch = function([](Tensor x) {
    return cond(
        x > 0.0f,
        [&] {
          const Variable v([] { return Tensor(1.0f); }, {.name = "scratch"});
          return v.assign_add(x).read_value();
        },
        [&] { return x; });
  });
  expect_named(refused(in_branch));
  auto outer = function([&](Tensor x) { return counts(x) + 1.0f; });
  expect_named(refused(outer));
}

TEST(Function, AVariableThatIsKeptOrNotUsedIsFine) {
  Variable kept;
  auto counts = function([&](Tensor x) {
    if (!kept.defined()) kept = Variable(Tensor(1.0f), {.name = "kept"});
    const Variable unused(Tensor(5.0f));
    kept.assign_add(x);
    return kept.read_value();
  });
  for (const float expected : {2.0f, 3.0f, 4.0f})
    EXPECT_EQ(counts(Tensor(1.0f)).item<float>(), expected);
  auto around = function([&](Tensor x) { return counts(x) * 2.0f; });
  EXPECT_EQ(around(Tensor(1.0f)).item<float>(), 10.0f);
}

TEST(Function, AConcreteFunctionThatHoldsNoneSaysSo) {
  const ConcreteFunction none;
  EXPECT_FALSE(none.defined());
  EXPECT_EQ(none.function(), nullptr);
  for (const auto& asks : std::vector<std::function<void()>>{
           [&] { none.call({}); }, [&] { none.graph(); }, [&] { none.name(); }}) {
    EXPECT_THROW(asks(), InvalidArgumentError);
  }
}

TEST(Function, OneThatWasMovedFromCanStillBeCalled) {
  auto f = function([](Tensor x) { return x * x; });
  const auto other = std::move(f);
  EXPECT_EQ(other(Tensor(3.0f)).item<float>(), 9.0f);
  EXPECT_EQ(f(Tensor(3.0f)).item<float>(), 9.0f);
  EXPECT_EQ(f.num_traces(), 1u) << "the same function";
}

// TensorFlow's: a name behind those outside, a name with "/" as it is, none at all.
TEST(Function, NameScopes) {
  auto f = function([](Tensor x) {
    const NameScope outer("outer");
    Tensor y;
    {
      const NameScope inner("inner");
      y = square(x);
    }
    {
      const NameScope again("other/again/");
      y = square(y);
    }
    const NameScope none("");
    return square(y);
  });
  const auto traced = f.concrete(Tensor{1.0});
  std::vector<std::string> names;
  for (const auto& node : traced.graph().nodes()) {
    if (node->op().name == "Square") names.push_back(node->name());
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"outer/inner/Square", "other/again/Square", "Square"}));
}

}  // namespace
}  // namespace tandem
