// Plans for sizes that change: few of them, made without holding up others, with the results that
// plans of their own would give.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"
#include "tandem/runtime/dispatch.h"
#include <tandem/tandem.h>

namespace tandem {
namespace {

using namespace keras;

// Without a short period, between -1 and 1.
Tensor numbers(const Shape& shape, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(shape.num_elements()));
  std::uint64_t state = 0x9E3779B97F4A7C15u * (seed + 1);
  for (float& v : values) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    v = static_cast<float>(state >> 40) * 0x1p-23f - 1.0f;
  }
  return Tensor::from(values, shape);
}

Tensor classes(std::int64_t n) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * 7 % 10);
  return Tensor::from(values);
}

std::vector<std::int64_t> random_sizes(std::size_t count, std::int64_t most, std::uint64_t seed) {
  std::vector<std::int64_t> sizes;
  std::uint64_t state = seed;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    sizes.push_back(static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(most)));
  }
  return sizes;
}

using Body = std::function<std::vector<Tensor>(std::vector<Tensor>)>;
using Inputs = std::function<std::vector<Tensor>(std::int64_t)>;

// One trace for all sizes of the first axes.
auto traced(const Body& body, const std::vector<Tensor>& like) {
  std::vector<PartialShape> shapes;
  for (const Tensor& t : like) {
    PartialShape shape(t.shape());
    if (shape.rank() > 0) shape.set_dim(0, PartialShape::kUnknown);
    shapes.push_back(shape);
  }
  std::vector<DType> dtypes;
  for (const Tensor& t : like) dtypes.push_back(t.dtype());
  return trace_function("f", dtypes, shapes, [&](std::span<const Tensor> args) {
    return body({args.begin(), args.end()});
  });
}

void expect_same_bits(const std::vector<Tensor>& got, const std::vector<Tensor>& expected,
                      std::int64_t size) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Array a = got[i].array(), b = expected[i].array();
    ASSERT_EQ(a.dtype(), b.dtype()) << "result " << i << " of size " << size;
    ASSERT_EQ(a.shape(), b.shape()) << "result " << i << " of size " << size;
    ASSERT_TRUE(a.num_bytes() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.num_bytes()) == 0)
        << "result " << i << " of size " << size << ": " << a.to_string() << " instead of "
        << b.to_string();
  }
}

// Four threads call one function with random sizes, 0 and 1 among them; each result has the bits
// that the first call of a trace of its own gives, whose plan is for that size alone.
PlanStats expect_as_by_own_plans(const Body& body, const Inputs& inputs, std::size_t calls,
                                 std::int64_t most) {
  const ConcreteFunction f = traced(body, inputs(2));
  std::vector<std::int64_t> sizes = random_sizes(calls, most, 42);
  sizes[calls / 3] = 0;
  sizes[calls / 2] = 1;
  std::vector<std::vector<Tensor>> results(sizes.size());
  Runtime& runtime = Runtime::current();
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const RuntimeScope scope(runtime);
      for (std::size_t i = next++; i < sizes.size(); i = next++)
        results[i] = f.call(inputs(sizes[i]));
    });
  }
  for (std::thread& t : threads) t.join();
  const PlanStats stats = plan_stats(f);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const ConcreteFunction own = traced(body, inputs(2));
    expect_same_bits(results[i], own.call(inputs(sizes[i])), sizes[i]);
    EXPECT_EQ(plan_stats(own).made, 1);
    EXPECT_EQ(plan_stats(own).shared, 0);
    if (::testing::Test::HasFatalFailure()) break;
  }
  return stats;
}

Sequential mlp() {
  keras::utils::set_random_seed(1);
  return {Input({20}), Dense(64, {.activation = "relu"}), Dense(10)};
}

Sequential cnn() {
  keras::utils::set_random_seed(2);
  return {Input({10, 10, 1}), Conv2D(8, 3, {.activation = "relu"}), MaxPooling2D(), Flatten(),
          Dense(10)};
}

Inputs images_and_classes(Shape image) {
  return [image](std::int64_t n) {
    std::vector<std::int64_t> dims{n};
    for (const std::int64_t d : image.dims()) dims.push_back(d);
    return std::vector<Tensor>{numbers(Shape(dims), static_cast<std::uint64_t>(n)), classes(n)};
  };
}

