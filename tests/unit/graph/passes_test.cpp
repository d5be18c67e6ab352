#include "tandem/graph/passes.h"

#include <gmock/gmock.h>

#include "tandem/graph/function.h"

#include "tests/unit/graph/graph_util.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

// Each test shows the graph before and after. Constants made by passes are of the op that the
// library declares for constants, if it is linked, so the texts name it as the registry does.
std::string const_op() { return test_ops().of_kind(NodeKind::kConst).name; }

MutableFunction function(Builder& b, std::vector<Output> results, std::vector<Node*> control = {}) {
  return MutableFunction(
      Function("f", std::move(b.graph), b.args, std::move(results), std::move(control)));
}

std::string results(const MutableFunction& f) {
  std::string text;
  for (const Output& r : f.results)
    text += cat(text.empty() ? "" : " ", r.node->name(), ":", r.index);
  return text;
}

TEST(Prune, DropsWhatNothingNeeds) {
  Builder b;
  Node* x = b.arg("x", float32, {2});
  b.arg("unused", float32, {2});
  Node* y = b.add("TestNegate", "y", {{x}});
  Node* dead = b.add("TestNegate", "dead", {{y}});
  b.add("TestNegate", "deader", {{dead}});
  Node* effect = b.add("TestEffect", "effect", {{x}});
  b.add("TestEffect", "forgotten", {{x}});
  MutableFunction f = function(b, {{y}}, {effect});
  EXPECT_EQ(f.graph.to_string(),
            "x: float[2] = TestArg() {T=float, shape=[2]}\n"
            "unused: float[2] = TestArg() {T=float, shape=[2]}\n"
            "y: float[2] = TestNegate(x)\n"
            "dead: float[2] = TestNegate(y)\n"
            "deader: float[2] = TestNegate(dead)\n"
            "effect: float[2] = TestEffect(x)\n"
            "forgotten: float[2] = TestEffect(x)\n");
  EXPECT_TRUE(passes::prune(f));
  EXPECT_EQ(f.graph.to_string(),
            "x: float[2] = TestArg() {T=float, shape=[2]}\n"
            "unused: float[2] = TestArg() {T=float, shape=[2]}\n"
            "y: float[2] = TestNegate(x)\n"
            "effect: float[2] = TestEffect(x)\n");
  EXPECT_FALSE(passes::prune(f));
}

TEST(Prune, KeepsWhatOthersWaitFor) {
  Builder b;
  Node* x = b.arg("x", float32, {});
  Node* effect = b.add("TestEffect", "effect", {{x}});
  Node* y = b.add("TestNegate", "y", {{x}});
  b.graph.add_control_input(y, effect);
  MutableFunction f = function(b, {{y}});
  EXPECT_FALSE(passes::prune(f));
  EXPECT_NE(f.graph.find("effect"), nullptr);
}

TEST(FoldConstants, ComputesWhatIsConstant) {
  Builder b;
  Node* x = b.arg("x", float32, {2});
  Node* one = b.constant("one", Array::vector<float>({1, 2}));
  Node* sum = b.add("TestAdd", "sum", {{one}, {one}});
  Node* again = b.add("TestAdd", "again", {{sum}, {one}});
  Node* y = b.add("TestAdd", "y", {{x}, {again}});
  MutableFunction f = function(b, {{y}, {sum}});
  EXPECT_EQ(f.graph.to_string(),
            "x: float[2] = TestArg() {T=float, shape=[2]}\n"
            "one: float[2] = TestConst() {value=tensor<float[2]> [1. 2.], dtype=float}\n"
            "sum: float[2] = TestAdd(one, one)\n"
            "again: float[2] = TestAdd(sum, one)\n"
            "y: float[2] = TestAdd(x, again)\n");
  AddingEvaluator evaluator;
  while (passes::fold_constants(f, test_ops(), evaluator)) {
  }
  EXPECT_EQ(f.graph.to_string(),
            "x: float[2] = TestArg() {T=float, shape=[2]}\n"
            "y: float[2] = TestAdd(x, again/folded)\n"
            "sum/folded: float[2] = " +
                const_op() +
                "() {value=tensor<float[2]> [2. 4.], dtype=float}\n"
                "again/folded: float[2] = " +
                const_op() + "() {value=tensor<float[2]> [3. 6.], dtype=float}\n");
  EXPECT_EQ(results(f), "y:0 sum/folded:0");
  EXPECT_EQ(evaluator.asked, 2);
}

