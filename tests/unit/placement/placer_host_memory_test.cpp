#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/graph/function.h"

#include "tests/unit/placement/placer_util.h"

namespace tandem::placer_test {
namespace {

using ::testing::ElementsAre;

std::vector<bool> inputs_on_host(const Node* node) {
  std::vector<bool> all;
  for (int i = 0; i < static_cast<int>(node->inputs().size()); ++i)
    all.push_back(input_on_host(*node, i));
  return all;
}

std::vector<bool> outputs_on_host(const Node* node) {
  std::vector<bool> all;
  for (int i = 0; i < node->num_outputs(); ++i) all.push_back(output_on_host(*node, i));
  return all;
}

TEST(HostMemoryTest, NumbersAreOnTheDevice) {
  Scene s(devices(1, 1));
  Node* a = s.source("a");
  Node* sum = s.add("AddV2", "sum", {{a, 0}, {a, 0}});
  EXPECT_THAT(inputs_on_host(sum), ElementsAre(false, false));
  EXPECT_THAT(outputs_on_host(sum), ElementsAre(false));
}

TEST(HostMemoryTest, SmallIntegersAloneAreOnTheHost) {
  Scene s(devices(1, 1));
  Node* a = s.source("a", "", int32);
  Node* sum = s.add("AddV2", "sum", {{a, 0}, {a, 0}});
  Node* less = s.add("Less", "less", {{a, 0}, {a, 0}});
  Node* wide = s.add("Cast", "wide", {{a, 0}}, "", {{"DstT", float32}});
  Node* long_sum =
      s.add("AddV2", "long", {{s.source("b", "", int64), 0}, {s.source("c", "", int64), 0}});
  EXPECT_THAT(outputs_on_host(a), ElementsAre(true));
  EXPECT_THAT(inputs_on_host(sum), ElementsAre(true, true));
  EXPECT_THAT(outputs_on_host(sum), ElementsAre(true));
  EXPECT_THAT(outputs_on_host(less), ElementsAre(true));
  EXPECT_THAT(inputs_on_host(wide), ElementsAre(false));
  EXPECT_THAT(outputs_on_host(wide), ElementsAre(false));
  EXPECT_THAT(outputs_on_host(long_sum), ElementsAre(false));
}

TEST(HostMemoryTest, ShapesAndAxesAsDeclared) {
  Scene s(devices(1, 1));
  Node* a = s.source("a");
  Node* sizes = s.source("sizes", "", int64, Shape{1});
  Node* axis = s.source("axis", "", int64, Shape{});
  Node* reshape = s.add("Reshape", "reshape", {{a, 0}, {sizes, 0}});
  Node* sum = s.add("Sum", "sum", {{a, 0}, {sizes, 0}});
  Node* shape = s.add("Shape", "shape", {{a, 0}});
  // What stands behind a list has a bit of its own.
  Node* concat = s.add("ConcatV2", "concat", {{a, 0}, {a, 0}, {a, 0}, {axis, 0}});
  Node* split = s.add("Split", "split", {{s.source("dim", "", int32, Shape{}), 0}, {a, 0}}, "",
                      {{"num_split", 3}});
  EXPECT_THAT(inputs_on_host(reshape), ElementsAre(false, true));
  EXPECT_THAT(inputs_on_host(sum), ElementsAre(false, true));
  EXPECT_THAT(outputs_on_host(shape), ElementsAre(true));
  EXPECT_THAT(inputs_on_host(shape), ElementsAre(false));
  EXPECT_THAT(inputs_on_host(concat), ElementsAre(false, false, false, true));
  EXPECT_THAT(inputs_on_host(split), ElementsAre(true, false));
  EXPECT_THAT(outputs_on_host(split), ElementsAre(false, false, false));
}

TEST(HostMemoryTest, HandlesStringsAndReferences) {
  Scene s(devices(1, 1));
  Node* v = s.variable("v");
  Node* assign = s.add("AssignVariableOp", "assign", {{v, 0}, {s.source("a"), 0}});
  Node* old = s.add("VariableV2", "old", {}, "",
                    {{"dtype", float32}, {"shape", PartialShape(Shape{2, 3})}});
  Node* text = s.source("text", "", string);
  EXPECT_THAT(outputs_on_host(v), ElementsAre(true));
  EXPECT_THAT(inputs_on_host(assign), ElementsAre(true, false));
  EXPECT_THAT(outputs_on_host(old), ElementsAre(true));
  EXPECT_THAT(outputs_on_host(text), ElementsAre(true));
}

TEST(HostMemoryTest, ControlFlowDecidesOnTheHost) {
  Scene s(devices(1, 1));
  Node* p = s.source("p", "", boolean, Shape{});
  Node* choose = s.add("Switch", "choose", {{s.source("a"), 0}, {p, 0}});
  Node* count = s.add("Switch", "count", {{s.source("n", "", int32), 0}, {p, 0}});
  Node* merge = s.add("Merge", "merge", {{choose, 0}, {choose, 1}});
  EXPECT_THAT(inputs_on_host(choose), ElementsAre(false, true));
  EXPECT_THAT(outputs_on_host(choose), ElementsAre(false, false));
  EXPECT_THAT(inputs_on_host(count), ElementsAre(true, true));
  EXPECT_THAT(outputs_on_host(count), ElementsAre(true, true));
  EXPECT_THAT(outputs_on_host(merge), ElementsAre(false, true));
}

TEST(HostMemoryTest, LongListsOfOutputs) {
  Scene s(devices(1, 1));
  const std::vector<Output> many(40, Output{s.source("a"), 0});
  Node* shapes = s.add("ShapeN", "shapes", many);
  EXPECT_TRUE(output_on_host(*shapes, 31));
  EXPECT_FALSE(output_on_host(*shapes, 32));  // beyond what a kernel can be reported
  const std::vector<Output> counts(40, Output{s.source("n", "", int32), 0});
  EXPECT_TRUE(input_on_host(*s.add("AddN", "sum", counts), 39));
}

TEST(HostMemoryTest, CallsHandIntegersOnAndNumbersToo) {
  Scene s(devices(1, 1));
  Scene body(devices(1));
  std::vector<Node*> args{body.add("_Arg", "a", {}, "", {{"T", float32}, {"index", 0}}),
                          body.add("_Arg", "b", {}, "", {{"T", int32}, {"index", 1}})};
  const std::vector<Output> results{{args[0], 0}, {args[1], 0}};
  const FunctionRef f = std::make_shared<const Function>("f", std::move(body.graph), args, results);
  const std::vector<DType> types{float32, int32};
  Node* call = s.add("PartitionedCall", "call", {{s.source("x"), 0}, {s.source("n", "", int32), 0}},
                     "", {{"f", f}, {"Tin", types}, {"Tout", types}});
  EXPECT_THAT(inputs_on_host(call), ElementsAre(false, true));
  EXPECT_THAT(outputs_on_host(call), ElementsAre(false, true));
}

// ---- Copies ----

TEST(CopiesTest, OncePerDestination) {
  Scene s(devices(2, 2));
  Node* a = s.value("a", "/GPU:0");
  s.add("Identity", "b", {{a, 0}}, "/GPU:1");
  s.add("Identity", "c", {{a, 0}}, "/GPU:1");
  s.add("Identity", "d", {{a, 0}}, "/CPU:0");
  s.add("Identity", "e", {{a, 0}}, "/CPU:1");  // CPUs share their memory
  s.add("Identity", "f", {{a, 0}}, "/GPU:0");
  s.run();
  const auto copies = s.placement.copies(s.graph, CostModel(s.devices));
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0].value, (Output{a, 0}));
  EXPECT_EQ(copies[0].from, 2);
  EXPECT_EQ(copies[0].to, 3);
  EXPECT_EQ(copies[0].bytes, 24);
  EXPECT_EQ(copies[0].seconds, s.devices.copy_seconds(2, 3, 24));
  EXPECT_EQ(copies[1].to, 0);
}

