// Shapes of the results of functions that nodes of a graph of TensorFlow run.

#include <string>
#include <vector>

#include "tests/unit/io/graph_text_util.h"

namespace tandem::io {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<std::pair<std::string, std::string>> kT{{"T", kFloatType}};

std::string as_body(std::string nodes) {
  for (std::size_t at = nodes.find("node {"); at != std::string::npos;
       at = nodes.find("node {", at + 10))
    nodes.replace(at, 6, "node_def {");
  return nodes;
}

// Takes and returns floats; `results` are what the results are named and where they come from.
std::string function(const std::string& name, const std::vector<std::string>& args,
                     const std::string& nodes,
                     const std::vector<std::pair<std::string, std::string>>& results) {
  std::string text = "library { function { signature { name: '" + name + "'";
  for (const std::string& arg : args) text += " input_arg { name: '" + arg + "' type: DT_FLOAT }";
  for (const auto& [result, from] : results)
    text += " output_arg { name: '" + result + "' type: DT_FLOAT }";
  text += " }\n" + as_body(nodes);
  for (const auto& [result, from] : results)
    text += " ret { key: '" + result + "' value: '" + from + "' }";
  return text + " } }\n";
}

std::string floats(int n) {
  std::string list = "list {";
  for (int i = 0; i < n; ++i) list += " type: DT_FLOAT";
  return list + " }";
}

std::string func(const std::string& name) { return "func { name: '" + name + "' }"; }

// Nodes that run functions of one result.
std::string choose(const std::string& then, const std::string& otherwise,
                   const std::string& output_shapes = "") {
  std::vector<std::pair<std::string, std::string>> attrs{{"Tcond", "type: DT_INT32"},
                                                         {"Tin", floats(1)},
                                                         {"Tout", floats(1)},
                                                         {"then_branch", func(then)},
                                                         {"else_branch", func(otherwise)}};
  if (!output_shapes.empty()) attrs.emplace_back("output_shapes", "list { " + output_shapes + " }");
  return ints("which", {1}) + node("chosen", "StatelessIf", {"which", "x"}, attrs);
}

std::string shape_text(const std::string& dims) { return "shape { " + dims + " }"; }

// x + x, [x x] along the first axis, and the sum over all.
std::string library() {
  return function("twice", {"x"}, node("sum", "AddV2", {"x", "x"}, kT), {{"y", "sum:z:0"}}) +
         function("joined", {"x"},
                  node("axis", "Const", {},
                       {{"dtype", "type: DT_INT32"},
                        {"value", "tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 }"}}) +
                      node("join", "ConcatV2", {"x", "x", "axis:output:0"},
                           {{"N", "i: 2"}, {"T", kFloatType}, {"Tidx", "type: DT_INT32"}}),
                  {{"y", "join:output:0"}}) +
         function("rows", {"x"},
                  ints("axis", {1}) + node("sum", "Sum", {"x", "axis:output:0"},
                                           {{"T", kFloatType}, {"Tidx", "type: DT_INT32"}}),
                  {{"y", "sum:output:0"}}) +
         function("same", {"x"}, node("id", "Identity", {"x"}, kT), {{"y", "id:output:0"}});
}

PartialShape shape_of(const std::string& text, const std::string& name, int output = 0) {
  const ImportedGraph g = import_text(text + library());
  return g.graph->find(name)->output_shape(output);
}

const std::string kTwoByThree = "dim { size: 2 } dim { size: 3 }";

TEST(ResultShapes, OfCalls) {
  const std::string x = placeholder("x", kTwoByThree);
  EXPECT_EQ(shape_of(x + node("y", "twice", {"x"}), "y"), (PartialShape{2, 3}));
  EXPECT_EQ(shape_of(x + node("y", "rows", {"x"}), "y"), (PartialShape{2}));
  EXPECT_EQ(shape_of(placeholder("x") + node("y", "rows", {"x"}), "y"), PartialShape::unknown());
  // Each call for itself, and one function in another.
  const std::string nested = function("outer", {"x"}, node("a", "rows", {"x"}), {{"y", "a:y:0"}}) +
                             x + placeholder("z", "dim { size: 5 } dim { size: -1 }") +
                             node("y", "outer", {"x"}) + node("w", "outer", {"z"});
  EXPECT_EQ(shape_of(nested, "y"), (PartialShape{2}));
  EXPECT_EQ(shape_of(nested, "w"), (PartialShape{5}));
}

TEST(ResultShapes, OfBranchesAreWhatTheyAgreeOn) {
  const std::string x = placeholder("x", kTwoByThree);
  EXPECT_EQ(shape_of(x + choose("twice", "same"), "chosen"), (PartialShape{2, 3}));
  EXPECT_EQ(shape_of(x + choose("twice", "rows"), "chosen"), PartialShape::unknown());
  const auto among = [&](const std::string& third) {
    return shape_of(
        x +
            "node { name: 'i' op: 'Placeholder' attr { key: 'dtype' value { type: "
            "DT_INT32 } } }" +
            node(
                "chosen", "StatelessCase", {"i", "x"},
                {{"Tin", floats(1)},
                 {"Tout", floats(1)},
                 {"branches", "list { func { name: 'twice' } func { name: 'same' } func { name: '" +
                                  third + "' } }"}}),
        "chosen");
  };
  EXPECT_EQ(among("same"), (PartialShape{2, 3}));
  EXPECT_EQ(among("rows"), PartialShape::unknown());
}

TEST(ResultShapes, OfABranchThatCannotFitAreThoseOfAnyCall) {
  // A vector has no axis 1, but perhaps the branch is never taken.
  EXPECT_EQ(shape_of(placeholder("x", "dim { size: 7 }") + choose("twice", "rows"), "chosen"),
            PartialShape::unknown());
}

// As in TensorFlow, where a graph whose inputs were resized after it was written runs all the same.
TEST(ResultShapes, ThatTheAttributeDeniesAreThoseOfTheFunctions) {
  const std::string two = shape_text("dim { size: 2 }");
  const std::string three = placeholder("x", "dim { size: 3 }");
  EXPECT_EQ(shape_of(three + choose("twice", "same", two), "chosen"), (PartialShape{3}));
  EXPECT_EQ(shape_of(placeholder("x") + choose("twice", "same", two), "chosen"),
            PartialShape::unknown());
  const std::string shape = node("shape", "Shape", {"chosen"}, kT);
  for (const std::string& x : {three, placeholder("x")}) {
    const GraphSession session(import_text(x + choose("twice", "same", two) + shape + library()));
    const auto results =
        session.run({{"x:0", Array::vector(std::vector<float>{1, 2, 3})}}, {"chosen:0", "shape:0"});
    EXPECT_EQ(results[0], Array::vector<float>({2, 4, 6}));
    EXPECT_EQ(results[1], Array::vector<std::int32_t>({3}));
  }
  expect_refused<InvalidArgumentError>(three + choose("twice", "same", two + " " + two) + library(),
                                       HasSubstr("same length as num outputs (2 vs. 1)"));
}

TEST(ResultShapes, ShowWhereUsersDoNotFit) {
  expect_refused<InvalidArgumentError>(
      placeholder("x", kTwoByThree) + choose("twice", "same") +
          node("product", "MatMul", {"chosen", "x"}, kT) + library(),
      AllOf(HasSubstr("product"), HasSubstr("'chosen' (StatelessIf) float[2,3]"),
            HasSubstr("'x' (Placeholder) float[2,3]")));
}

// A loop over (x, y, z).
std::string loop(const std::string& nodes, const std::string& x, const std::string& y,
                 const std::string& z) {
  return function("body", {"x", "y", "z"}, nodes, {{"a", x}, {"b", y}, {"c", z}}) +
         "library { function { signature { name: 'go_on' input_arg { name: 'x' type: DT_FLOAT } "
         "input_arg { name: 'y' type: DT_FLOAT } input_arg { name: 'z' type: DT_FLOAT } "
         "output_arg { name: 'go' type: DT_BOOL } } " +
         as_body(node("no", "Const", {},
                      {{"dtype", "type: DT_BOOL"},
                       {"value", "tensor { dtype: DT_BOOL tensor_shape { } bool_val: false }"}})) +
         " ret { key: 'go' value: 'no:output:0' } } }\n" +
         node("loop", "StatelessWhile", {"x", "y", "z"},
              {{"T", floats(3)}, {"cond", func("go_on")}, {"body", func("body")}});
}

TEST(ResultShapes, OfLoopsAreWhatEveryIterationKeeps) {
  const std::string inputs = placeholder("x", "dim { size: 2 } dim { size: 3 }") +
                             placeholder("y", "dim { size: 2 }") +
                             placeholder("z", "dim { size: 3 } dim { size: 2 }");
  // x grows along its first axis; y stays; z is replaced by x.
  const std::string growing =
      inputs + loop(node("grow", "joined", {"x"}) + node("keep", "twice", {"y"}) +
                        node("next", "same", {"x"}),
                    "grow:y:0", "keep:y:0", "next:y:0");
  EXPECT_EQ(shape_of(growing, "loop", 0), (PartialShape{-1, 3}));
  EXPECT_EQ(shape_of(growing, "loop", 1), (PartialShape{2}));
  EXPECT_EQ(shape_of(growing, "loop", 2), (PartialShape{-1, -1}));
  // What changes in the second iteration only: y becomes x, z becomes y.
  const std::string shifting =
      inputs + loop(node("a", "same", {"x"}) + node("b", "same", {"y"}), "x", "a:y:0", "b:y:0");
  EXPECT_EQ(shape_of(shifting, "loop", 0), (PartialShape{2, 3}));
  EXPECT_EQ(shape_of(shifting, "loop", 1), PartialShape::unknown());
  EXPECT_EQ(shape_of(shifting, "loop", 2), PartialShape::unknown());
}

TEST(ResultShapes, KnowWhatIntegersAndHandlesOfTheCallHold) {
  const std::string reshaped =
      "library { function { signature { name: 'reshaped' input_arg { name: 'x' type: DT_FLOAT } "
      "input_arg { name: 'to' type: DT_INT32 } output_arg { name: 'y' type: DT_FLOAT } } " +
      as_body(
          node("r", "Reshape", {"x", "to"}, {{"T", kFloatType}, {"Tshape", "type: DT_INT32"}})) +
      " ret { key: 'y' value: 'r:output:0' } } }\n";
  EXPECT_EQ(shape_of(reshaped + placeholder("x") + ints("to", {4, -1}) +
                         node("y", "reshaped", {"x", "to"}),
                     "y"),
            (PartialShape{4, -1}));
  const std::string read =
      "library { function { signature { name: 'read' input_arg { name: 'v' type: DT_RESOURCE } "
      "output_arg { name: 'y' type: DT_FLOAT } is_stateful: true } " +
      as_body(node("r", "ReadVariableOp", {"v"}, {{"dtype", kFloatType}})) +
      " ret { key: 'y' value: 'r:value:0' } } }\n";
  EXPECT_EQ(shape_of(read +
                         node("v", "VarHandleOp", {},
                              {{"dtype", kFloatType}, {"shape", shape_text("dim { size: 6 }")}}) +
                         node("y", "read", {"v"}),
                     "y"),
            (PartialShape{6}));
}

TEST(ResultShapes, AreNotInferredForCallsWithoutEnd) {
  // Each calls the next twice, with arguments that double as well: as many shapes as 2 to the
  // power of the depth.
  std::string text = placeholder("x", "dim { size: 1 }") + node("y", "f0", {"x"});
  for (int i = 0; i < 40; ++i) {
    const std::string next = i == 39 ? "same" : "f" + std::to_string(i + 1);
    text += function("f" + std::to_string(i), {"x"},
                     node("c", next, {"x"}) + node("j", "joined", {"x"}) +
                         node("d", next, {"j:y:0"}) + node("s", "rows", {"d:y:0"}),
                     {{"y", "d:y:0"}});
  }
  EXPECT_NO_THROW(import_text(text + library()));
}

}  // namespace
}  // namespace tandem::io