Body loss_and_gradients(const Sequential& model) {
  const losses::SparseCategoricalCrossentropy loss_of({.from_logits = true});
  return [model, loss_of](std::vector<Tensor> in) {
    GradientTape tape;
    const Tensor loss = loss_of(in[1], model(in[0], {.training = true}));
    std::vector<Tensor> all = tape.gradient(loss, model.trainable_weights());
    all.push_back(loss);
    return all;
  };
}

TEST(SharedPlans, ServeInferenceOfAllBatchSizes) {
  const Sequential model = mlp();
  const PlanStats stats = expect_as_by_own_plans(
      [&](std::vector<Tensor> in) { return std::vector<Tensor>{model(in[0])}; },
      [](std::int64_t n) {
        return std::vector<Tensor>{numbers({n, 20}, 3)};
      },
      300, 400);
  EXPECT_GE(stats.shared, 1);
  EXPECT_LE(stats.made, 10);
}

TEST(SharedPlans, GiveTheGradientsOfAllBatchSizes) {
  const Sequential model = mlp();
  const PlanStats stats =
      expect_as_by_own_plans(loss_and_gradients(model), images_and_classes({20}), 200, 300);
  EXPECT_GE(stats.shared, 1);
  EXPECT_LE(stats.made, 12);
}

TEST(SharedPlans, GiveTheGradientsOfConvolutions) {
  const Sequential model = cnn();
  const PlanStats stats =
      expect_as_by_own_plans(loss_and_gradients(model), images_and_classes({10, 10, 1}), 100, 60);
  EXPECT_GE(stats.shared, 1);
  EXPECT_LE(stats.made, 12);
}

TEST(SharedPlans, TrainAsOwnPlansDo) {
  const auto trained = [](bool one_function) {
    const Sequential model = mlp();
    const losses::SparseCategoricalCrossentropy loss_of({.from_logits = true});
    const optimizers::Adam optimizer;
    const std::vector<Variable> weights = model.trainable_weights();
    optimizer.build(weights);
    const Inputs inputs = images_and_classes({20});
    const Body step = [&](std::vector<Tensor> in) {
      GradientTape tape;
      const Tensor loss = loss_of(in[1], model(in[0], {.training = true}));
      optimizer.apply(tape.gradient(loss, weights), weights);
      return std::vector<Tensor>{loss};
    };
    ConcreteFunction f = traced(step, inputs(2));
    for (const std::int64_t n : random_sizes(80, 200, 7)) {
      if (!one_function) f = traced(step, inputs(2));
      f.call(inputs(n + 1));
    }
    std::vector<Tensor> values;
    for (const Variable& w : weights) values.push_back(w.value());
    return values;
  };
  expect_same_bits(trained(true), trained(false), 0);
}

TEST(SharedPlans, LeaveShapesThatDependOnValuesToTheCall) {
  const PlanStats stats = expect_as_by_own_plans(
      [](std::vector<Tensor> in) {
        const Tensor positive = boolean_mask(in[0], reduce_sum(in[0], Axes(1)) > 0.0);
        return std::vector<Tensor>{reduce_sum(tanh(positive) * 2.0, Axes(0)), positive,
                                   exp(in[0]) + 1.0};
      },
      [](std::int64_t n) {
        return std::vector<Tensor>{numbers({n, 40}, 5)};
      },
      150, 300);
  EXPECT_GE(stats.shared, 1);
  EXPECT_LE(stats.made, 10);
}

TEST(SharedPlans, RunLoopsOfVaryingSizes) {
  const PlanStats stats = expect_as_by_own_plans(
      [](std::vector<Tensor> in) {
        auto [i, sum] = while_loop([](Tensor k, Tensor) { return k < 5; },
                                   [&](Tensor k, Tensor s) { return std::pair(k + 1, s + in[0]); },
                                   0, zeros_like(in[0]));
        return std::vector<Tensor>{sum, reduce_mean(sum, Axes(0))};
      },
      [](std::int64_t n) {
        return std::vector<Tensor>{numbers({n, 33}, 6)};
      },
      100, 200);
  EXPECT_LE(stats.made, 10);
}

