#include "tandem/autodiff/gradient_tape.h"

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/identity_ops.h"
#include "tandem/ops/list_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

TEST(GradientTape, DifferentiatesWhatItWatches) {
  const Tensor x(3.0), unwatched(5.0);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x * unwatched;
  EXPECT_FLOAT_EQ(tape.gradient(y, x).item<float>(), 30.0f);
}

TEST(GradientTape, KeepsTemporariesThatTheGradientNeeds) {
  const Tensor x{1.0, 2.0}, unwatched{5.0, 7.0};
  GradientTape tape;
  tape.watch(x);
  const Tensor y = (unwatched + unwatched) * x;  // the sum may not be overwritten by the product
  EXPECT_EQ(tape.gradient(y, x).to_vector<float>(), (std::vector<float>{10, 14}));
}

TEST(GradientTape, UnconnectedSourcesGiveNothingOrZeros) {
  const Tensor x(3.0), z{1.0, 2.0};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  tape.watch(z);
  const Tensor y = x * x;
  EXPECT_FALSE(tape.gradient(y, z).defined());
  EXPECT_EQ(tape.gradient(y, z, UnconnectedGradients::kZero).to_vector<float>(),
            (std::vector<float>{0, 0}));
}

TEST(GradientTape, IsUsedOnceUnlessPersistent) {
  const Tensor x(3.0);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  tape.gradient(y, x);
  EXPECT_THROW(tape.gradient(y, x), FailedPreconditionError);
}

TEST(GradientTape, WatchesTrainableVariablesUnasked) {
  Variable w(Tensor{1.0, 2.0});
  Variable frozen(Tensor{3.0, 4.0}, {.trainable = false});
  GradientTape tape;
  const Tensor y = reduce_sum(w * w * frozen);
  const auto grads = tape.gradient(y, std::vector<Variable>{w, frozen});
  EXPECT_EQ(grads[0].to_vector<float>(), (std::vector<float>{6, 16}));
  EXPECT_FALSE(grads[1].defined());
}

TEST(GradientTape, NestsForSecondDerivatives) {
  const Tensor x(2.0);
  GradientTape outer;
  outer.watch(x);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(x);
    const Tensor y = x * x * x;
    first = inner.gradient(y, x);
  }
  EXPECT_FLOAT_EQ(first.item<float>(), 12.0f);
  EXPECT_FLOAT_EQ(outer.gradient(first, x).item<float>(), 12.0f);
}

TEST(GradientTape, StopGradientStops) {
  const Tensor x(2.0);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * stop_gradient(x * x);
  EXPECT_FLOAT_EQ(tape.gradient(y, x).item<float>(), 4.0f);
}

TEST(GradientTape, Jacobian) {
  const Tensor x{1.0, 2.0, 3.0};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x;
  const Tensor j = tape.jacobian(y, x);
  EXPECT_EQ(j.shape(), (Shape{3, 3}));
  EXPECT_EQ(j.to_vector<float>(), (std::vector<float>{2, 0, 0, 0, 4, 0, 0, 0, 6}));
}

TEST(GradientTape, JacobianOfAVariable) {
  const Variable w(Tensor{{1.0, 2.0}, {3.0, 4.0}});
  GradientTape tape({.persistent = true});
  const Tensor y = matmul(Tensor{{5.0, 7.0}}, w);
  const Tensor j = tape.jacobian(y, w);
  EXPECT_EQ(j.shape(), (Shape{1, 2, 2, 2}));
  EXPECT_EQ(j.to_vector<float>(), (std::vector<float>{5, 0, 7, 0, 0, 5, 0, 7}));
  EXPECT_EQ(tape.jacobian(y[{Slice(), Slice(2, 2)}], w).shape(), (Shape{1, 0, 2, 2}));
}