TEST(FoldConstants, LeavesWhatMustRun) {
  Builder b;
  Node* one = b.constant("one", Array::vector<float>({1, 2}));
  Node* three = b.constant("three", Array::vector<float>({1, 2, 3}));
  Node* effect = b.add("TestEffect", "effect", {{one}});
  Node* waits = b.add("TestAdd", "waits", {{one}, {one}});
  b.graph.add_control_input(waits, effect);
  Node* unknown = b.add("TestNegate", "unknown", {{one}});
  Node* large = b.constant("large", Array::zeros(float32, {3'000'000}));
  Node* too_large = b.add("TestAdd", "too_large", {{large}, {large}});
  (void)three;
  MutableFunction f = function(b, {{effect}, {waits}, {unknown}, {too_large}});
  const std::string before = f.graph.to_string();
  AddingEvaluator evaluator;
  EXPECT_FALSE(passes::fold_constants(f, test_ops(), evaluator));
  EXPECT_EQ(f.graph.to_string(), before);
}

TEST(FoldConstants, LeavesErrorsToTheRun) {
  Builder b;
  Node* two = b.constant("two", Array::vector<float>({1, 2}));
  Node* one = b.constant("one", Array::vector<float>({1}));
  Node* sum = b.add("TestAdd", "sum", {{two}, {one}});  // the evaluator refuses to broadcast
  MutableFunction f = function(b, {{sum}});
  AddingEvaluator evaluator;
  EXPECT_FALSE(passes::fold_constants(f, test_ops(), evaluator));
  EXPECT_EQ(results(f), "sum:0");
}

TEST(MergeCommon, KeepsOneOfSeveralEqualNodes) {
  Builder b;
  Node* x = b.arg("x", float32, {2});
  Node* a = b.add("TestNegate", "a", {{x}});
  Node* c = b.add("TestNegate", "c", {{x}});
  Node* d = b.add("TestAdd", "d", {{a}, {x}});
  Node* e = b.add("TestAdd", "e", {{c}, {x}});
  Node* other = b.add("TestNegate", "other", {{x}}, {{"mode", "B"}});
  Node* sum = b.add("TestAdd", "sum", {{d}, {e}});
  MutableFunction f = function(b, {{sum}, {e}, {other}});
  EXPECT_TRUE(passes::eliminate_common_subexpressions(f));
  EXPECT_EQ(f.graph.to_string(),
            "x: float[2] = TestArg() {T=float, shape=[2]}\n"
            "a: float[2] = TestNegate(x)\n"
            "d: float[2] = TestAdd(a, x)\n"
            "other: float[2] = TestNegate(x) {mode=\"B\"}\n"
            "sum: float[2] = TestAdd(d, d)\n");
  EXPECT_EQ(results(f), "sum:0 d:0 other:0");
  EXPECT_FALSE(passes::eliminate_common_subexpressions(f));
}

TEST(MergeCommon, ComparesConstantsByValue) {
  Builder b;
  Node* a = b.constant("a", Array::vector<float>({1, 2}));
  Node* c = b.constant("c", Array::vector<float>({1, 2}));
  Node* d = b.constant("d", Array::vector<float>({1, 3}));
  MutableFunction f = function(b, {{a}, {c}, {d}});
  EXPECT_TRUE(passes::eliminate_common_subexpressions(f));
  EXPECT_EQ(results(f), "a:0 a:0 d:0");
}

TEST(MergeCommon, LeavesEffectsAndArguments) {
  Builder b;
  Node* x = b.arg("x", float32, {2});
  Node* y = b.arg("y", float32, {2});
  Node* a = b.add("TestEffect", "a", {{x}});
  Node* c = b.add("TestEffect", "c", {{x}});
  MutableFunction f = function(b, {{a}, {c}, {y}});
  EXPECT_FALSE(passes::eliminate_common_subexpressions(f));
  EXPECT_EQ(results(f), "a:0 c:0 y:0");
}