// A size that a branch of the graph asks for is no constant of it.
TEST(SharedPlans, ComputeWithSizesThemselves) {
  expect_as_by_own_plans(
      [](std::vector<Tensor> in) {
        const Tensor rows = gather(shape(in[0]), Tensor(0));
        const Tensor few = cond(
            rows > 100, [&] { return in[0] * 2.0; }, [&] { return in[0]; });
        const Tensor first = strided_slice(in[0], Tensor{0, 0}, Tensor{50, 3}, Tensor{1, 1});
        return std::vector<Tensor>{rows, few, first, reshape(in[0], Tensor{-1, 2}),
                                   cast(rows, DType::kFloat) * reduce_sum(in[0])};
      },
      [](std::int64_t n) {
        return std::vector<Tensor>{numbers({n, 6}, 8)};
      },
      150, 200);
}

TEST(SharedPlans, FollowTwoSizesThatVaryOnTheirOwn) {
  const ConcreteFunction f = trace_function(
      "f", {DType::kFloat, DType::kFloat}, {{-1, -1, 8}, {-1, 8}}, [](std::span<const Tensor> in) {
        const Tensor flat = reshape(in[0], Tensor{-1, 8});
        return std::vector<Tensor>{tanh(flat) * 2.0 + 1.0, reduce_sum(in[0], Axes(1)) * in[1]};
      });
  const std::vector<std::int64_t> batches = random_sizes(60, 40, 1),
                                  lengths = random_sizes(60, 70, 2);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const Tensor x = numbers({batches[i], lengths[i], 8}, i), y = numbers({batches[i], 8}, i + 1);
    const std::vector<Tensor> got = f.call(std::vector<Tensor>{x, y});
    const Tensor flat = reshape(x, Tensor{-1, 8});
    expect_same_bits(got, {tanh(flat) * 2.0 + 1.0, reduce_sum(x, Axes(1)) * y}, batches[i]);
  }
  EXPECT_GE(plan_stats(f).shared, 1);
  EXPECT_LE(plan_stats(f).made, 20);
}

// Sizes that were equal in all calls so far need not be in the next one.
TEST(SharedPlans, NoticeThatSizesDoNotVaryTogether) {
  const ConcreteFunction f = trace_function(
      "f", {DType::kFloat, DType::kFloat}, {{-1, 4}, {-1, 4}}, [](std::span<const Tensor> in) {
        return std::vector<Tensor>{exp(in[0]) * 2.0 + 1.0, exp(in[1]) * 3.0 - 1.0};
      });
  const auto check = [&](std::int64_t a, std::int64_t b) {
    const Tensor x = numbers({a, 4}, 1), y = numbers({b, 4}, 2);
    expect_same_bits(f.call(std::vector<Tensor>{x, y}), {exp(x) * 2.0 + 1.0, exp(y) * 3.0 - 1.0},
                     a);
  };
  for (std::int64_t n = 3; n < 30; ++n) check(n, n);
  EXPECT_EQ(plan_stats(f).made, 3);
  for (std::int64_t n = 3; n < 30; ++n) check(n, 2 * n);
  for (std::int64_t n = 3; n < 30; ++n) check(2 * n, n);
  EXPECT_LE(plan_stats(f).made, 6);
}

TEST(SharedPlans, GiveSizesThatStayAPlanOfTheirOwn) {
  const ConcreteFunction f = trace_function(
      "f", {DType::kFloat}, {{-1, 4}},
      [](std::span<const Tensor> in) { return std::vector<Tensor>{in[0] * 2.0 + 1.0}; });
  for (std::int64_t n = 2; n < 20; ++n) f.call(std::vector<Tensor>{ones({n, 4})});
  EXPECT_EQ(plan_stats(f).made, 3);
  for (int i = 0; i < 200; ++i) f.call(std::vector<Tensor>{ones({11, 4})});
  EXPECT_EQ(plan_stats(f).made, 4);
}

TEST(SharedPlans, StandInExplanations) {
  const auto f = function([](Tensor x) { return x * 2.0 + 1.0; },
                          {.name = "scale", .input_shapes = {PartialShape{-1, 4}}});
  EXPECT_EQ(explain(f, ones({2, 4})).plans_made, 0);
  for (std::int64_t n = 2; n < 20; ++n) f(ones({n, 4}));
  const Explanation explanation = explain(f, ones({2, 4}));
  EXPECT_EQ(explanation.plans_made, 3);
  EXPECT_EQ(explanation.plans_shared, 1);
  EXPECT_NE(explanation.to_text().find("3 made, 1 of them for sizes that vary"), std::string::npos);
}

