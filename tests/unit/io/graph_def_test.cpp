#include "tandem/io/graph_def.h"

#include <string>
#include <vector>

#include "tests/unit/io/graph_text_util.h"

namespace tandem::io {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::pair<std::string, std::string>> kT{{"T", kFloatType}};

TEST(GraphDef, KeepsNamesShapesAndOrderOfInputs) {
  const ImportedGraph g =
      import_text(node("sum", "AddV2", {"x", "twice:0"}, kT) +  // users may stand before producers
                  node("twice", "Mul", {"x", "x", "^x"}, kT) +
                  placeholder("x", "dim { size: -1 } dim { size: 3 }") +
                  "versions { producer: 7 min_consumer: 3 }");
  ASSERT_EQ(g.graph->num_nodes(), 3u);
  EXPECT_EQ(g.producer, 7);
  EXPECT_EQ(g.min_consumer, 3);
  const Node* sum = g.graph->find("sum");
  EXPECT_EQ(sum->inputs()[1].node, g.graph->find("twice"));
  EXPECT_EQ(sum->output_shape(0), (PartialShape{-1, 3}));
  EXPECT_THAT(g.graph->find("twice")->control_inputs(), ElementsAre(g.graph->find("x")));
}

TEST(GraphDef, ListsEveryNodeThatCannotRun) {
  const std::string text = placeholder("x") + node("a", "MatMull", {"x"}, kT) +
                           node("b", "Relu", {"a"}, kT) +
                           node("c", "Relu", {"x"}, {{"T", kFloatType}, {"speed", "i: 3"}}) +
                           node("d", "Relu", {"x"}, {{"T", "type: DT_FLOAT4_E2M1FN"}}) +
                           node("e", "Relu", {"x"}, {{"T", "type: DT_STRING"}});
  expect_refused<UnimplementedError>(
      text, AllOf(HasSubstr("cannot run 4 nodes"),
                  HasSubstr("'a' (MatMull): there is no op 'MatMull' (the nearest is 'MatMul')"),
                  HasSubstr("'c' (Relu): op 'Relu' has no attribute 'speed'"),
                  HasSubstr("'d' (Relu): attribute 'T': there are no values of dtype"),
                  HasSubstr("'e' (Relu): attribute 'T': dtype string is not supported")));
  const ImportedGraph g = import_text(text, true);
  ASSERT_EQ(g.unsupported.size(), 4u);
  EXPECT_EQ(g.unsupported[0].nearest, "MatMul");
  // Users of a node that cannot run say what its outputs are.
  EXPECT_EQ(g.graph->find("a")->output_dtype(0), DType::kFloat);
}

TEST(GraphDef, SaysWhichDatasetsAreNotSupported) {
  for (const std::string op : {"SqlDataset", "OneShotIterator"}) {
    expect_refused<UnimplementedError>(
        node("a", op),
        HasSubstr("'a' (" + op + "): there is no op '" + op +
                  "'; of tf.data's ops not all are there (docs/ops.md): feed what this one gives"));
  }
}

TEST(GraphDef, ReportsOfAllThatIsWrongAtOnce) {
  const std::string seven = "dim { size: 7 }";
  const std::string text =
      placeholder("x", "dim { size: 2 }") + placeholder("y", "dim { size: 3 }") +
      placeholder("z", seven) + node("a", "Foo", {"x"}) +
      node("lost", "Relu", {"nowhere"}, {{"T", kFloatType}}) +
      node("kind", "Relu", {"x"}, {{"T", "i: 1"}}) + node("not a name", "NoOp") +
      node("x", "NoOp") + node("sum", "AddV2", {"x", "y"}, {{"T", kFloatType}}) +
      node("after", "AddV2", {"sum", "z"}, {{"T", kFloatType}}) +
      node("last", "AddV2", {"after", "y"}, {{"T", kFloatType}}) +
      node("far", "Relu", {"x:3"}, {{"T", kFloatType}}) +
      node("other", "Mul", {"z", "y"}, {{"T", kFloatType}}) + node("b", "Bar", {"other", "far"});
  expect_refused<InvalidArgumentError>(
      text, AllOf(HasSubstr("7 things are wrong in the graph:\n"),
                  HasSubstr("In node 'lost': its input 'nowhere'"),
                  HasSubstr("In node 'kind' (Relu): attribute 'T'"),
                  HasSubstr("In node 'not a name' (NoOp): Node name contains"),
                  HasSubstr("In node 'x' (NoOp): there is another node of that name"),
                  HasSubstr("node 'x' (Placeholder) has 1 outputs, but 'far' uses output 3")));
  expect_refused<InvalidArgumentError>(
      text,
      AllOf(HasSubstr("{{node sum}}"), HasSubstr("'x' (Placeholder) float[2], 'y' (Placeholder)"),
            HasSubstr("{{node other}}"), HasSubstr("'z' (Placeholder) float[7], 'y' (Placeholder)"),
            HasSubstr("Besides, this build cannot run 2 nodes:"), HasSubstr("'a' (Foo)"),
            HasSubstr("'b' (Bar)"), Not(HasSubstr("node after")), Not(HasSubstr("node last"))));
}

TEST(GraphDef, OfManyThingsTheFirstAreShown) {
  std::string text = placeholder("x", "dim { size: 2 }") + placeholder("y", "dim { size: 3 }");
  for (int i = 0; i < 50; ++i) {
    text += node("sum" + std::to_string(i), "AddV2", {"x", "y"}, {{"T", kFloatType}});
    text += node("call" + std::to_string(i), "PartitionedCall", {"x"},
                 {{"f", "func { name: 'missing' }"}});
  }
  expect_refused<InvalidArgumentError>(
      text, AllOf(HasSubstr("100 things are wrong"), HasSubstr("'call19'"),
                  Not(HasSubstr("'call20'")), HasSubstr("\n  and 80 more")));
}

TEST(GraphDef, ReportsOfAllThatIsWrongInFunctions) {
  const std::string relu = "attr { key: 'T' value { type: DT_FLOAT } }";
  const std::string body =
      "library { function { signature { name: 'f' input_arg { name: 'x' type: DT_FLOAT }"
      " output_arg { name: 'y' type: DT_FLOAT } }"
      " node_def { name: 'a' op: 'Relu' input: 'nothing' " +
      relu +
      " }"
      " node_def { name: 'b' op: 'Foo' input: 'a:activations:0' }"
      " node_def { name: 'c' op: 'Relu' input: 'x:0:9' " +
      relu +
      " }"
      " ret { key: 'y' value: 'c:activations:0' } } }\n";
  expect_refused<InvalidArgumentError>(
      body + placeholder("x") + node("one", "f", {"x"}) + node("two", "f", {"one"}) +
          node("three", "Relu", {"gone"}, {{"T", kFloatType}}),
      AllOf(HasSubstr("3 things are wrong"),
            HasSubstr("In node 'a' of function 'f': its input 'nothing'"),
            HasSubstr("In node 'c' of function 'f': its input 'x:0:9'"),
            HasSubstr("In node 'three'"), HasSubstr("'b' (Foo) of function 'f'")));
}

// A node that is wrong itself does not say how many outputs it would have.
TEST(GraphDef, NoOutputIsBeyondCounting) {
  const std::string lost = node("a", "Neg", {"missing"}, {{"T", kFloatType}});
  const std::string sound = placeholder("a");
  for (const std::string& first : {lost, sound}) {
    for (const char* index : {"2147483646", "2147483647", "2147483648"}) {
      expect_refused<InvalidArgumentError>(
          first + node("b", "Neg", {cat("a:", index)}, {{"T", kFloatType}}),
          AnyOf(HasSubstr("'b'"), HasSubstr("announce more than 1048576 outputs")));
    }
  }
}

TEST(GraphDef, NamesAreThoseThatTensorFlowTakes) {
  for (const char* name : {"a b!", "_x", "-a", "/a", ">a", "a>", "a>/b", "a>>b", "a\u00e9"}) {
    expect_refused<InvalidArgumentError>(
        node(name, "NoOp", {}),
        AllOf(HasSubstr(name), HasSubstr("Node name contains invalid characters")));
  }
  for (const char* name : {"a", "7", ".a", "a-b", "a/b_c.d", "a>b", "a>.b"})
    EXPECT_NO_THROW(import_text(node(name, "NoOp", {}))) << name;
}

TEST(GraphDef, NotesOfTensorFlowAreNoAttributes) {
  EXPECT_NO_THROW(import_text(
      placeholder("x") +
      node("y", "Relu", {"x"}, {{"T", kFloatType}, {"_output_shapes", "list { i: 1 }"}})));
}

TEST(GraphDef, KeepsColocationGroups) {
  const ImportedGraph graph = import_text(
      placeholder("x") +
      node("y", "Relu", {"x"}, {{"T", kFloatType}, {"_class", "list { s: 'loc:@x' s: 'other' }"}}));
  EXPECT_EQ(graph.graph->find("y")->attr<std::vector<std::string>>("_class"),
            (std::vector<std::string>{"loc:@x", "other"}));
  EXPECT_EQ(graph.graph->find("x")->attrs().find("_class"), nullptr);
}

TEST(GraphDef, RefusesVersionsItDoesNotKnow) {
  expect_refused<UnimplementedError>("versions { min_consumer: 999999 }", HasSubstr("999999"));
  expect_refused<UnimplementedError>(
      "versions { bad_consumers: " + std::to_string(kGraphDefVersion) + " }", HasSubstr("version"));
  expect_refused<InvalidArgumentError>("versions { producer: -1 }", HasSubstr("negative"));
}

TEST(GraphDef, NamesBothNodesWhereShapesDoNotFit) {
  expect_refused<InvalidArgumentError>(
      placeholder("left", "dim { size: 2 } dim { size: 3 }") +
          placeholder("right", "dim { size: 4 } dim { size: 5 }") +
          node("product", "MatMul", {"left", "right"}, kT),
      AllOf(HasSubstr("product"), HasSubstr("'left' (Placeholder) float[2,3]"),
            HasSubstr("'right' (Placeholder) float[4,5]")));
}

TEST(GraphDef, NamesBothNodesWhereDtypesDoNotFit) {
  expect_refused<InvalidArgumentError>(
      placeholder("x") + ints("n", {1}) + node("sum", "AddV2", {"x", "n"}, kT),
      AllOf(HasSubstr("sum"), HasSubstr("'x'"), HasSubstr("'n' (Const) int32[1]")));
}

TEST(GraphDef, ReadsConstantsOfAllForms) {
  const auto constant = [](const std::string& type, const std::string& shape,
                           const std::string& values) {
    const ImportedGraph g =
        import_text(node("c", "Const", {},
                         {{"dtype", "type: " + type},
                          {"value", "tensor { dtype: " + type + " tensor_shape { " + shape + " } " +
                                        values + " }"}}));
    return *g.graph->find("c")->attr<std::shared_ptr<const Array>>("value");
  };
  const std::string three = "dim { size: 3 }";
  const auto vector = [](auto... v) {
    return Array::vector(std::vector<std::common_type_t<decltype(v)...>>{v...});
  };
  EXPECT_EQ(constant("DT_FLOAT", three, "float_val: [1, 2.5, -3e0]"), vector(1.0f, 2.5f, -3.0f));
  EXPECT_EQ(constant("DT_FLOAT", three, "float_val: 7"), vector(7.0f, 7.0f, 7.0f));
  EXPECT_EQ(constant("DT_FLOAT", three, "float_val: 7 float_val: 8"), vector(7.0f, 8.0f, 8.0f));
  EXPECT_EQ(constant("DT_FLOAT", three, ""), vector(0.0f, 0.0f, 0.0f));
  EXPECT_EQ(constant("DT_INT64", "", "int64_val: -0x10"), Array::scalar<std::int64_t>(-16));
  EXPECT_EQ(constant("DT_UINT8", three, "int_val: [1, 2, 255]"),
            Array::vector(std::vector<std::uint8_t>{1, 2, 255}));
  EXPECT_EQ(constant("DT_HALF", "", "half_val: 0x3c00"), Array::scalar(Half(1.0f)));
  EXPECT_EQ(constant("DT_BFLOAT16", "", "half_val: 0x3f80"), Array::scalar(BFloat16(1.0f)));
  EXPECT_EQ(constant("DT_COMPLEX64", "", "scomplex_val: [1, 2]"),
            Array::scalar(std::complex<float>(1, 2)));
  EXPECT_EQ(
      constant("DT_STRING", "dim { size: 2 }", "string_val: 'a\\x00' \"b\""),
      Array::vector(std::vector<std::string>{std::string("a\0b", 3), std::string("a\0b", 3)}));
  EXPECT_EQ(constant("DT_STRING", "dim { size: 2 }", "tensor_content: '\\001\\002abc'"),
            Array::vector(std::vector<std::string>{"a", "bc"}));
  EXPECT_EQ(constant("DT_INT16", "dim { size: 2 }", "tensor_content: '\\001\\000\\377\\377'"),
            Array::vector(std::vector<std::int16_t>{1, -1}));
  EXPECT_EQ(constant("DT_BOOL", "dim { size: 2 }", "tensor_content: '\\000\\007'"),
            Array::from<bool>(std::initializer_list<bool>{false, true}, {2}));
}

TEST(GraphDef, OneValueRepeatedTakesNoMemoryUntilItRuns) {
  const ImportedGraph g = import_text(
      node("c", "Const", {},
           {{"dtype", kFloatType},
            {"value",
             "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1000 } dim { size: 1000 "
             "} } float_val: 2 }"}}));
  EXPECT_EQ(g.graph->find("c")->op().name, "Fill");
  EXPECT_EQ(g.graph->find("c")->output_shape(0), (PartialShape{1000, 1000}));
  const auto values = GraphSession(g).run({}, {"c"});
  EXPECT_EQ(values[0].values<float>()[999'999], 2.0f);
}

constexpr const char* kTwice = R"(library { function {
  signature { name: 'twice' input_arg { name: 'x' type: DT_FLOAT }
              output_arg { name: 'y' type: DT_FLOAT } output_arg { name: 'same' type: DT_FLOAT } }
  node_def { name: 'parts' op: 'IdentityN' input: 'x' input: 'x'
             attr { key: 'T' value { list { type: DT_FLOAT type: DT_FLOAT } } } }
  node_def { name: 'sum' op: 'AddV2' input: 'parts:output:0' input: 'parts:output:1'
             attr { key: 'T' value { type: DT_FLOAT } } }
  ret { key: 'y' value: 'sum:z:0' } ret { key: 'same' value: 'x' } } })";

