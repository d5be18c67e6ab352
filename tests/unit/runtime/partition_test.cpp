// Graphs split over the tasks of this process. tests/partition splits stored graphs at random.

#include "tandem/runtime/partition/partition.h"

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/graph/rendezvous.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/operators.h"
#include "tandem/runtime/partition/partitioned_function.h"
#include "tandem/runtime/partition/place_on_tasks.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/runtime/control_flow_util.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

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

class PartitionTest : public testing::Test {
 protected:
  PartitionTest() {
    for (int t = 0; t < 2; ++t) {
      Runtime::Options options;
      options.inter_op_threads = 1;
      options.intra_op_threads = 1;
      options.task = cat("/job:worker/task:", t);
      tasks_.push_back(std::make_unique<Runtime>(options));
      runtimes_.push_back(tasks_.back().get());
    }
  }

  // On task 0, but for nodes of these names.
  AssignedGraph assigned(const FunctionRef& function, const std::vector<std::string>& on_second) {
    AssignedGraph graph{MutableFunction(*function), devices_of(runtimes_), {}};
    graph.device_of.resize(static_cast<std::size_t>(graph.function.graph.id_limit()));
    for (const std::string& name : on_second)
      graph.device_of[static_cast<std::size_t>(graph.function.graph.find(name)->id())] = 1;
    return graph;
  }
  std::vector<GraphPart> split(const FunctionRef& function,
                               const std::vector<std::string>& on_second) {
    return partition(assigned(function, on_second), Runtime::current().ops());
  }

  std::vector<std::unique_ptr<Runtime>> tasks_;
  std::vector<Runtime*> runtimes_;
};

std::vector<const Node*> of_op(const GraphPart& part, const std::string& op) {
  std::vector<const Node*> found;
  for (const auto& node : part.function->body().nodes()) {
    if (node->op().name == op) found.push_back(node.get());
  }
  return found;
}

float value(const Array& a) { return *a.data<float>(); }

TEST_F(PartitionTest, SendsEachValueOnceToEachTask) {
  FlowBuilder b;
  const Output x = b.arg(DType::kFloat, PartialShape::scalar());
  Node* square = b.add("Square", {x}, {}, {}, "square");
  Node* sum = b.add("AddV2", {{square, 0}, {square, 0}}, {}, {}, "sum");
  Node* product = b.add("Mul", {{square, 0}, {sum, 0}}, {}, {}, "product");
  const FunctionRef f = b.finish({{product, 0}, {square, 0}});
  std::vector<GraphPart> parts = split(f, {"sum", "product"});
  ASSERT_THAT(parts, SizeIs(2));
  EXPECT_EQ(parts[0].name, "/job:worker/replica:0/task:0");
  EXPECT_THAT(parts[0].args, ElementsAre(0));
  EXPECT_THAT(parts[0].results, ElementsAre(1));
  EXPECT_THAT(parts[1].results, ElementsAre(0));
  const auto sends = of_op(parts[0], "_Send"), receives = of_op(parts[1], "_Recv");
  ASSERT_THAT(sends, SizeIs(1));
  ASSERT_THAT(receives, SizeIs(1));
  for (const Node* node : {sends[0], receives[0]}) {
    EXPECT_EQ(node->attr<std::string>("tensor_name"), "edge_1_square");
    EXPECT_EQ(node->attr<std::string>("send_device"), "/job:worker/replica:0/task:0/device:CPU:0");
    EXPECT_EQ(node->attr<std::string>("recv_device"), "/job:worker/replica:0/task:1/device:CPU:0");
    EXPECT_EQ(static_cast<std::uint64_t>(node->attr<std::int64_t>("send_device_incarnation")),
              tasks_[0]->devices()[0]->incarnation());
  }
  EXPECT_EQ(receives[0]->output_shape(0), PartialShape::scalar());
  const PartitionedFunction function(std::move(parts), runtimes_);
  const std::vector<Array> results = function.run({Array::scalar(3.0f)});
  EXPECT_EQ(value(results[0]), 162);
  EXPECT_EQ(value(results[1]), 9);
}