TEST(CleanArithmetic, AppliesTheOpsOwnRewrites) {
  Builder b;
  Node* x = b.arg("x", int32, {2});
  Node* zero = b.constant("zero", Array::scalar(std::int32_t{0}));
  Node* one = b.constant("one", Array::scalar(std::int32_t{1}));
  Node* same = b.add("TestAdd", "same", {{x}, {zero}});
  Node* more = b.add("TestAdd", "more", {{same}, {one}});
  MutableFunction f = function(b, {{more}, {same}});
  EXPECT_EQ(f.graph.to_string(),
            "x: int32[2] = TestArg() {T=int32, shape=[2]}\n"
            "zero: int32[] = TestConst() {value=tensor<int32[]> 0, dtype=int32}\n"
            "one: int32[] = TestConst() {value=tensor<int32[]> 1, dtype=int32}\n"
            "same: int32[2] = TestAdd(x, zero)\n"
            "more: int32[2] = TestAdd(same, one)\n");
  EXPECT_TRUE(passes::simplify_arithmetic(f, test_ops()));
  EXPECT_EQ(f.graph.to_string(),
            "x: int32[2] = TestArg() {T=int32, shape=[2]}\n"
            "one: int32[] = TestConst() {value=tensor<int32[]> 1, dtype=int32}\n"
            "more: int32[2] = TestAdd(x, one)\n");
  EXPECT_EQ(results(f), "more:0 x:0");
}

TEST(CleanArithmetic, KeepsShapes) {
  // All of these may broadcast, so that the sum is not x.
  const PartialShape shapes[] = {PartialShape{1}, PartialShape::scalar(), PartialShape::unknown(),
                                 PartialShape{-1}};
  for (const PartialShape& shape : shapes) {
    Builder b;
    Node* x = b.arg("x", int32, shape);
    Node* zeros = b.constant("zeros", Array::zeros(int32, {3}));
    MutableFunction f = function(b, {{b.add("TestAdd", "sum", {{x}, {zeros}})}});
    EXPECT_FALSE(passes::simplify_arithmetic(f, test_ops())) << shape;
    EXPECT_EQ(results(f), "sum:0") << shape;
  }
}

TEST(CleanArithmetic, KnowsThatScalarsDoNotBroadcast) {
  Builder b;
  Node* x = b.arg("x", int32, PartialShape::unknown());
  Node* zero = b.constant("zero", Array::scalar(std::int32_t{0}));
  MutableFunction f = function(b, {{b.add("TestAdd", "sum", {{x}, {zero}})}});
  EXPECT_TRUE(passes::simplify_arithmetic(f, test_ops()));
  EXPECT_EQ(results(f), "x:0");
}

TEST(Optimize, RepeatsThePassesTillNothingChanges) {
  Builder b;
  Node* x = b.arg("x", float32, {2});
  Node* minus = b.constant("minus", Array::vector<float>({-1, -2}));
  Node* plus = b.constant("plus", Array::vector<float>({1, 2}));
  Node* zero = b.add("TestAdd", "zero", {{minus}, {plus}});
  Node* a = b.add("TestAdd", "a", {{x}, {zero}});
  Node* n1 = b.add("TestNegate", "n1", {{a}});
  Node* n2 = b.add("TestNegate", "n2", {{x}});
  Node* sum = b.add("TestAdd", "sum", {{n1}, {n2}});
  MutableFunction f = function(b, {{sum}});
  const MutableFunction untouched = f.clone();
  AddingEvaluator evaluator;
  optimize(f, test_ops(), evaluator);
  EXPECT_EQ(f.graph.to_string(),
            "x: float[2] = TestArg() {T=float, shape=[2]}\n"
            "n1: float[2] = TestNegate(x)\n"
            "sum: float[2] = TestAdd(n1, n1)\n");
  EXPECT_EQ(untouched.graph.num_nodes(), 8u) << "a clone is its own";
  EXPECT_EQ(results(untouched), "sum:0");
}

}  // namespace
}  // namespace tandem
