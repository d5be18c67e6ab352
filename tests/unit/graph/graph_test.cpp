#include "tandem/graph/graph.h"

#include <gmock/gmock.h>

#include "tandem/graph/function.h"

#include "tests/unit/graph/graph_util.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Graph, PrintsItsNodes) {
  Builder b;
  Node* x = b.arg("x", float32, {2, -1});
  Node* one = b.constant("one", Array::scalar(1.0f));
  Node* two = b.add("TestSplitInTwo", "two", {{x}});
  Node* sum = b.add("TestAdd", "sum", {{two, 1}, {one}});
  b.add("TestNegate", "", {{sum}}, {{"mode", "B"}});
  b.graph.add_control_input(sum, x);
  EXPECT_EQ(b.graph.to_string(),
            "x: float[2,?] = TestArg() {T=float, shape=[2,?]}\n"
            "one: float[] = TestConst() {value=tensor<float[]> 1.0, dtype=float}\n"
            "two: float<unknown>, float<unknown> = TestSplitInTwo(x)\n"
            "sum: float<unknown> = TestAdd(two:1, one) ^x\n"
            "TestNegate: float<unknown> = TestNegate(sum) {mode=\"B\"}\n");
}

TEST(Graph, MakesNamesUnique) {
  Builder b;
  Node* x = b.arg("x", float32, {});
  for (const char* wanted : {"n", "n_1", "n", "n", ""}) b.add("TestNegate", wanted, {{x}});
  std::vector<std::string> names;
  for (const auto& node : b.graph.nodes()) names.push_back(node->name());
  EXPECT_THAT(names, ElementsAre("x", "n", "n_1", "n_2", "n_3", "TestNegate"));
  EXPECT_EQ(b.graph.find("n_2")->name(), "n_2");
  EXPECT_EQ(b.graph.find("absent"), nullptr);
}

TEST(Graph, KnowsItsOrder) {
  Builder b;
  Node* x = b.arg("x", float32, {});
  Node* first = b.add("TestNegate", "first", {{x}});
  Node* second = b.add("TestNegate", "second", {{x}});
  Node* third = b.add("TestAdd", "third", {{second}, {second}});
  b.graph.add_control_input(first, third);
  EXPECT_THAT(b.graph.topological_order(), ElementsAre(x, second, third, first));
  const auto users = b.graph.consumers();
  EXPECT_THAT(users[static_cast<std::size_t>(second->id())], ElementsAre(third)) << "once";
  b.graph.add_control_input(second, first);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { b.graph.topological_order(); }),
              HasSubstr("The graph has a cycle: 'first' -> 'second' -> 'third' -> 'first'."));
}

TEST(Graph, ControlInputsAreASet) {
  Builder b;
  Node* x = b.arg("x", float32, {});
  Node* y = b.add("TestNegate", "y", {{x}});
  b.graph.add_control_input(y, x);
  b.graph.add_control_input(y, x);
  b.graph.add_control_input(y, y);
  EXPECT_THAT(y->control_inputs(), ElementsAre(x));
}

TEST(Graph, InfersShapesAgain) {
  Builder b;
  Node* x = b.arg("x", float32, {-1});
  Node* y = b.add("TestNegate", "y", {{x}});
  Node* z = b.add("TestAdd", "z", {{y}, {x}});
  EXPECT_EQ(z->output_shape(0), (PartialShape{-1}));
  b.graph.set_attr(x, "shape", PartialShape{4});
  b.graph.infer_shapes();
  EXPECT_EQ(z->output_shape(0), (PartialShape{4}));
}

TEST(Graph, IsCopiedWhole) {
  Builder b;
  Node* x = b.arg("x", float32, {2});
  Node* y = b.add("TestAdd", "y", {{x}, {x}});
  b.graph.add_control_input(y, x);
  std::vector<Node*> mapped;
  Graph copy = b.graph.clone(&mapped);
  EXPECT_EQ(copy.to_string(), b.graph.to_string());
  Node* twin = mapped[static_cast<std::size_t>(y->id())];
  EXPECT_EQ(twin->inputs()[0].node, copy.find("x"));
  EXPECT_EQ(twin->control_inputs()[0], copy.find("x"));
  copy.set_output_shape(twin, 0, PartialShape{9});
  EXPECT_EQ(y->output_shape(0), (PartialShape{2}));
}

TEST(Graph, DropsAndReplaces) {
  Builder b;
  Node* x = b.arg("x", float32, {2});
  Node* y = b.add("TestNegate", "y", {{x}});
  Node* z = b.add("TestAdd", "z", {{y}, {y}});
  b.graph.add_control_input(z, y);
  b.graph.replace_uses({y}, {x});
  std::vector<bool> drop(static_cast<std::size_t>(b.graph.id_limit()), false);
  drop[static_cast<std::size_t>(y->id())] = true;
  b.graph.remove_if(drop);
  EXPECT_EQ(b.graph.find("y"), nullptr);
  EXPECT_THAT(z->inputs(), ElementsAre(Output{x, 0}, Output{x, 0}));
  EXPECT_TRUE(z->control_inputs().empty());
  Node* again = b.add("TestNegate", "y", {{x}});
  EXPECT_EQ(again->name(), "y");
}

TEST(Node, GivesItsAttributes) {
  Builder b;
  Node* x = b.arg("x", float32, {2});
  EXPECT_EQ(x->attr<DType>("T"), float32);
  EXPECT_THROW(x->attr<std::int64_t>("T"), InternalError);
  EXPECT_THROW(x->attr<DType>("U"), InternalError);
  EXPECT_EQ(x->describe(), "{{node x}} (TestArg)");
}

TEST(Function, ReportsItsSignature) {
  Builder b;
  Node* x = b.arg("x", float32, {2});
  Node* two = b.add("TestSplitInTwo", "two", {{x}});
  const Function f("f", std::move(b.graph), {x}, {{two, 1}, {x}});
  EXPECT_THAT(f.arg_dtypes(), ElementsAre(float32));
  EXPECT_THAT(f.result_dtypes(), ElementsAre(float32, float32));
  EXPECT_EQ(f.result_shapes()[1], (PartialShape{2}));
  EXPECT_FALSE(f.stateful());
  EXPECT_THAT(f.to_string(), HasSubstr("function f\nx: float[2] = TestArg()"));
  EXPECT_THAT(f.to_string(), HasSubstr("return two:1, x:0\n"));
}

TEST(Function, IsStatefulIfANodeIs) {
  Builder b;
  Node* x = b.arg("x", float32, {2});
  b.add("TestEffect", "effect", {{x}});
  EXPECT_TRUE(Function("f", std::move(b.graph), {x}, {{x}}).stateful());
}

TEST(Function, KeepsWhatIsDerivedFromIt) {
  const Function f("f", Graph(), {}, {});
  int made = 0;
  const auto make = [&] {
    ++made;
    return std::make_shared<int>(7);
  };
  EXPECT_EQ(*f.derived<int>(Function::kPlans, make), 7);
  EXPECT_EQ(*f.derived<int>(Function::kPlans, make), 7);
  EXPECT_EQ(made, 1);
  f.derived<int>(Function::kGradient, make);
  EXPECT_EQ(made, 2);
}

}  // namespace
}  // namespace tandem