TEST_F(PartitionTest, ControlEdgesSendAnEmptyConstant) {
  FlowBuilder b;
  const Output x = b.arg(DType::kFloat, PartialShape::scalar());
  Node* first = b.add("Square", {x}, {}, {}, "first");
  Node* second = b.add("Neg", {x}, {}, {first}, "second");
  const FunctionRef f = b.finish({{second, 0}});
  std::vector<GraphPart> parts = split(f, {"second"});
  const auto receives = of_op(parts[1], "_Recv");
  ASSERT_THAT(receives, SizeIs(2));  // and x
  int signals = 0;
  for (const Node* node : receives)
    signals += node->output_shape(0).is_compatible(Shape{0}) && node->output_shape(0).rank() == 1;
  EXPECT_EQ(signals, 1);
  const PartitionedFunction function(std::move(parts), runtimes_);
  EXPECT_EQ(value(function.run({Array::scalar(3.0f)})[0]), -3);
}

// x * 2^n, one Mul after the other.
FunctionRef doubling() {
  FlowBuilder b;
  const Output x = b.arg(DType::kFloat, PartialShape::scalar());
  const Output n = b.arg(DType::kInt32, PartialShape::scalar());
  const Output zero = b.constant(Array::scalar(0));
  const Output i = b.loop_variable(b.enter(zero, "loop"));
  const Output v = b.loop_variable(b.enter(x, "loop"));
  const Output limit = b.enter(n, "loop", true);
  Node* less = b.add("Less", {i, limit}, {}, {}, "less");
  Node* go_on = b.add("LoopCond", {{less, 0}}, {}, {}, "condition");
  Node* of_i = b.add("Switch", {i, {go_on, 0}}, {}, {}, "switch_i");
  Node* of_v = b.add("Switch", {v, {go_on, 0}}, {}, {}, "switch_v");
  const Output one = b.constant(Array::scalar(1), {of_i});
  Node* next = b.add("AddV2", {{of_i, 1}, one}, {}, {}, "next");
  Node* twice = b.add("AddV2", {{of_v, 1}, {of_v, 1}}, {}, {}, "twice");
  b.close(i, {next, 0});
  b.close(v, {twice, 0});
  Node* out = b.add("Exit", {{of_v, 0}}, {}, {}, "out");
  return b.finish({{out, 0}});
}

TEST_F(PartitionTest, LoopsRunWithAControlLoopOnEachSide) {
  std::vector<GraphPart> parts = split(doubling(), {"twice"});
  ASSERT_THAT(parts, SizeIs(2));
  // The second task learns whether the loop goes on and takes part in each iteration.
  EXPECT_THAT(of_op(parts[1], "Merge"), SizeIs(1));
  EXPECT_THAT(of_op(parts[1], "Enter"), SizeIs(1));
  for (const Node* receive : of_op(parts[1], "_Recv"))
    EXPECT_EQ(receive->control_inputs(),
              std::vector<Node*>{const_cast<Node*>(of_op(parts[1], "Merge")[0])});
  const PartitionedFunction function(std::move(parts), runtimes_);
  for (const int n : {0, 1, 20}) {
    EXPECT_EQ(value(function.run({Array::scalar(3.0f), Array::scalar(n)})[0]),
              3.0f * static_cast<float>(1 << n));
  }
}

TEST_F(PartitionTest, RefusesWhatCannotBeCut) {
  FlowBuilder b;
  Node* variable =
      b.add("VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::scalar()}}, {},
            "variable");
  Node* read = b.add("ReadVariableOp", {{variable, 0}}, {{"dtype", DType::kFloat}}, {}, "read");
  const FunctionRef f = b.finish({{read, 0}});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { split(f, {"read"}); }),
              HasSubstr("gives a resource's handle to"));
  AssignedGraph nowhere = assigned(f, {});
  nowhere.device_of.clear();
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { partition(std::move(nowhere), Runtime::current().ops()); }),
              HasSubstr("is assigned to no device"));
}

TEST_F(PartitionTest, RefusesLoopsWithoutACondition) {
  FlowBuilder b;
  const Output x = b.arg(DType::kFloat, PartialShape::scalar());
  const Output go_on = b.enter(b.constant(Array::scalar(false)), "loop", true);
  const Output v = b.loop_variable(b.enter(x, "loop"));
  Node* taken = b.add("Switch", {v, go_on});
  Node* twice = b.add("Square", {{taken, 1}}, {}, {}, "twice");
  b.close(v, {twice, 0});
  const FunctionRef f = b.finish({b.add1("Exit", {{taken, 0}})});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { split(f, {"twice"}); }),
              HasSubstr("A cross-device loop must have a pivot predicate: loop"));
}

