#include "tandem/io/graph_session.h"

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tandem/placement/placement.h"
#include "tandem/runtime/runtime.h"

#include "tests/unit/io/graph_text_util.h"

namespace tandem::io {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<std::pair<std::string, std::string>> kT{{"T", kFloatType}};

// x -> twice = x + x -> y = -twice; z needs the other placeholder.
std::string graph() {
  return placeholder("x", "dim { size: -1 } dim { size: 2 }") +
         node("twice", "AddV2", {"x", "x"}, kT) + node("y", "Neg", {"twice"}, kT) +
         placeholder("other") + node("z", "Mul", {"y", "other"}, kT);
}

Array row(float a, float b) { return Array::from<float>(std::vector<float>{a, b}, {1, 2}); }

template <class E, class Call>
std::string message_of_call(Call call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "no error";
}

TEST(GraphSession, RunsWhatTheFetchesNeed) {
  const GraphSession session(import_text(graph()));
  const auto values = session.run({{"x", row(1, 2)}}, {"y:0", "twice", "x"});
  EXPECT_EQ(values[0], row(-2, -4));
  EXPECT_EQ(values[1], row(2, 4));
  EXPECT_EQ(values[2], row(1, 2));
  EXPECT_EQ(session.prepare({"x"}, {"twice"}).num_nodes(), 1);
  EXPECT_EQ(session.prepare({"x"}, {"y"}).num_nodes(), 2);
}

TEST(GraphSession, AnyTensorCanBeFed) {
  const GraphSession session(import_text(graph()));
  EXPECT_EQ(session.run({{"twice:0", row(5, 6)}}, {"y"})[0], row(-5, -6));
  EXPECT_EQ(session.run({{"y", row(1, 1)}, {"other", Array::scalar(3.0f)}}, {"z"})[0], row(3, 3));
  // The step that is cut at y computes twice all the same if it is asked for.
  const auto both = session.run({{"y", row(1, 1)}, {"x", row(2, 2)}}, {"y", "twice"});
  EXPECT_EQ(both[0], row(1, 1));
  EXPECT_EQ(both[1], row(4, 4));
}

TEST(GraphSession, WhoWaitsForAFedPlaceholderWaitsNoMore) {
  const GraphSession session(
      import_text(placeholder("x") + ints("c", {1}) +
                  node("y", "Identity", {"c", "^x"}, {{"T", "type: DT_INT32"}})));
  EXPECT_EQ(session.run({{"x", Array::scalar(1.0f)}}, {"y"})[0].num_elements(), 1);
}

TEST(GraphSession, ChecksFeeds) {
  const GraphSession session(import_text(graph()));
  const auto feed = [&](const std::string& name, Array value) {
    return message_of_call<InvalidArgumentError>([&] { session.run({{name, value}}, {"y"}); });
  };
  EXPECT_THAT(feed("x", Array::scalar(1.0f)),
              HasSubstr("Tensor 'x' is float[?,2] but is fed float[]"));
  EXPECT_THAT(feed("x", Array::zeros(DType::kInt32, {1, 2})), HasSubstr("is fed int32[1,2]"));
  EXPECT_THAT(feed("x", Array()), HasSubstr("'x' (float[?,2]) is fed an empty Array"));
  EXPECT_THAT(feed("other", Array::scalar(1.0f)),
              AllOf(HasSubstr("not fed"), HasSubstr("'x' (float[?,2])")));
  EXPECT_THAT(message_of_call<InvalidArgumentError>([&] {
                session.run({{"x", row(1, 2)}, {"x:0", row(1, 2)}}, {"y"});
              }),
              HasSubstr("fed twice"));
  EXPECT_THAT(message_of_call<NotFoundError>([&] { session.run({}, {"twise"}); }),
              AllOf(HasSubstr("Did you mean 'twice'?"), HasSubstr("`td graph FILE` lists")));
  EXPECT_THAT(message_of_call<NotFoundError>([&] { session.run({}, {"nothing_alike"}); }),
              HasSubstr("The graph has no node 'nothing_alike'. `td graph FILE` lists"));
  EXPECT_THAT(message_of_call<InvalidArgumentError>([&] { session.run({}, {}, {"twice:0"}); }),
              HasSubstr("write 'twice'"));
  EXPECT_THAT(message_of_call<NotFoundError>([&] { session.run({}, {"y:3"}); }),
              HasSubstr("has 1 output."));
  EXPECT_THAT(message_of_call<InvalidArgumentError>([&] { session.run({}, {"y:a"}); }),
              HasSubstr("names no tensor"));
}

TEST(GraphSession, NodesThatCannotRunHurtOnlyWhoNeedsThem) {
  const GraphSession session(import_text(
      placeholder("x") + node("odd", "NoSuchOp", {"x"}) + node("y", "Relu", {"odd:1"}, kT) +
          node("fine", "Neg", {"x"}, kT) + node("odder", "NeitherThis", {"x"}),
      true));
  EXPECT_EQ(session.run({{"x", Array::scalar(1.0f)}}, {"fine"})[0], Array::scalar(-1.0f));
  // What it would have computed can be fed.
  EXPECT_EQ(session.run({{"odd:1", Array::scalar(2.0f)}}, {"y"})[0], Array::scalar(2.0f));
  EXPECT_THAT(message_of_call<UnimplementedError>([&] {
                session.run({{"x", Array::scalar(1.0f)}}, {"y"});
              }),
              AllOf(HasSubstr("'odd' (NoSuchOp)"), HasSubstr("'odder' (NeitherThis)")));
}

std::string counter() {
  const std::string shape = "shape { dim { size: 1 } }";
  return node("v", "VarHandleOp", {},
              {{"dtype", "type: DT_INT32"}, {"shape", shape}, {"shared_name", "s: 'v'"}}) +
         ints("start", {10}) + ints("one", {1}) +
         node("init", "AssignVariableOp", {"v", "start"}, {{"dtype", "type: DT_INT32"}}) +
         node("up", "AssignAddVariableOp", {"v", "one"}, {{"dtype", "type: DT_INT32"}}) +
         node("value", "ReadVariableOp", {"v", "^up"}, {{"dtype", "type: DT_INT32"}});
}

TEST(GraphSession, OnesThatWereMovedFromAndEmptyStepsSaySo) {
  GraphSession first(import_text(graph()));
  GraphSession::Step step = first.prepare({"x"}, {"y"});
  const GraphSession second = std::move(first);
  EXPECT_EQ(second.run({{"x", row(1, 2)}}, {"y"})[0], row(-2, -4));
  const auto reported = [](const auto& action) {
    return message_of_call<FailedPreconditionError>(action);
  };
  EXPECT_THAT(reported([&] { first.run({}, {"y"}); }), HasSubstr("was moved"));
  EXPECT_THAT(reported([&] { first.prepare({}, {"y"}); }), HasSubstr("was moved"));
  EXPECT_THAT(reported([&] { first.imported(); }), HasSubstr("was moved"));
  EXPECT_THAT(reported([&] { GraphSession::Step().run({}); }), HasSubstr("GraphSession::prepare"));
  const GraphSession::Step other = std::move(step);
  EXPECT_EQ(other.run({row(1, 2)})[0], row(-2, -4));
  EXPECT_THAT(reported([&] { step.run({row(1, 2)}); }), HasSubstr("GraphSession::prepare"));
}

// while (i < n) { i = i + 1; a = a + a; } as TensorFlow 1 writes it.
std::string loop() {
  const auto enter = [](const std::string& name, const std::string& input, const char* constant) {
    return node(name, "Enter", {input},
                {{"T", kFloatType},
                 {"frame_name", "s: \"loop\""},
                 {"is_constant", std::string("b: ") + constant}});
  };
  const auto carried = [&](const std::string& name) {
    return node(name + "/merge", "Merge", {name + "/enter", name + "/next"},
                {{"T", kFloatType}, {"N", "i: 2"}}) +
           node(name + "/switch", "Switch", {name + "/merge", "cond"}, kT) +
           node(name + "/next", "NextIteration", {name + "/new"}, kT) +
           node(name + "/exit", "Exit", {name + "/switch"}, kT);
  };
  return placeholder("n") + placeholder("i0") + placeholder("a0") + enter("n/enter", "n", "true") +
         enter("i/enter", "i0", "false") + enter("a/enter", "a0", "false") + carried("i") +
         carried("a") + node("less", "Less", {"i/merge", "n/enter"}, kT) +
         node("cond", "LoopCond", {"less"}) +
         node("one", "Const", {"^i/switch"},
              {{"dtype", kFloatType},
               {"value", "tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 }"}}) +
         node("i/new", "AddV2", {"i/switch:1", "one"}, kT) +
         node("a/new", "AddV2", {"a/switch:1", "a/switch:1"}, kT) +
         node("out", "Identity", {"a/exit"}, kT);
}

TEST(GraphSession, TensorsInsideOfALoopAreNamedAsTheUserDid) {
  const GraphSession session(import_text(loop()));
  const Array n = Array::scalar(3.0f), zero = Array::scalar(0.0f), one = Array::scalar(1.0f);
  const std::vector<GraphSession::Feed> feeds{{"n", n}, {"i0", zero}, {"a0", one}};
  EXPECT_EQ(session.run(feeds, {"out"})[0], Array::scalar(8.0f));
  EXPECT_EQ(session.run({{"a/exit", one}}, {"out"})[0], one) << "it is outside";
  for (const std::string name : {"a/new", "less", "a/switch:1", "i/merge", "a/enter", "one"}) {
    EXPECT_THAT(message_of_call<InvalidArgumentError>([&] { session.run(feeds, {name}); }),
                HasSubstr("'" + name +
                          "' lies inside of a loop, where it has a value in every "
                          "round, so it cannot be fetched"));
  }
  for (const std::string name : {"a/new", "a/merge", "a/enter", "a/next", "one", "a/switch:1"}) {
    auto more = feeds;
    more.push_back({name, one});
    EXPECT_THAT(message_of_call<InvalidArgumentError>([&] { session.run(more, {"out"}); }),
                HasSubstr("'" + name +
                          "' lies inside of a loop, where it has a value in every "
                          "round, so it cannot be fed"));
  }
}

TEST(GraphSession, StateLastsFromStepToStep) {
  Runtime runtime;
  RuntimeScope scope(runtime);
  const GraphSession session(import_text(counter()));
  EXPECT_THROW(session.run({}, {"value"}), FailedPreconditionError);
  session.run({}, {}, {"init"});
  for (int expected = 11; expected < 20; ++expected)
    EXPECT_EQ(session.run({}, {"value"})[0], Array::vector(std::vector<int>{expected}));
  session.run({}, {}, {"^up", "up"});
  EXPECT_EQ(session.run({}, {"value"})[0], Array::vector(std::vector<int>{21}));
}

TEST(GraphSession, StateBelongsToTheRuntime) {
  for (int i = 0; i < 2; ++i) {
    Runtime runtime;
    RuntimeScope scope(runtime);
    const GraphSession session(import_text(counter()));
    session.run({}, {}, {"init"});
    EXPECT_EQ(session.run({}, {"value"})[0], Array::vector(std::vector<int>{11}));
  }
}

TEST(GraphSession, StepsRunInTheSessionsRuntimeFromEveryThread) {
  Runtime runtime;
  std::optional<RuntimeScope> scope(std::in_place, runtime);
  const GraphSession session(import_text(counter()));
  scope.reset();
  session.run({}, {}, {"init"});
  Array value;
  std::thread([&] { value = session.run({}, {"value"})[0]; }).join();
  EXPECT_EQ(value, Array::vector(std::vector<int>{11}));
  EXPECT_EQ(session.prepare({}, {"value"}).run({})[0], Array::vector(std::vector<int>{12}));
}

// The update alone says that the variable cannot be on the accelerator; the initializer's part of
// the graph does not hold it.
TEST(GraphSession, PartsOfAGraphAgreeWhereAVariableIs) {
  for (const auto policy : {PlacementPolicy::kGreedy, PlacementPolicy::kCost}) {
    Runtime runtime({.devices = {.emulate = {"GPU:1,memory=64MiB,without=AssignAddVariableOp"}}});
    runtime.set_placement_policy(policy);
    RuntimeScope scope(runtime);
    const GraphSession session(import_text(counter()));
    session.run({}, {}, {"init"});
    EXPECT_EQ(session.run({}, {"value"})[0], Array::vector(std::vector<int>{11}));
  }
}

TEST(GraphSession, NodesThatCannotRunDoNotDecideAboutPlaces) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,memory=64MiB"}}});
  RuntimeScope scope(runtime);
  const GraphSession session(import_text(counter() + node("odd", "NoSuchOp", {"value"}), true));
  session.run({}, {}, {"init"});
  EXPECT_EQ(session.run({}, {"value"})[0], Array::vector(std::vector<int>{11}));
}