TEST(GraphDef, CallsFunctionsOfTheLibrary) {
  const std::string tin = "list { type: DT_FLOAT }",
                    tout = "list { type: DT_FLOAT type: DT_FLOAT }";
  const ImportedGraph g =
      import_text(placeholder("x") +
                  node("call", "PartitionedCall", {"x"},
                       {{"Tin", tin}, {"Tout", tout}, {"f", "func { name: 'twice' }"}}) +
                  node("old", "twice", {"call:1"}) + kTwice);
  ASSERT_EQ(g.functions.size(), 1u);
  ASSERT_EQ(g.library.size(), 1u);
  EXPECT_THAT(g.library[0].args, ElementsAre("x: float"));
  EXPECT_THAT(g.library[0].ops, ElementsAre("IdentityN", "AddV2"));
  const auto values =
      GraphSession(g).run({{"x", Array::scalar(3.0f)}}, {"call", "call:1", "old", "old:1"});
  EXPECT_EQ(values[0], Array::scalar(6.0f));
  EXPECT_EQ(values[1], Array::scalar(3.0f));
  EXPECT_EQ(values[2], Array::scalar(6.0f));
}

TEST(GraphDef, FunctionsAreMadeForTheAttributesOfTheCall) {
  const std::string library = R"(library { function {
    signature { name: 'same' input_arg { name: 'x' type_attr: 'T' }
                output_arg { name: 'y' type_attr: 'T' } attr { name: 'T' type: 'type' } }
    node_def { name: 'i' op: 'Identity' input: 'x' attr { key: 'T' value { placeholder: 'T' } } }
    ret { key: 'y' value: 'i:output:0' } } })";
  const ImportedGraph g =
      import_text(placeholder("x") + ints("n", {5}) + node("f", "same", {"x"}, kT) +
                  node("i", "same", {"n"}, {{"T", "type: DT_INT32"}}) + library);
  EXPECT_EQ(g.functions.size(), 2u);
  EXPECT_EQ(g.graph->find("i")->output_dtype(0), DType::kInt32);
}

TEST(GraphDef, NamesTheFunctionOfANodeThatCannotRun) {
  const std::string library = R"(library { function {
    signature { name: 'f' input_arg { name: 'x' type: DT_FLOAT }
                output_arg { name: 'y' type: DT_INT32 } }
    node_def { name: 'inside' op: 'NoSuchOp' input: 'x' }
    ret { key: 'y' value: 'inside:whatever:0' } } })";
  expect_refused<UnimplementedError>(placeholder("x") + node("call", "f", {"x"}) + library,
                                     HasSubstr("'inside' (NoSuchOp) of function 'f'"));
}

}  // namespace
}  // namespace tandem::io