// Parts written by hand: each exchanges values under these names.
GraphPart part_of(const std::string& task,
                  const std::vector<std::pair<std::string, std::string>>& received_and_sent) {
  const auto device = [](int t) { return cat("/job:worker/replica:0/task:", t, "/device:CPU:0"); };
  const int here = task.back() - '0', there = 1 - here;
  FlowBuilder b;
  std::vector<Node*> sends;
  for (const auto& [received, sent] : received_and_sent) {
    Output value = b.constant(Array::scalar(1.0f));
    const auto attrs = [&](const std::string& name, int from, int to) {
      return AttrMap{{"tensor_name", name},
                     {"send_device", device(from)},
                     {"send_device_incarnation", 1},
                     {"recv_device", device(to)}};
    };
    if (!received.empty()) {
      AttrMap a = attrs(received, there, here);
      a.set("tensor_type", DType::kFloat);
      value = {b.add("_Recv", {}, a, {}, "receive_" + received), 0};
    }
    if (!sent.empty())
      sends.push_back(b.add("_Send", {value}, attrs(sent, here, there), {}, "send_" + sent));
  }
  return {task, b.finish({}, sends), {}, {}};
}

TEST_F(PartitionTest, RefusesPartsThatDoNotFitTogether) {
  const std::string one = "/job:worker/replica:0/task:0", other = "/job:worker/replica:0/task:1";
  const auto refusal = [](const std::vector<GraphPart>& parts) {
    return thrown<InvalidArgumentError>([&] { check_parts(parts); });
  };
  check_parts(std::vector{part_of(one, {{"", "a"}}), part_of(other, {{"a", ""}})});
  EXPECT_THAT(refusal({part_of(one, {{"b", "a"}}), part_of(other, {{"a", "b"}})}),
              HasSubstr("wait for each other in a cycle"));
  EXPECT_THAT(refusal({part_of(one, {}), part_of(other, {{"a", ""}})}),
              HasSubstr("task:0/device:CPU:0 should send, but no part of the step does"));
  EXPECT_THAT(refusal({part_of(one, {{"", "a"}}), part_of(other, {})}),
              HasSubstr("task:1/device:CPU:0 should receive, but no part of the step does"));
  EXPECT_THAT(refusal({part_of(one, {{"", "a"}, {"", "a"}}), part_of(other, {{"a", ""}})}),
              HasSubstr("is sent twice: by 'send_a'"));
  EXPECT_THAT(refusal({part_of(one, {{"", "a"}}), part_of(other, {{"a", ""}, {"a", ""}})}),
              HasSubstr("is received twice"));
}

TEST_F(PartitionTest, RefusesPartsOfAnotherIncarnation) {
  FlowBuilder b;
  const Output x = b.arg(DType::kFloat, PartialShape::scalar());
  Node* square = b.add("Square", {x}, {}, {}, "square");
  const FunctionRef f = b.finish({{square, 0}});
  AssignedGraph graph = assigned(f, {"square"});
  ++graph.devices[0].incarnation;
  std::vector<GraphPart> parts = partition(std::move(graph), Runtime::current().ops());
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] { PartitionedFunction(std::move(parts), runtimes_); }),
      HasSubstr("another incarnation of /job:worker/replica:0/task:0/device:CPU:0"));
}

TEST_F(PartitionTest, TheFirstFailureEndsEveryPart) {
  FlowBuilder b;
  const Output x = b.arg(DType::kFloat, PartialShape({2, 2}));
  Node* inverse = b.add("MatrixInverse", {x}, {}, {}, "inverse");
  Node* square = b.add("Square", {{inverse, 0}}, {}, {}, "square");
  Node* back = b.add("Neg", {{square, 0}}, {}, {}, "back");
  const FunctionRef f = b.finish({{back, 0}, {square, 0}});
  const PartitionedFunction function(split(f, {"square"}), runtimes_);
  const Array singular(DType::kFloat, Shape{2, 2});
  std::fill_n(const_cast<float*>(singular.data<float>()), 4, 0.0f);
  const Ref<LocalRendezvous> rendezvous = make_ref<LocalRendezvous>();
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { function.run({singular}, *rendezvous); }),
              HasSubstr("Input is not invertible"));
  EXPECT_THAT(rendezvous->unreceived(), SizeIs(0));
  EXPECT_THAT(rendezvous->unanswered(), SizeIs(0));
}