TEST(SharedPlans, AreForgottenWithTheOptionsTheyWereMadeUnder) {
  const ConcreteFunction f = trace_function(
      "f", {DType::kFloat}, {{-1, 4}},
      [](std::span<const Tensor> in) { return std::vector<Tensor>{in[0] * 2.0 + 1.0}; });
  const auto call_all = [&] {
    for (std::int64_t n = 2; n < 20; ++n) {
      const Tensor x = numbers({n, 4}, 3);
      expect_same_bits(f.call(std::vector<Tensor>{x}), {x * 2.0 + 1.0}, n);
    }
  };
  call_all();
  const auto options = config::optimizer::get_experimental_options();
  config::optimizer::set_experimental_options({.disable_meta_optimizer = true});
  call_all();
  config::optimizer::set_experimental_options(options);
  call_all();
  EXPECT_LE(plan_stats(f).kept, 3);
}

TEST(PlanMemory, IsBounded) {
  Runtime runtime({.inter_op_threads = 1, .intra_op_threads = 1});
  const RuntimeScope scope(runtime);
  constexpr std::size_t kLimit = 4 << 20;
  config::set_plan_memory_limit(kLimit);
  EXPECT_EQ(config::get_plan_memory_limit(), kLimit);
  // A function of its own for each size: a megabyte of values between its steps, and more.
  std::vector<ConcreteFunction> functions;
  for (std::int64_t n = 1; n <= 40; ++n) {
    functions.push_back(
        trace_function("f", {DType::kFloat}, {{-1, 256}}, [](std::span<const Tensor> in) {
          const Tensor squares = matmul(in[0], in[0], {.transpose_a = true});
          return std::vector<Tensor>{matmul(squares, squares)};
        }));
  }
  std::vector<std::vector<Tensor>> first;
  for (const ConcreteFunction& f : functions) {
    for (const std::int64_t n : {1, 300}) {
      first.push_back(f.call(std::vector<Tensor>{numbers({n, 256}, 4)}));
      std::size_t of_others = 0;
      for (const ConcreteFunction& other : functions) {
        if (plan_stats(other).kept > 1) of_others += plan_stats(other).bytes;
      }
      EXPECT_LE(of_others, kLimit + (std::size_t{1} << 20));
    }
  }
  // Those that are gone are made once more, and give what they gave.
  std::size_t i = 0;
  for (const ConcreteFunction& f : functions) {
    for (const std::int64_t n : {1, 300})
      expect_same_bits(f.call(std::vector<Tensor>{numbers({n, 256}, 4)}), first[i++], n);
  }
  const PlanStats stats = config::get_plan_stats();
  EXPECT_GE(stats.made, 80);
  EXPECT_GE(stats.kept, 40);
}

TEST(PlanMemory, DropsWhatWasNotUsedForLongest) {
  Runtime runtime({.inter_op_threads = 1, .intra_op_threads = 1});
  const RuntimeScope scope(runtime);
  // Sizes of two arguments that have nothing to do with each other, and too many to share.
  const ConcreteFunction f = trace_function(
      "f", {DType::kFloat}, {{-1, -1, -1, -1}},
      [](std::span<const Tensor> in) { return std::vector<Tensor>{exp(in[0]) * 2.0}; });
  const auto call = [&](std::int64_t n) {
    f.call(std::vector<Tensor>{ones({n, 100 - n, 2 * n + n % 3, n % 7 + 1})});
  };
  for (std::int64_t n = 2; n < 42; ++n) call(n);
  const PlanStats before = plan_stats(f);
  ASSERT_EQ(before.made, 40);
  ASSERT_EQ(before.kept, 40);
  config::set_plan_memory_limit(before.bytes / 4);
  call(42);
  const PlanStats after = plan_stats(f);
  EXPECT_LE(after.bytes, before.bytes / 4);
  EXPECT_EQ(after.evicted, 41 - after.kept);
  call(41);  // used of late
  EXPECT_EQ(plan_stats(f).made, 41);
  call(2);
  EXPECT_EQ(plan_stats(f).made, 42);
}

// An op whose shape inference waits until the test lets it go on.
struct Gate {
  std::atomic<std::int64_t> closed_for{-1};  // rows
  std::promise<void> reached, open;
};
std::atomic<Gate*> g_gate{nullptr};

