#include <atomic>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/core/internal/sanitizers.h"
#include "tandem/graph/kernel.h"
#include "tandem/ops/operators.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/runtime/control_flow_util.h"

namespace tandem {
namespace {

Array scalar(float v) { return Array::scalar(v); }
Array scalar(std::int32_t v) { return Array::scalar(v); }

template <class E, class F>
std::string thrown(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

// Counts how often it runs; fails if `message` is not empty.
std::atomic<int> g_probes{0};
const OpRegistration kProbe{{.name = "TestProbe",
                             .inputs = "x: T",
                             .outputs = "y: T",
                             .attrs = "T: type; message: string = ''",
                             .traits = {.stateful = true}}};
const KernelRegistration kProbeKernel{{.op = "TestProbe", .run = [](KernelContext& c) {
                                         ++g_probes;
                                         const auto& message = c.attr<std::string>("message");
                                         if (!message.empty()) throw DataLossError(message);
                                         c.set_output(0, c.input(0));
                                       }}};

// Answers from a thread of its own.
const OpRegistration kLater{
    {.name = "TestLater", .inputs = "x: T", .outputs = "y: T", .attrs = "T: type"}};
const KernelRegistration kLaterKernel{
    {.op = "TestLater", .run_async = [](KernelContext& c, KernelDone done) {
       std::thread([&c, done = std::move(done)] {
         c.set_output(0, c.input(0));
         done(nullptr);
       }).detach();
     }}};

// x + 1 if pred, else x * 2, as tf.cond of TensorFlow 1 builds it.
FunctionRef make_cond() {
  FlowBuilder b;
  const Output pred = b.arg(DType::kBool), x = b.arg(DType::kFloat);
  Node* on_pred = b.add("Switch", {pred, pred});
  Node* pivot_true = b.add("Identity", {{on_pred, 1}});
  Node* pivot_false = b.add("Identity", {{on_pred, 0}});
  Node* data = b.add("Switch", {x, pred});
  const Output one = b.constant(scalar(1.0f), {pivot_true});
  const Output two = b.constant(scalar(2.0f), {pivot_false});
  const Output more = b.add1("TestProbe", {b.add1("AddV2", {{data, 1}, one})});
  const Output twice = b.add1("Mul", {{data, 0}, two});
  Node* merge = b.add("Merge", {twice, more});
  return b.finish({{merge, 0}, {merge, 1}});
}

TEST(Frames, CondTakesOneBranch) {
  const FunctionRef f = make_cond();
  g_probes = 0;
  auto taken = run(f, {Tensor(true), Tensor(3.0)});
  EXPECT_EQ(taken[0].item<float>(), 4.0f);
  EXPECT_EQ(taken[1].item<std::int32_t>(), 1);
  EXPECT_EQ(g_probes, 1);
  taken = run(f, {Tensor(false), Tensor(3.0)});
  EXPECT_EQ(taken[0].item<float>(), 6.0f);
  EXPECT_EQ(taken[1].item<std::int32_t>(), 0);
  EXPECT_EQ(g_probes, 1) << "the branch that was not taken ran";
}

// while i < n: i += 1, x = x * factor + i.
struct Loop {
  FlowBuilder b;
  Output n, x;
  FunctionRef function;
  explicit Loop(int parallel_iterations, const char* extra = nullptr) {
    n = b.arg(DType::kInt32);
    x = b.arg(DType::kFloat);
    const Output limit = b.enter(n, "loop", true, parallel_iterations);
    const Output i =
        b.loop_variable(b.enter(b.constant(scalar(0)), "loop", false, parallel_iterations));
    const Output v = b.loop_variable(b.enter(x, "loop", false, parallel_iterations));
    const Output go_on = b.add1("LoopCond", {b.add1("Less", {i, limit})});
    Node* i_switch = b.add("Switch", {i, go_on});
    Node* v_switch = b.add("Switch", {v, go_on});
    Node* pivot = b.add("Identity", {{i_switch, 1}});
    const Output next_i = b.add1("AddV2", {{pivot, 0}, b.constant(scalar(1), {pivot})});
    Output next_v = b.add1("Mul", {{v_switch, 1}, b.constant(scalar(0.5f), {pivot})});
    if (extra) next_v = b.add1(extra, {next_v});
    next_v = b.add1("AddV2", {next_v, b.add1("Cast", {next_i}, {{"DstT", DType::kFloat}})});
    b.close(i, next_i);
    b.close(v, next_v);
    const Output i_out = b.add1("Exit", {{i_switch, 0}});
    const Output v_out = b.add1("Exit", {{v_switch, 0}});
    function = b.finish({v_out, i_out});
  }
};

float loop_value(int n, float x) {
  for (int i = 1; i <= n; ++i) x = x * 0.5f + static_cast<float>(i);
  return x;
}

TEST(Frames, WhileLoops) {
  for (const int parallel : {1, 2, 10}) {
    const Loop loop(parallel);
    for (const int n : {0, 1, 2, 3, 57}) {
      const auto results = run(loop.function, {Tensor(n), Tensor(8.0)});
      EXPECT_EQ(results[0].item<float>(), loop_value(n, 8.0f)) << n << " of " << parallel;
      EXPECT_EQ(results[1].item<std::int32_t>(), n);
    }
  }
}

TEST(Frames, AsynchronousKernelsInALoop) {
  for (const int parallel : {1, 10}) {
    const Loop loop(parallel, "TestLater");
    EXPECT_EQ(run_float(loop.function, {Tensor(20), Tensor(8.0)}), loop_value(20, 8.0f));
  }
}

std::size_t resident_kilobytes() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6));
  return 0;
}

// Sanitizers hold freed memory back and take their time: there it only has to end well.
constexpr bool kSanitized = TANDEM_ADDRESS_SANITIZER || TANDEM_THREAD_SANITIZER;

TEST(Frames, AMillionIterationsTakeNoMoreMemory) {
  constexpr int kIterations = kSanitized ? 20'000 : 1'000'000;
  const Loop loop(10);
  run(loop.function, {Tensor(1000), Tensor(8.0)});
  const std::size_t before = resident_kilobytes();
  const auto results = run(loop.function, {Tensor(kIterations), Tensor(8.0)});
  EXPECT_EQ(results[1].item<std::int32_t>(), kIterations);
  if (!kSanitized) {
    EXPECT_LT(resident_kilobytes(), before + 10000);
  }
}

TEST(Frames, ManyThreadsRunOneLoop) {
  const Loop loop(10);
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i)
        right += run_float(loop.function, {Tensor(t * 3), Tensor(2.0)}) == loop_value(t * 3, 2.0f);
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(right, 8 * 50);
}

// for i in range(n): for j in range(i): total += j + 1. The inner loop is of a frame of its own.
FunctionRef make_nested() {
  FlowBuilder b;
  const Output n = b.arg(DType::kInt32);
  const Output limit = b.enter(n, "outer", true);
  const Output zero = b.constant(scalar(0));
  const Output i = b.loop_variable(b.enter(zero, "outer"));
  const Output total = b.loop_variable(b.enter(zero, "outer"));
  const Output go_on = b.add1("LoopCond", {b.add1("Less", {i, limit})});
  Node* i_switch = b.add("Switch", {i, go_on});
  Node* total_switch = b.add("Switch", {total, go_on});
  Node* pivot = b.add("Identity", {{i_switch, 1}});

  const Output inner_limit = b.enter({pivot, 0}, "inner", true, 3);
  const Output start = b.constant(scalar(0), {pivot});
  const Output j = b.loop_variable(b.enter(start, "inner", false, 3));
  const Output sum = b.loop_variable(b.enter({total_switch, 1}, "inner", false, 3));
  const Output inner_on = b.add1("LoopCond", {b.add1("Less", {j, inner_limit})});
  Node* j_switch = b.add("Switch", {j, inner_on});
  Node* sum_switch = b.add("Switch", {sum, inner_on});
  Node* inner_pivot = b.add("Identity", {{j_switch, 1}});
  const Output next_j = b.add1("AddV2", {{inner_pivot, 0}, b.constant(scalar(1), {inner_pivot})});
  b.close(j, next_j);
  b.close(sum, b.add1("AddV2", {{sum_switch, 1}, next_j}));
  const Output inner_sum = b.add1("Exit", {{sum_switch, 0}});

  b.close(i, b.add1("AddV2", {{pivot, 0}, b.constant(scalar(1), {pivot})}));
  b.close(total, inner_sum);
  return b.finish({b.add1("Exit", {{total_switch, 0}})});
}