// One random op that two signatures share. What a session of TensorFlow 2.21 gives.
std::string random_graph() {
  return placeholder("x", "dim { size: 2 }") + ints("shape", {2}) +
         node("r", "RandomUniform", {"shape"},
              {{"T", "type: DT_INT32"},
               {"dtype", kFloatType},
               {"seed", "i: 7"},
               {"seed2", "i: 11"}}) +
         node("a", "AddV2", {"r", "x"}, kT) + node("b", "Mul", {"r", "x"}, kT);
}

TEST(GraphSession, RandomOpsGoOnWithWhateverFetches) {
  const Array zeros = Array::vector(std::vector<float>{0, 0});
  const Array ones = Array::vector(std::vector<float>{1, 1});
  const ImportedGraph imported = import_text(random_graph());
  const GraphSession session(imported);
  const std::vector<std::vector<float>> of_tensorflow = {
      {0.023186326026916504f, 0.0994875431060791f},
      {0.5890259742736816f, 0.44732093811035156f},
      {0.39302825927734375f, 0.09798407554626465f},
      {0.850058913230896f, 0.6668697595596313f},
      {0.7111368179321289f, 0.38622772693634033f}};
  EXPECT_EQ(session.run({{"x", zeros}}, {"a"})[0], Array::vector(of_tensorflow[0]));
  EXPECT_EQ(session.run({{"x", ones}}, {"b"})[0], Array::vector(of_tensorflow[1]));
  EXPECT_EQ(session.run({{"x", zeros}}, {"a"})[0], Array::vector(of_tensorflow[2]));
  EXPECT_EQ(session.run({}, {"r"})[0], Array::vector(of_tensorflow[3]));
  EXPECT_EQ(session.run({{"x", ones}}, {"b"})[0], Array::vector(of_tensorflow[4]));
  // Another session begins from its own start.
  const GraphSession second(imported);
  EXPECT_EQ(second.run({{"x", ones}}, {"b"})[0], Array::vector(of_tensorflow[0]));
}

TEST(GraphSession, AStepEndsAtItsTimeout) {
  const std::pair<std::string, std::string> types{"component_types", "list { type: DT_FLOAT }"};
  const GraphSession session(import_text(node("q", "FIFOQueueV2", {}, {types}) +
                                         node("blocked", "QueueDequeueV2", {"q"}, {types})));
  const auto step = session.prepare({}, {"blocked"});
  EXPECT_THAT(message_of_call<DeadlineExceededError>(
                  [&] { step.run({}, {.timeout = std::chrono::milliseconds(20)}); }),
              HasSubstr("Still running: 'blocked' (QueueDequeueV2)"));
  EXPECT_THROW(step.run({}, {.timeout = std::chrono::nanoseconds(0)}), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem::io