void infer_behind_gate(InferenceContext& c) {
  Gate* const gate = g_gate;
  c.set_output(0, c.input(0));
  if (!gate || !c.input(0).has_rank()) return;
  std::int64_t rows = c.input(0).dim(0);
  if (rows < 0 || !gate->closed_for.compare_exchange_strong(rows, -1)) return;
  gate->reached.set_value();
  gate->open.get_future().wait();
}

const OpRegistration kGateOp{{.name = "TestPlanGate",
                              .inputs = "x: float",
                              .outputs = "y: float",
                              .shape = infer_behind_gate}};
const KernelRegistration kGateKernel{
    {.op = "TestPlanGate", .run = [](KernelContext& c) { c.set_output(0, c.input(0)); }}};

class PlanMaking : public ::testing::Test {
 protected:
  ~PlanMaking() override { g_gate = nullptr; }
  static Tensor call(const ConcreteFunction& f, std::int64_t rows) {
    return f.call(std::vector<Tensor>{ones({rows, 3})})[0];
  }
  static ConcreteFunction behind_gate() {
    return trace_function("f", {DType::kFloat}, {{-1, 3}}, [](std::span<const Tensor> in) {
      return std::vector<Tensor>{raw_op("TestPlanGate", {in[0] * 2.0})[0] + 1.0};
    });
  }
  Gate gate_;
};

TEST_F(PlanMaking, HoldsUpNoCallThatHasAPlan) {
  const ConcreteFunction f = behind_gate();
  call(f, 5);
  gate_.closed_for = 7;
  g_gate = &gate_;
  std::thread planner([&] { EXPECT_EQ(call(f, 7).shape(), (Shape{7, 3})); });
  gate_.reached.get_future().wait();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(call(f, 5).shape(), (Shape{5, 3}));
  EXPECT_EQ(plan_stats(f).made, 1);
  // Nor one whose plan is not there, but is another.
  EXPECT_EQ(call(f, 6).shape(), (Shape{6, 3}));
  EXPECT_EQ(plan_stats(f).made, 2);
  gate_.open.set_value();
  planner.join();
  EXPECT_EQ(plan_stats(f).made, 3);
}

TEST_F(PlanMaking, IsDoneOnceForCallsOfTheSameShapes) {
  const ConcreteFunction f = behind_gate();
  gate_.closed_for = 7;
  g_gate = &gate_;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] { EXPECT_EQ(call(f, 7).shape(), (Shape{7, 3})); });
  }
  gate_.reached.get_future().wait();
  gate_.open.set_value();
  for (std::thread& c : callers) c.join();
  EXPECT_EQ(plan_stats(f).made, 1);
}

TEST_F(PlanMaking, OfASharedPlanHoldsUpNoCallThatHasAPlan) {
  const ConcreteFunction f = behind_gate();
  call(f, 5);
  call(f, 6);
  gate_.closed_for = 101;  // a size that is tried to see what follows from it
  g_gate = &gate_;
  std::thread planner([&] { EXPECT_EQ(call(f, 7).shape(), (Shape{7, 3})); });
  gate_.reached.get_future().wait();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(call(f, 5 + i % 2).shape(), (Shape{5 + i % 2, 3}));
  gate_.open.set_value();
  planner.join();
  EXPECT_EQ(call(f, 8).shape(), (Shape{8, 3}));
  EXPECT_EQ(plan_stats(f).made, 3);
  EXPECT_EQ(plan_stats(f).shared, 1);
}

// What one call's failure leaves to the next.
TEST_F(PlanMaking, FailsForEachCallerByItself) {
  const ConcreteFunction f =
      trace_function("f", {DType::kFloat}, {{-1}}, [](std::span<const Tensor> in) {
        return std::vector<Tensor>{matmul(reshape(in[0], Tensor{2, -1}), ones({3, 2}))};
      });
  for (const std::int64_t n : {4, 6, 8, 10, 6, 12, 5, 6}) {
    if (n == 6) {
      EXPECT_EQ(f.call(std::vector<Tensor>{ones({n})})[0].shape(), (Shape{2, 2}));
    } else {
      EXPECT_THROW(f.call(std::vector<Tensor>{ones({n})}), InvalidArgumentError) << n;
    }
  }
}

TEST(PlanStatsTest, OfAnEmptyFunctionIsAnError) {
  EXPECT_THROW(plan_stats(ConcreteFunction()), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem
