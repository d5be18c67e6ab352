#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/runtime/control_flow_util.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class E, class F>
std::string thrown(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return cat("another exception: ", error.what());
  }
  return "nothing was thrown";
}

// A graph of its own for each, with a variable that others do not see.
struct Graphs {
  std::string name;
  Runtime runtime{{.inter_op_threads = 2, .intra_op_threads = 1}};
  RuntimeScope scope{runtime};

  explicit Graphs(std::string n) : name(std::move(n)) {}

  Output variable(FlowBuilder& b, const PartialShape& shape = PartialShape::scalar()) const {
    return {b.add("VariableV2", {}, {{"shape", shape}, {"dtype", float32}}, {}, name), 0};
  }
  void assign(float value) const {
    FlowBuilder b;
    const Output v = variable(b);
    run(b.finish({b.add1("Assign", {v, b.constant(Array::scalar(value))})}), {});
  }
  float read() const {
    FlowBuilder b;
    return run_float(b.finish({variable(b)}), {});
  }
};

TEST(References, AVariableLivesFromRunToRun) {
  const Graphs g("v");
  g.assign(3);
  EXPECT_EQ(g.read(), 3.0f);
  FlowBuilder b;
  const Output v = g.variable(b);
  const FunctionRef add = b.finish({b.add1("AssignAdd", {v, b.constant(Array::scalar(2.0f))})});
  EXPECT_EQ(run_float(add, {}), 5.0f);
  EXPECT_EQ(run_float(add, {}), 7.0f);
  EXPECT_EQ(g.read(), 7.0f);
}

TEST(References, AnUnsetVariableIsNamed) {
  const Graphs g("weights");
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { g.read(); }),
              HasSubstr("Attempting to use uninitialized value weights"));
  FlowBuilder b;
  const Output v = g.variable(b);
  const FunctionRef add = b.finish({b.add1("AssignAdd", {v, b.constant(Array::scalar(2.0f))})});
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { run(add, {}); }),
              HasSubstr("Attempting to use uninitialized value weights"));
  FlowBuilder c;
  EXPECT_FALSE(
      run(c.finish({c.add1("IsVariableInitialized", {g.variable(c)})}), {})[0].item<bool>());
}

// A value is what the variable holds when its user runs, and stays that.
TEST(References, ValuesAreSnapshots) {
  const Graphs g("v");
  g.assign(1);
  FlowBuilder b;
  const Output v = g.variable(b);
  const Output before = b.add1("Identity", {v});
  Node* add = b.add("AssignAdd", {v, b.constant(Array::scalar(10.0f))}, {}, {before.node});
  const Output after = b.add1("Identity", {v}, {}, {add});
  const Output doubled = b.add1("AddV2", {{add, 0}, {add, 0}});
  const auto results = run(b.finish({before, after, doubled}), {});
  EXPECT_EQ(results[0].item<float>(), 1.0f);
  EXPECT_EQ(results[1].item<float>(), 11.0f);
  EXPECT_EQ(results[2].item<float>(), 22.0f);
}

// v + x where x is computed after v was changed sees the change.
TEST(References, AUserReadsWhenItsOtherInputsAreThere) {
  const Graphs g("v");
  for (int repeat = 0; repeat < 20; ++repeat) {
    g.assign(1);
    FlowBuilder b;
    const Output v = g.variable(b);
    Node* add = b.add("AssignAdd", {v, b.constant(Array::scalar(1.0f))});
    const Output late = b.add1("Neg", {b.constant(Array::scalar(5.0f))}, {}, {add});
    EXPECT_EQ(run_float(b.finish({b.add1("AddV2", {v, late})}), {}), -3.0f);
  }
}

// An Identity is the variable's memory: who runs after a change sees it, however it got there.
TEST(References, AnIdentityShowsChangesThatItsUserRunsAfter) {
  const Graphs g("v");
  g.assign(1);
  FlowBuilder b;
  const Output v = g.variable(b);
  const Output read = b.add1("Identity", {b.add1("Identity", {v})});
  const Output before = b.add1("Neg", {read});
  Node* add = b.add("AssignAdd", {v, b.constant(Array::scalar(2.0f))}, {}, {before.node});
  const Output waits = b.add1("Neg", {read}, {}, {add});
  const Output late = b.add1("Square", {b.constant(Array::scalar(3.0f))}, {}, {add});
  const auto results = run(b.finish({before, waits, b.add1("AddV2", {late, read})}), {});
  EXPECT_EQ(results[0].item<float>(), -1.0f);
  EXPECT_EQ(results[1].item<float>(), -3.0f);
  EXPECT_EQ(results[2].item<float>(), 12.0f);
}

TEST(References, LongChainsAreFollowed) {
  const Graphs g("v");
  g.assign(0);
  FlowBuilder b;
  const Output one = b.constant(Array::scalar(1.0f));
  Output v = g.variable(b);
  constexpr int kAdds = 20000;
  for (int i = 0; i < kAdds; ++i) v = b.add1("AssignAdd", {v, one});
  EXPECT_EQ(run_float(b.finish({b.add1("Identity", {v})}), {}), static_cast<float>(kAdds));
}

// Nodes that only wait for others through a constant wait all the same.
TEST(References, ConstantsForwardWhatTheyWaitFor) {
  const Graphs g("v");
  g.assign(1);
  FlowBuilder b;
  const Output v = g.variable(b);
  Node* add = b.add("AssignAdd", {v, b.constant(Array::scalar(1.0f))});
  Output three = b.constant(Array::scalar(3.0f), {add});
  const FunctionRef f = b.finish({b.add1("Mul", {b.add1("Neg", {three}), v})});
  EXPECT_EQ(run_float(f, {}), -6.0f);
  EXPECT_EQ(run_float(f, {}), -9.0f);
}

TEST(References, TwoReadsAreNotOne) {
  const Graphs g("v");
  g.assign(1);
  FlowBuilder b;
  const Output v = g.variable(b);
  const Output first = b.add1("Neg", {v});
  Node* add = b.add("AssignAdd", {v, b.constant(Array::scalar(1.0f))}, {}, {first.node});
  const Output second = b.add1("Neg", {v}, {}, {add});
  EXPECT_EQ(run_float(b.finish({b.add1("Sub", {first, second})}), {}), 1.0f);
}

// while v < 100: v += v, by a reference that every iteration passes on.
TEST(References, GoThroughLoops) {
  const Graphs g("v");
  g.assign(3);
  FlowBuilder b;
  const Output v = g.variable(b);
  const AttrMap frame{{"frame_name", "loop"}};
  const Output entered = b.add1("RefEnter", {v}, frame);
  Node* merge = b.add("RefMerge", {entered, {}});
  const Output limit = b.enter(b.constant(Array::scalar(100.0f)), "loop", true);
  const Output go_on = b.add1("LoopCond", {b.add1("Less", {{merge, 0}, limit})});
  Node* branch = b.add("RefSwitch", {{merge, 0}, go_on});
  const Output doubled = b.add1("AssignAdd", {{branch, 1}, b.add1("Identity", {{branch, 1}})});
  b.graph.set_input(merge, 1, b.add1("RefNextIteration", {doubled}));
  const FunctionRef f = b.finish({b.add1("RefExit", {{branch, 0}})});
  EXPECT_EQ(run_float(f, {}), 192.0f);
  EXPECT_EQ(g.read(), 192.0f);
}

TEST(References, AValueIsNoReference) {
  FlowBuilder b;
  const Output x = b.arg(float32);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                b.add("AssignAdd", {x, x});
              }),
              HasSubstr("expected ref type"));
}

TEST(References, TemporaryVariables) {
  FlowBuilder b;
  const Output v{b.add("TemporaryVariable", {},
                       {{"shape", PartialShape{2}}, {"dtype", float32}, {"var_name", "t"}}),
                 0};
  Output a = b.add1("Assign", {v, b.constant(Array::vector(std::vector<float>{1, 2}))});
  a = b.add1("AssignAdd", {a, b.constant(Array::vector(std::vector<float>{1, 1}))});
  const FunctionRef f = b.finish({b.add1("DestroyTemporaryVariable", {a}, {{"var_name", "t"}})});
  EXPECT_THAT(run(f, {})[0].to_vector<float>(), ElementsAre(2, 3));
  EXPECT_THAT(run(f, {})[0].to_vector<float>(), ElementsAre(2, 3));
}

TEST(References, ManyThreadsAddToOneVariable) {
  Graphs g("v");
  g.assign(0);
  FlowBuilder b;
  const Output v = g.variable(b);
  const FunctionRef add = b.finish({b.add1("AssignAdd", {v, b.constant(Array::scalar(1.0f))})});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      RuntimeScope scope(g.runtime);
      for (int i = 0; i < 250; ++i) run(add, {});
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(g.read(), 1000.0f);
}

// One step of gradient descent as TensorFlow 1 writes it: w -= 0.1 d(w x)²/dw.
TEST(References, ATrainingStep) {
  const Graphs g("w");
  g.assign(2);
  FlowBuilder b;
  const Output x = b.arg(float32);
  const Output w = g.variable(b);
  const Output read = b.add1("Identity", {w});
  const Output y = b.add1("Mul", {read, x});
  const Output two = b.constant(Array::scalar(2.0f));
  const Output grad = b.add1("Mul", {b.add1("Mul", {two, y}), x});
  Node* step = b.add("ApplyGradientDescent", {w, b.constant(Array::scalar(0.1f)), grad});
  const FunctionRef f = b.finish({b.add1("Square", {y})}, {step});
  EXPECT_FLOAT_EQ(run_float(f, {Tensor(1.0)}), 4.0f);
  EXPECT_FLOAT_EQ(g.read(), 1.6f);
  EXPECT_FLOAT_EQ(run_float(f, {Tensor(1.0)}), 2.56f);
}

TEST(References, AreNotReadByEagerCalls) {
  const Tensor v =
      raw_op("TemporaryVariable", {}, {{"shape", PartialShape{2}}, {"dtype", float32}})[0];
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { raw_op("Neg", {v}); }),
              HasSubstr("is a reference to a variable"));
  raw_op("Assign", {v, Tensor{1.0, 2.0}});
  EXPECT_THAT(raw_op("_ReadReference", {v})[0].to_vector<float>(), ElementsAre(1, 2));
}

}  // namespace
}  // namespace tandem