TEST(CopiesTest, HostMemoryIsWhereItIs) {
  Scene s(devices(1, 1));
  Node* a = s.value("a", "/GPU:0");
  Node* shape = s.add("Shape", "shape", {{a, 0}}, "/GPU:0");
  s.add("Identity", "reader", {{shape, 0}}, "/CPU:0");
  s.add("Reshape", "reshape", {{a, 0}, {shape, 0}}, "/GPU:0");
  Node* index = s.value("index", "/GPU:0", int32);
  s.add("Cast", "cast", {{index, 0}}, "/GPU:0", {{"DstT", float32}});
  s.run();
  const auto copies = s.placement.copies(s.graph, CostModel(s.devices));
  // Only the cast works on numbers of the device's; they are made on the host.
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].value, (Output{index, 0}));
  EXPECT_EQ(copies[0].from, 0);
  EXPECT_EQ(copies[0].to, 1);
}

TEST(CopiesTest, InGraphOrderAndUnknownSizesAreZero) {
  Scene s(devices(1, 1));
  Node* first = s.source("first", "/CPU:0", float32, PartialShape({-1, 4}));
  Node* second = s.value("second", "/CPU:0");
  s.add("Identity", "uses_second", {{second, 0}}, "/GPU:0");
  s.add("Identity", "uses_first", {{first, 0}}, "/GPU:0");
  s.run();
  const auto copies = s.placement.copies(s.graph, CostModel(s.devices));
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0].value.node, first);
  EXPECT_EQ(copies[0].bytes, 0);
  EXPECT_GT(copies[0].seconds, 0);
  EXPECT_EQ(copies[1].value.node, second);
}

}  // namespace
}  // namespace tandem::placer_test