TEST_F(PartitionTest, ADeadlineEndsPartsThatWait) {
  FlowBuilder b;
  Node* queue = b.add("FIFOQueueV2", {}, {{"component_types", std::vector<DType>{DType::kFloat}}},
                      {}, "queue");
  Node* taken = b.add("QueueDequeueV2", {{queue, 0}},
                      {{"component_types", std::vector<DType>{DType::kFloat}}}, {}, "taken");
  Node* square = b.add("Square", {{taken, 0}}, {}, {}, "square");
  const FunctionRef f = b.finish({{square, 0}});
  const PartitionedFunction function(split(f, {"square"}), runtimes_);
  const DeadlineScope deadline(std::chrono::milliseconds(50));
  EXPECT_THROW(function.run({}), DeadlineExceededError);
}

TEST_F(PartitionTest, ThePlacerPutsNodesOnTasks) {
  FlowBuilder b;
  const Output x = b.arg(DType::kFloat, PartialShape::scalar());
  Node* square = b.add("Square", {x}, {}, {}, "square");
  Node* minus = b.add("Neg", {{square, 0}}, {}, {}, "minus");
  b.graph.set_requested_device(square, "/job:worker/task:1");
  const FunctionRef f = b.finish({{minus, 0}});
  AssignedGraph graph = place_on_tasks(*f, runtimes_);
  std::vector<GraphPart> parts = partition(std::move(graph), Runtime::current().ops());
  ASSERT_THAT(parts, SizeIs(2));
  EXPECT_THAT(of_op(parts[1], "Square"), SizeIs(1));
  EXPECT_THAT(of_op(parts[0], "Neg"), SizeIs(1));
  const PartitionedFunction function(std::move(parts), runtimes_);
  EXPECT_EQ(value(function.run({Array::scalar(3.0f)})[0]), -9);
}

TEST_F(PartitionTest, BranchesAndLoopsMayAskForSeveralTasks) {
  const auto f = function([](Tensor x) {
    return while_loop(
        [](const Tensor& v) {
          const DeviceScope first("/job:worker/task:0");
          return v < 100.0;
        },
        [](const Tensor& v) {
          const DeviceScope second("/job:worker/task:1");
          return cond(
              v > 10.0, [&] { return v * 3.0; },
              [&] {
                const DeviceScope first("/job:worker/task:0");
                return v + 4.0;
              });
        },
        x);
  });
  const auto trace = f.concrete(Tensor(1.0f));
  std::vector<GraphPart> parts =
      partition(place_on_tasks(*trace.function(), runtimes_), Runtime::current().ops());
  ASSERT_THAT(parts, SizeIs(2));
  // Each branch is where it asks to be, within the loop.
  EXPECT_THAT(of_op(parts[0], "AddV2"), SizeIs(1));
  EXPECT_THAT(of_op(parts[1], "Mul"), SizeIs(1));
  EXPECT_THAT(of_op(parts[0], "While"), SizeIs(0));
  const PartitionedFunction function(std::move(parts), runtimes_);
  EXPECT_EQ(value(function.run({Array::scalar(1.0f)})[0]), 117);  // 1, 5, 9, 13, 39, 117
  EXPECT_EQ(value(function.run({Array::scalar(200.0f)})[0]), 200);
}

TEST_F(PartitionTest, DevicesAreNamedAfterTheirTask) {
  EXPECT_EQ(tasks_[1]->task().to_string(), "/job:worker/replica:0/task:1");
  EXPECT_EQ(tasks_[1]->devices()[0]->name(), "/job:worker/replica:0/task:1/device:CPU:0");
  EXPECT_NE(tasks_[0]->devices()[0]->incarnation(), tasks_[1]->devices()[0]->incarnation());
  const RuntimeScope scope(*tasks_[1]);
  EXPECT_EQ(Tensor(1.0f).device(), "/job:worker/replica:0/task:1/device:CPU:0");
  {
    const DeviceScope here("/job:worker/task:1/CPU:0");
    EXPECT_EQ((Tensor(1.0f) + Tensor(2.0f)).item<float>(), 3);
  }
  const DeviceScope elsewhere("/job:worker/task:0/CPU:0");
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Tensor(1.0f) + Tensor(2.0f); }),
              HasSubstr("/job:worker/replica:0/task:0/device:CPU:0 unknown device"));
  EXPECT_THROW(Runtime({.task = "/job:worker/CPU:0"}), InvalidArgumentError);
}

TEST(SendTest, NeedsAStepWithARendezvous) {
  const GraphPart part = part_of("/job:worker/replica:0/task:0", {{"", "a"}});
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { run(part.function, {}); }),
              HasSubstr("the step has no rendezvous"));
}

}  // namespace
}  // namespace tandem