TEST(Frames, NestedLoops) {
  const FunctionRef f = make_nested();
  for (const int n : {0, 1, 2, 5, 20}) {
    int expected = 0;
    for (int i = 0; i < n; ++i) expected += i * (i + 1) / 2;
    EXPECT_EQ(run_int(f, {Tensor(n)}), expected) << n;
  }
}

// cond(pred, lambda: a loop that doubles x until it passes 100, lambda: -x)
FunctionRef make_loop_in_cond() {
  FlowBuilder b;
  const Output pred = b.arg(DType::kBool), x = b.arg(DType::kFloat);
  Node* data = b.add("Switch", {x, pred});
  Node* pivot_true = b.add("Identity", {{data, 1}});
  const Output limit = b.enter(b.constant(scalar(100.0f), {pivot_true}), "loop", true);
  const Output v = b.loop_variable(b.enter({data, 1}, "loop"));
  const Output go_on = b.add1("LoopCond", {b.add1("Less", {v, limit})});
  Node* v_switch = b.add("Switch", {v, go_on});
  const Output seen = b.add1("TestProbe", {{v_switch, 1}});
  b.close(v, b.add1("AddV2", {seen, seen}));
  const Output looped = b.add1("Exit", {{v_switch, 0}});
  const Output negative = b.add1("Neg", {{data, 0}});
  return b.finish({b.add1("Merge", {negative, looped})});
}

TEST(Frames, LoopInABranch) {
  const FunctionRef f = make_loop_in_cond();
  g_probes = 0;
  EXPECT_EQ(run_float(f, {Tensor(true), Tensor(3.0)}), 192.0f);
  EXPECT_EQ(g_probes, 6);
  EXPECT_EQ(run_float(f, {Tensor(false), Tensor(3.0)}), -3.0f);
  EXPECT_EQ(g_probes, 6) << "a loop ran whose input was dead";
  EXPECT_EQ(run_float(f, {Tensor(true), Tensor(300.0)}), 300.0f);
}

TEST(Frames, DeadnessGoesAlongControlEdgesAndEndsAtAControlTrigger) {
  FlowBuilder b;
  const Output pred = b.arg(DType::kBool), x = b.arg(DType::kFloat);
  Node* data = b.add("Switch", {x, pred});
  Node* dead = b.add("Identity", {{data, 1}});
  Node* follower = b.add("TestProbe", {x}, {}, {dead});
  Node* trigger = b.add("ControlTrigger", {}, {}, {dead});
  const Output after = b.add1("Neg", {x}, {}, {trigger});
  const FunctionRef f = b.finish({after}, {follower});
  g_probes = 0;
  EXPECT_EQ(run_float(f, {Tensor(false), Tensor(2.0)}), -2.0f);
  EXPECT_EQ(g_probes, 0);
  EXPECT_EQ(run_float(f, {Tensor(true), Tensor(2.0)}), -2.0f);
  EXPECT_EQ(g_probes, 1);
}

// A shape that is known becomes a constant; when, and whether, it is there must not change.

TEST(Frames, AKnownShapeStaysInItsBranch) {
  FlowBuilder b;
  const Output pred = b.arg(DType::kBool), x = b.arg(DType::kFloat, PartialShape{3});
  Node* data = b.add("Switch", {x, pred});
  const AttrMap to_float{{"SrcT", DType::kInt32}, {"DstT", DType::kFloat}};
  const Output shape = b.add1("Cast", {b.add1("Shape", {{data, 1}})}, to_float);
  Node* merge = b.add("Merge", {b.add1("TestProbe", {shape}), b.add1("Neg", {{data, 0}})});
  const FunctionRef f = b.finish({{merge, 0}, {merge, 1}});
  const Tensor three = Tensor::from(std::vector<float>{5, 6, 7});
  g_probes = 0;
  const std::vector<Tensor> no = run(f, {Tensor(false), three});
  EXPECT_EQ(no[0].to_vector<float>(), (std::vector<float>{-5, -6, -7}));
  EXPECT_EQ(no[1].item<std::int32_t>(), 1);
  EXPECT_EQ(g_probes, 0) << "the branch that was not taken ran";
  const std::vector<Tensor> yes = run(f, {Tensor(true), three});
  EXPECT_EQ(yes[0].to_vector<float>(), std::vector<float>{3});
  EXPECT_EQ(yes[1].item<std::int32_t>(), 0);
}

TEST(Frames, AKnownShapeStaysInItsLoop) {
  FlowBuilder b;
  const Output x = b.arg(DType::kFloat, PartialShape{2}), from = b.arg(DType::kInt32);
  const Output limit = b.enter(b.constant(scalar(5)), "loop", true);
  const Output rows = b.enter(x, "loop", true);
  const Output i = b.loop_variable(b.enter(from, "loop"));
  const Output go_on = b.add1("LoopCond", {b.add1("Less", {i, limit})});
  Node* i_switch = b.add("Switch", {i, go_on});
  const Output size = b.add1("Size", {rows});
  b.close(i, b.add1("AddV2", {{i_switch, 1}, size}));
  const FunctionRef f = b.finish({b.add1("Exit", {{i_switch, 0}})});
  EXPECT_EQ(run_int(f, {Tensor::from(std::vector<float>{1, 2}), Tensor(0)}), 6);
  EXPECT_EQ(run_int(f, {Tensor::from(std::vector<float>{1, 2}), Tensor(5)}), 5);
}

TEST(Frames, AKnownShapeWaitsForAnAssertion) {
  FlowBuilder b;
  const Output holds = b.arg(DType::kBool), x = b.arg(DType::kFloat, PartialShape{4});
  Node* assertion = b.add("Assert", {holds, x});
  const Output checked = b.add1("Identity", {x}, {}, {assertion});
  const FunctionRef f = b.finish({b.add1("Size", {checked})});
  const Tensor four = Tensor::from(std::vector<float>{1, 2, 3, 4});
  EXPECT_EQ(run_int(f, {Tensor(true), four}), 4);
  EXPECT_THROW(run_int(f, {Tensor(false), four}), InvalidArgumentError);
}

TEST(Frames, ADeadResultIsAnError) {
  FlowBuilder b;
  const Output pred = b.arg(DType::kBool), x = b.arg(DType::kFloat);
  Node* data = b.add("Switch", {x, pred});
  const FunctionRef f = b.finish({x, b.add1("Neg", {{data, 1}})});
  EXPECT_EQ(run(f, {Tensor(true), Tensor(2.0)})[1].item<float>(), -2.0f);
  const std::string message = thrown<InvalidArgumentError>([&] {
    run(f, {Tensor(false), Tensor(2.0)});
  });
  EXPECT_NE(message.find("Retval[1] does not have value"), std::string::npos) << message;
  EXPECT_EQ(run(f, {Tensor(true), Tensor(2.0)})[1].item<float>(), -2.0f) << "after a failed run";
}

TEST(Frames, PredicatesAreScalars) {
  FlowBuilder b;
  const Output pred = b.arg(DType::kBool), x = b.arg(DType::kFloat);
  const FunctionRef f = b.finish({{b.add("Switch", {x, pred}), 1}});
  const std::string message = thrown<InvalidArgumentError>([&] {
    run(f, {Tensor::from(std::vector<bool>{true, false}), Tensor(2.0)});
  });
  EXPECT_NE(message.find("The second input must be a scalar"), std::string::npos) << message;
  EXPECT_NE(message.find("Switch"), std::string::npos) << message;
}

// A loop whose body fails in iteration `at`; beside it something that does not depend on it.
TEST(Frames, AFailureEndsTheLoopAndTheRestGoesOn) {
  FlowBuilder b;
  const Output x = b.arg(DType::kInt32);
  const Output i = b.loop_variable(b.enter(b.constant(scalar(0)), "loop"));
  const Output limit = b.enter(b.constant(scalar(1000000000)), "loop", true);
  const Output go_on = b.add1("LoopCond", {b.add1("Less", {i, limit})});
  Node* i_switch = b.add("Switch", {i, go_on});
  Node* pivot = b.add("Identity", {{i_switch, 1}});
  Node* bad = b.add("TestProbe", {{pivot, 0}}, {{"message", "the body broke"}}, {}, "bad");
  b.close(i, b.add1("AddV2", {{pivot, 0}, b.constant(scalar(1), {pivot})}));
  const Output out = b.add1("Exit", {{i_switch, 0}});
  Node* apart = b.add("TestProbe", {x});
  const FunctionRef f = b.finish({out}, {bad, apart});
  g_probes = 0;
  const std::string message = thrown<DataLossError>([&] { run(f, {Tensor(1)}); });
  EXPECT_TRUE(message.starts_with("the body broke")) << message;
  EXPECT_NE(message.find("{{node bad}}"), std::string::npos) << message;
  EXPECT_GE(g_probes, 2);
  EXPECT_LE(g_probes, 12);
}

// d/dx of cond(pred, x + 1, 2 x), built from Switch and Merge in a trace.
TEST(Frames, SwitchAndMergeHaveGradients) {
  auto gradient = function([](Tensor pred, Tensor x) {
    GradientTape tape;
    tape.watch(x);
    const auto branches = raw_op("Switch", {x, pred});
    const Tensor twice = branches[0] * 2.0, more = branches[1] + 1.0;
    const Tensor y = raw_op("Merge", {twice, more})[0];
    return tape.gradient(y * 10.0, x);
  });
  EXPECT_EQ(gradient(Tensor(true), Tensor(3.0)).item<float>(), 10.0f);
  EXPECT_EQ(gradient(Tensor(false), Tensor(3.0)).item<float>(), 20.0f);
}

// Cancels the run it is part of.
std::atomic<Cancellation*> g_cancellation{nullptr};
const OpRegistration kCancel{{.name = "TestCancel",
                              .inputs = "x: T",
                              .outputs = "y: T",
                              .attrs = "T: type",
                              .traits = {.stateful = true}}};
const KernelRegistration kCancelKernel{{.op = "TestCancel", .run = [](KernelContext& c) {
                                          g_cancellation.load()->cancel();
                                          c.set_output(0, c.input(0));
                                        }}};

TEST(Frames, ACancelledLoopEnds) {
  FlowBuilder b;
  const Output i = b.loop_variable(b.enter(b.constant(scalar(0)), "loop"));
  const Output limit = b.enter(b.constant(scalar(1000000000)), "loop", true);
  const Output go_on = b.add1("LoopCond", {b.add1("Less", {i, limit})});
  Node* i_switch = b.add("Switch", {i, go_on});
  Node* pivot = b.add("Identity", {{i_switch, 1}});
  b.close(i, b.add1("AddV2", {b.add1("TestCancel", {{pivot, 0}}), b.constant(scalar(1), {pivot})}));
  const FunctionRef f = b.finish({b.add1("Exit", {{i_switch, 0}})});
  Cancellation cancellation;
  g_cancellation = &cancellation;
  Runtime& runtime = Runtime::current();
  KernelContext caller;
  caller.services_ = &runtime.services(runtime.default_device());
  StepContext step;
  step.id = 1;
  step.cancellation = &cancellation;
  caller.step_ = &step;
  EXPECT_THROW(caller.functions().run(*f, {}, caller), CancelledError);
}

TEST(Frames, LoopsThatAreNotWellFormedAreRefused) {
  {
    FlowBuilder b;
    const Output x = b.arg(DType::kFloat);
    const Output inside = b.enter(x, "loop");
    const FunctionRef f = b.finish({b.add1("Exit", {b.add1("AddV2", {inside, x})})});
    const std::string message = thrown<InvalidArgumentError>([&] { run(f, {Tensor(1.0)}); });
    EXPECT_NE(message.find("has inputs from different frames"), std::string::npos) << message;
    EXPECT_NE(message.find("frame 'loop'"), std::string::npos) << message;
  }
  {
    FlowBuilder b;
    const Output x = b.arg(DType::kFloat);
    const FunctionRef f = b.finish({b.add1("Exit", {x})});
    EXPECT_NE(
        thrown<InvalidArgumentError>([&] { run(f, {Tensor(1.0)}); }).find("outside of a loop"),
        std::string::npos);
  }
  {
    FlowBuilder b;
    const Output x = b.arg(DType::kFloat);
    const FunctionRef f = b.finish({b.add1("Neg", {b.enter(x, "loop")})});
    EXPECT_NE(
        thrown<InvalidArgumentError>([&] { run(f, {Tensor(1.0)}); }).find("cannot be fetched"),
        std::string::npos);
  }
  {
    FlowBuilder b;
    const Output x = b.arg(DType::kFloat);
    const Output merge = b.loop_variable(b.enter(x, "loop"));
    const FunctionRef f = b.finish({b.add1("Exit", {merge})});
    EXPECT_NE(thrown<InvalidArgumentError>([&] {
                run(f, {Tensor(1.0)});
              }).find("Input 1 of {{node Merge}} (Merge) is undefined"),
              std::string::npos);
  }
}

TEST(Frames, AbortFails) {
  FlowBuilder b;
  const Output x = b.arg(DType::kFloat);
  Node* abort = b.add("Abort", {}, {{"error_msg", "enough"}});
  const FunctionRef f = b.finish({x}, {abort});
  EXPECT_TRUE(thrown<AbortedError>([&] { run(f, {Tensor(1.0)}); }).starts_with("enough"));
}

// Heavy steps of several iterations side by side: each is given to the pool.
TEST(Frames, IterationsOverlap) {
  Runtime runtime({.inter_op_threads = 4, .intra_op_threads = 1});
  RuntimeScope scope(runtime);
  FlowBuilder b;
  const Output n = b.arg(DType::kInt32), x = b.arg(DType::kFloat);
  const Output limit = b.enter(n, "loop", true);
  const Output data = b.enter(x, "loop", true);
  const Output i = b.loop_variable(b.enter(b.constant(scalar(0)), "loop"));
  const Output sum = b.loop_variable(b.enter(b.constant(scalar(0.0f)), "loop"));
  const Output go_on = b.add1("LoopCond", {b.add1("Less", {i, limit})});
  Node* i_switch = b.add("Switch", {i, go_on});
  Node* sum_switch = b.add("Switch", {sum, go_on});
  Node* data_switch = b.add("Switch", {data, go_on});
  Node* pivot = b.add("Identity", {{i_switch, 1}});
  const Output axes = b.constant(Array::vector(std::vector<std::int32_t>{0, 1}), {pivot});
  Output total = b.add1("Sum", {b.add1("MatMul", {{data_switch, 1}, {data_switch, 1}}), axes});
  Output other = b.add1("Max", {b.add1("Tanh", {{data_switch, 1}}), axes});
  b.close(i, b.add1("AddV2", {{pivot, 0}, b.constant(scalar(1), {pivot})}));
  b.close(sum, b.add1("AddV2", {{sum_switch, 1}, b.add1("AddV2", {total, other})}));
  const FunctionRef f = b.finish({b.add1("Exit", {{sum_switch, 0}})});
  constexpr int kSize = 64;
  const Tensor ones = Tensor(Array::from(
      std::span<const float>(std::vector<float>(kSize * kSize, 1.0f)), Shape{kSize, kSize}));
  const float each = static_cast<float>(kSize) * kSize * kSize + std::tanh(1.0f);
  for (int repeat = 0; repeat < 20; ++repeat)
    EXPECT_NEAR(run_float(f, {Tensor(12), ones}), 12 * each, 12 * each * 1e-5f);
}

}  // namespace
}  // namespace tandem