TEST(GradientTape, BatchJacobianTakesEachExampleByItself) {
  const Tensor x{{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x;
  const Tensor j = tape.batch_jacobian(y, x);
  EXPECT_EQ(j.shape(), (Shape{3, 2, 2}));
  EXPECT_EQ(j.to_vector<float>(), (std::vector<float>{2, 0, 0, 4, 6, 0, 0, 8, 10, 0, 0, 12}));
  EXPECT_THROW(tape.batch_jacobian(reduce_sum(y), x), InvalidArgumentError);
}

TEST(GradientTape, GradientsByAListComeApart) {
  const Variable w(Tensor(2.0)), b(Tensor(1.0));
  const Tensor x(3.0);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = w * x * x + b;
  const auto [dw, db, dx] = tape.gradient(y, {w, b, x});
  EXPECT_FLOAT_EQ(dw.item<float>(), 9.0f);
  EXPECT_FLOAT_EQ(db.item<float>(), 1.0f);
  EXPECT_FLOAT_EQ(dx.item<float>(), 12.0f);
  auto [clipped, unused] = tape.gradient(y, {w, b});
  clipped = minimum(clipped, 1.0);
  EXPECT_FLOAT_EQ((clipped + unused).item<float>(), 2.0f);
  const std::vector<Tensor> as_vector = tape.gradient(y, {w, b});
  EXPECT_EQ(as_vector.size(), 2u);
  const Variable other(Tensor(1.0));
  const auto [none] = tape.gradient(y, {other}, UnconnectedGradients::kZero);
  EXPECT_FLOAT_EQ(none.item<float>(), 0.0f);
}

TEST(GradientTape, OptionsWeightTheTarget) {
  const Tensor x{1.0, 2.0};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x;
  EXPECT_EQ(tape.gradient(y, x, {.output_gradients = Tensor{10.0, 100.0}}).to_vector<float>(),
            (std::vector<float>{20, 400}));
  const Variable other(Tensor(1.0));
  EXPECT_FLOAT_EQ(
      tape.gradient(y, other, {.unconnected_gradients = UnconnectedGradients::kZero}).item<float>(),
      0.0f);
  EXPECT_THROW(tape.gradient(y, x, {.output_gradients = Tensor{1.0, 2.0, 3.0}}),
               InvalidArgumentError);
}

TEST(GradientTape, IntegersHaveNoGradient) {
  GradientTape tape;
  EXPECT_THROW(tape.watch(Tensor(1)), InvalidArgumentError);
}

TEST(GradientTape, CustomGradient) {
  const Tensor x(2.0);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = custom_gradient(
      [](auto in) { return std::vector<Tensor>{in[0] * in[0]}; },
      [](auto, auto, auto dy) { return std::vector<Tensor>{dy[0] * 100.0}; }, {x})[0];
  EXPECT_FLOAT_EQ(y.item<float>(), 4.0f);
  EXPECT_FLOAT_EQ(tape.gradient(y, x).item<float>(), 100.0f);
}

Tensor clipped(const Tensor& x, const Tensor& bound) {
  return custom_gradient(
      [](std::span<const Tensor> in) { return std::vector<Tensor>{in[0] * in[0]}; },
      [bound](std::span<const Tensor> in, std::span<const Tensor> out,
              std::span<const Tensor> grads) {
        return std::vector<Tensor>{minimum(grads[0] * in[0] * 2.0f, bound) + out[0] * 0.0f};
      },
      {x})[0];
}

TEST(GradientTape, CustomGradientInsideFunctions) {
  const Tensor x{1.0, 5.0}, bound(4.0);
  const auto gradient_of = [&](auto f) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(reduce_sum(f(x)), x).template to_vector<float>();
  };
  const std::vector<float> expected{2, 4};
  EXPECT_EQ(gradient_of([&](Tensor t) { return clipped(t, bound); }), expected);
  // The bound is captured from outside, and made inside.
  EXPECT_EQ(gradient_of(function([&](Tensor t) { return clipped(t, bound); })), expected);
  EXPECT_EQ(
      gradient_of(function([&](Tensor t) { return clipped(t, bound + reduce_sum(t) * 0.0f); })),
      expected);
  auto inner = function([&](Tensor t) { return clipped(t, bound); });
  EXPECT_EQ(gradient_of(function([&](Tensor t) { return inner(t) + 1.0f; })), expected);
  EXPECT_EQ(gradient_of(function([&](Tensor t) {
              return cond(
                  reduce_sum(t) > 0.0f, [&] { return clipped(t, bound); }, [&] { return t; });
            })),
            expected);
  auto with_tape = function([&](Tensor t) {
    GradientTape tape;
    tape.watch(t);
    return tape.gradient(reduce_sum(clipped(t, bound)), t);
  });
  EXPECT_EQ(with_tape(x).to_vector<float>(), expected);
}

TEST(GradientTape, WorksInsideATracedFunction) {
  Variable w(Tensor{{1.0, 2.0}, {3.0, 4.0}});
  const auto step = [&](Tensor x) {
    GradientTape tape;
    const Tensor loss = reduce_sum(tanh(matmul(x, w)));
    return tape.gradient(loss, w);
  };
  auto f = function(step);
  const Tensor x{{0.1, 0.2}};
  EXPECT_EQ(f(x).to_vector<float>(), step(x).to_vector<float>());
}

TEST(GradientTape, GoesThroughFunctions) {
  Variable w(Tensor(3.0));
  auto f = function([&](Tensor x) { return x * x * w; });
  const Tensor x(2.0);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = f(x);
  EXPECT_FLOAT_EQ(tape.gradient(y, x).item<float>(), 12.0f);
  EXPECT_FLOAT_EQ(tape.gradient(y, w).item<float>(), 4.0f);
}

TEST(GradientTape, SecondDerivativeThroughAFunction) {
  auto f = function([](Tensor x) { return x * x * x; });
  const Tensor x(2.0);
  GradientTape outer;
  outer.watch(x);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(x);
    first = inner.gradient(f(x), x);
  }
  EXPECT_FLOAT_EQ(first.item<float>(), 12.0f);
  EXPECT_FLOAT_EQ(outer.gradient(first, x).item<float>(), 12.0f);
}

TEST(GradientTape, GoesThroughCond) {
  Variable w(Tensor(3.0));
  auto f = function([&](Tensor x) {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    const Tensor y = cond(
        x > 0.0, [&] { return x * x * w; }, [&] { return x * 5.0; });
    return std::vector<Tensor>{tape.gradient(y, x),
                               tape.gradient(y, w, UnconnectedGradients::kZero)};
  });
  const auto positive = f(Tensor(2.0)), negative = f(Tensor(-2.0));
  EXPECT_FLOAT_EQ(positive[0].item<float>(), 12.0f);
  EXPECT_FLOAT_EQ(positive[1].item<float>(), 4.0f);
  EXPECT_FLOAT_EQ(negative[0].item<float>(), 5.0f);
  EXPECT_FLOAT_EQ(negative[1].item<float>(), 0.0f);
}

TEST(GradientTape, GoesThroughWhileLoop) {
  Variable w(Tensor(2.0));
  auto f = function([&](Tensor x, Tensor n) {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    auto [i, y] =
        while_loop([&](const auto& s) { return s.first < n; },
                   [&](const auto& s) { return std::pair(s.first + 1, s.second * w * x); },
                   std::pair(Tensor(0), x));
    return std::vector<Tensor>{y, tape.gradient(y, x), tape.gradient(y, w)};
  });
  // y = x^(n+1) w^n
  const auto r = f(Tensor(1.5), Tensor(3));
  EXPECT_FLOAT_EQ(r[0].item<float>(), 1.5f * 1.5f * 1.5f * 1.5f * 8.0f);
  EXPECT_FLOAT_EQ(r[1].item<float>(), 4 * 1.5f * 1.5f * 1.5f * 8.0f);
  EXPECT_FLOAT_EQ(r[2].item<float>(), 1.5f * 1.5f * 1.5f * 1.5f * 3 * 4.0f);
}

// x^8 as a loop: its second derivative is 56 x^6 eagerly; traced it is an error that says so, or
// right.
Tensor eighth_power(Tensor x) {
  return while_loop([](const Tensor& v) { return v < 100.0f; },
                    [](const Tensor& v) { return v * v; }, x);
}
template <class F>
Tensor second_derivative(F f, const Tensor& x) {
  GradientTape outer;
  outer.watch(x);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(x);
    first = inner.gradient(f(x), x);
  }
  return outer.gradient(first, x, UnconnectedGradients::kZero);
}

TEST(GradientTape, SecondDerivativesThroughLoopsAreNeverWrong) {
  const Tensor x(2.0f);
  EXPECT_EQ(second_derivative(eighth_power, x).item<float>(), 3584);
  EXPECT_THROW(second_derivative(function(eighth_power), x), UnimplementedError);
  auto all = function([](Tensor t) { return second_derivative(eighth_power, t); });
  EXPECT_THROW(all(x), UnimplementedError);
  auto first = function([](Tensor t) {
    GradientTape tape;
    tape.watch(t);
    return tape.gradient(eighth_power(t), t);
  });
  EXPECT_EQ(first(x).item<float>(), 1024);
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(tape.gradient(first(x), x).item<float>(), 3584);
}

// A loop that takes its inputs from one list and collects its results in another.
Tensor running_products(const Tensor& x) {
  const auto round = while_loop(
      [](const std::vector<Tensor>& v) { return v[0] < 3; },
      [](const std::vector<Tensor>& v) {
        const auto [rest, last] = list_ops::pop_back(v[1], float32, PartialShape::scalar());
        const Tensor product = v[3] * last;
        return std::vector<Tensor>{v[0] + 1, rest, list_ops::push_back(v[2], product), product};
      },
      std::vector<Tensor>{Tensor(0), list_ops::from_tensor(x),
                          list_ops::empty_tensor_list(float32, PartialShape::scalar()),
                          Tensor(1.0f)});
  return list_ops::stack(round[2], float32, PartialShape::scalar());
}

TEST(GradientTape, GoesThroughListsThatALoopCarries) {
  const auto gradient = [](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(reduce_sum(running_products(x)), x);
  };
  const Tensor x{2.0, 3.0, 5.0};  // 5, 5·3, 5·3·2
  EXPECT_TRUE(all_equal(running_products(x), Tensor{5.0, 15.0, 30.0}));
  EXPECT_TRUE(all_equal(gradient(x), Tensor{15.0, 15.0, 10.0}));
  EXPECT_TRUE(all_equal(function(gradient)(x), Tensor{15.0, 15.0, 10.0}));
}

TEST(GradientTape, MayBeDestroyedOnAnyThreadInAnyOrder) {
  const Tensor x{1.0, 2.0};
  auto first = std::make_unique<GradientTape>();
  auto second = std::make_unique<GradientTape>();
  GradientTape last;
  first->watch(x);
  second->watch(x);
  last.watch(x);
  const Tensor y = x * x;
  std::thread([tape = std::move(first)] {}).join();
  const Tensor z = y * 3.0;
  {
    const StopRecording unheard;
    second.reset();
  }
  const Tensor w = z + x;
  EXPECT_TRUE(all_equal(last.gradient(w, x), Tensor{7.0, 13.0}));
}

TEST(GradientTape, ManyThreadsDestroyTapesOfOneThatRecords) {
  const Tensor x{1.0, 2.0};
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      auto tape = std::make_unique<GradientTape>();
      tape->watch(x);
      threads.emplace_back([t = std::move(tape)]() mutable { t.reset(); });
    }
    GradientTape mine;
    mine.watch(x);
    EXPECT_TRUE(all_equal(mine.gradient(x * x, x), Tensor{2.0, 4.0}));
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace tandem
