// Graphs that were read and are written again.
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tandem/fs/file_system.h"
#include "tandem/graph/op_registry.h"
#include "tandem/io/graph_export.h"
#include "tandem/runtime/function_calls.h"
#include "tandem/runtime/runtime.h"
#include "tandem/tandem.h"

#include "tests/unit/io/graph_text_util.h"

namespace tandem::io {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const OpRegistration kNowhere{
    {.name = "TestRunsNowhere", .inputs = "x: float", .outputs = "y: float"}};

const std::vector<std::pair<std::string, std::string>> kT{{"T", kFloatType}};

ImportedGraph again(const ImportedGraph& graph, GraphFormat format = GraphFormat::kBinary) {
  ImportOptions options;
  options.format = format;
  options.allow_unsupported = true;
  return import_graph_def(export_graph_def(graph, format).bytes, options);
}

std::vector<std::string> devices(const ImportedGraph& graph) {
  std::vector<std::string> all;
  for (const auto& node : graph.graph->nodes()) all.push_back(node->requested_device());
  return all;
}

// Nodes with all that belongs to them, in order; versions.
void expect_same(const ImportedGraph& a, const ImportedGraph& b) {
  EXPECT_EQ(a.graph->to_string(), b.graph->to_string());
  EXPECT_EQ(devices(a), devices(b));
  EXPECT_EQ(a.producer, b.producer);
  EXPECT_EQ(a.min_consumer, b.min_consumer);
}

std::string constant(const std::string& name, const std::string& type, const std::string& shape,
                     const std::string& value, const std::vector<std::string>& inputs = {}) {
  return node(
      name, "Const", inputs,
      {{"dtype", "type: " + type},
       {"value", "tensor { dtype: " + type + " tensor_shape { " + shape + " } " + value + " }"}});
}

// What can be fetched of a graph, in two steps after `init`, for some values of its placeholders.
std::vector<Array> computed(const std::string& bytes, const std::vector<std::string>& fetches) {
  Runtime runtime;
  const RuntimeScope scope(runtime);
  const GraphSession session(import_graph_def(bytes));
  const Graph& graph = *session.imported().graph;
  std::vector<GraphSession::Feed> feeds;
  for (const auto& node : graph.nodes()) {
    if (node->op().name != "Placeholder") continue;
    std::vector<std::int64_t> sizes;
    for (const std::int64_t size : node->output_shape(0).dims())
      sizes.push_back(size < 0 ? 4 : size);
    const Shape shape(sizes);
    Array value(node->output_dtype(0), shape);
    for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
      if (value.dtype() == DType::kFloat) {
        value.data<float>()[i] = 0.25f * static_cast<float>(i % 7) - 0.5f;
      } else {
        value.data<std::int32_t>()[i] = 5;
      }
    }
    feeds.push_back({node->name(), std::move(value)});
  }
  if (graph.find("init")) session.run({}, {}, {"init"});
  std::vector<Array> values = session.run(feeds, fetches);
  for (Array& value : session.run(feeds, fetches)) values.push_back(std::move(value));
  return values;
}

std::vector<std::string> fetchable(const ImportedGraph& graph) {
  std::vector<std::string> names;
  for (const auto& node : graph.graph->nodes()) {
    for (int i = 0; i < node->num_outputs(); ++i) {
      const DType dtype = node->output_dtype(i);
      if (!is_ref(dtype) && dtype != DType::kResource) names.push_back(cat(node->name(), ":", i));
    }
  }
  return names;
}

TEST(ImportedExport, StoredGraphsComeBackWithEqualValues) {
  const std::pair<const char*, std::vector<std::string>> graphs[] = {
      {"mlp", {}},
      {"functions", {}},
      {"control_flow", {}},
      {"training", {}},
      {"nested_loops", {"total", "gradient"}},  // a value within a loop can't be fetched
      {"references", {"out0", "out1"}},
      {"queues", {"out0", "out2", "out4", "out10", "out12"}}};
  for (const auto& [name, wanted] : graphs) {
    const std::string bytes = fs::read_file(cat("tests/fuzz/corpus/graph_def_fuzz/", name, ".pb"));
    const ImportedGraph graph = import_graph_def(bytes);
    expect_same(graph, again(graph, GraphFormat::kText));
    expect_same(graph, again(graph));
    const std::vector<std::string> fetches = wanted.empty() ? fetchable(graph) : wanted;
    EXPECT_EQ(computed(export_graph_def(graph).bytes, fetches), computed(bytes, fetches)) << name;
  }
}

// while i < limit { x = x * 0.5 + (the mean of a large constant); i += 1 }, and in it
// while j < i { x = x + 1; j += 1 }.
std::string loops() {
  const std::string int_type = "type: DT_INT32";
  const std::vector<std::pair<std::string, std::string>> f{{"T", kFloatType}}, i{{"T", int_type}};
  const auto enter = [](const std::string& name, const std::string& input, const std::string& type,
                        const std::string& frame, bool same = false) {
    return node(name, "Enter", {input},
                {{"T", type},
                 {"frame_name", "s: '" + frame + "'"},
                 {"is_constant", same ? "b: true" : "b: false"}});
  };
  const auto number = [](const std::string& name, const std::string& type, const std::string& value,
                         const std::vector<std::string>& inputs = {}) {
    return constant(name, type, "", value, inputs);
  };
  return placeholder("x", "dim { size: 2 }") +
         node("limit", "Placeholder", {}, {{"dtype", int_type}, {"shape", "shape { }"}}) +
         number("zero", "DT_INT32", "int_val: 0") + enter("enter_i", "zero", int_type, "outer") +
         enter("enter_x", "x", kFloatType, "outer") +
         enter("in_limit", "limit", int_type, "outer", true) +
         node("merge_i", "Merge", {"enter_i", "next_i"}, i) +
         node("merge_x", "Merge", {"enter_x", "next_x"}, f) +
         node("less", "Less", {"merge_i", "in_limit"}, i) + node("go_on", "LoopCond", {"less"}) +
         node("switch_i", "Switch", {"merge_i", "go_on"}, i) +
         node("switch_x", "Switch", {"merge_x", "go_on"}, f) +
         node("i", "Identity", {"switch_i:1"}, i) +
         number("one", "DT_INT32", "int_val: 1", {"^i"}) +
         constant("large", "DT_FLOAT", "dim { size: 600 } dim { size: 600 }", "float_val: 0.5",
                  {"^i"}) +
         constant("axes", "DT_INT32", "dim { size: 2 }", "int_val: 0 int_val: 1", {"^i"}) +
         node("mean", "Mean", {"large", "axes"}, {{"T", kFloatType}, {"Tidx", int_type}}) +
         number("half", "DT_FLOAT", "float_val: 0.5", {"^i"}) +
         node("halved", "Mul", {"switch_x:1", "half"}, f) +
         node("more", "AddV2", {"halved", "mean"}, f) +
         number("inner_zero", "DT_INT32", "int_val: 0", {"^i"}) +
         enter("enter_j", "inner_zero", int_type, "inner") +
         enter("enter_y", "more", kFloatType, "inner") +
         enter("in_i", "i", int_type, "inner", true) +
         node("merge_j", "Merge", {"enter_j", "next_j"}, i) +
         node("merge_y", "Merge", {"enter_y", "next_y"}, f) +
         node("inner_less", "Less", {"merge_j", "in_i"}, i) +
         node("inner_go_on", "LoopCond", {"inner_less"}) +
         node("switch_j", "Switch", {"merge_j", "inner_go_on"}, i) +
         node("switch_y", "Switch", {"merge_y", "inner_go_on"}, f) +
         node("j", "Identity", {"switch_j:1"}, i) +
         number("inner_one", "DT_INT32", "int_val: 1", {"^j"}) +
         number("up", "DT_FLOAT", "float_val: 1", {"^j"}) +
         node("add_j", "AddV2", {"j", "inner_one"}, i) +
         node("add_y", "AddV2", {"switch_y:1", "up"}, f) +
         node("next_j", "NextIteration", {"add_j"}, i) +
         node("next_y", "NextIteration", {"add_y"}, f) + node("out_y", "Exit", {"switch_y"}, f) +
         node("add_i", "AddV2", {"i", "one"}, i) + node("next_i", "NextIteration", {"add_i"}, i) +
         node("next_x", "NextIteration", {"out_y"}, f) + node("out", "Exit", {"switch_x"}, f);
}

TEST(ImportedExport, LoopsOfTensorFlow1GoRoundAsBefore) {
  const ImportedGraph graph = import_text(loops());
  const ExportedGraph exported = export_graph_def(graph);
  EXPECT_THAT(exported.inputs, ElementsAre("x:0", "limit:0"));
  EXPECT_THAT(exported.outputs, ElementsAre());
  expect_same(graph, again(graph));
  float x = 1;
  for (int i = 0; i < 4; ++i) x = x * 0.5f + 0.5f + static_cast<float>(i);
  const std::vector<GraphSession::Feed> feeds{{"x", Array::vector(std::vector<float>{1, 1})},
                                              {"limit", Array::scalar(4)}};
  for (const ImportedGraph& g : {graph, import_graph_def(exported.bytes)})
    EXPECT_EQ(GraphSession(g).run(feeds, {"out"})[0], Array::vector(std::vector<float>{x, x}));
}

// As the body of a function that a traced one calls, within a branch too; and that graph once more.
TEST(ImportedExport, LoopsOfTensorFlow1GoRoundInFunctions) {
  const GraphSession session(import_text(loops()));
  const FunctionRef step = session.prepare({"x", "limit"}, {"out"}).function();
  const auto looped = [&](Tensor x, Tensor n) {
    return call_function(step, std::vector<Tensor>{x, n})[0];
  };
  auto f = function([&](Tensor x, Tensor n) {
    return cond(
        n > 2, [&] { return looped(looped(x, n), n); }, [&] { return looped(x, n); });
  });
  const Tensor x{1.0, -2.0};
  const ExportedGraph called = export_graph_def(f.concrete(x, Tensor(3)));
  const ExportedGraph alone = export_graph_def(step);
  const ExportedGraph twice = export_graph_def(import_graph_def(called.bytes));
  for (const int limit : {2, 3}) {
    const auto run = [&](const ExportedGraph& graph, const std::string& output) {
      return GraphSession(import_graph_def(graph.bytes))
          .run({{graph.inputs.at(0), x.array()}, {graph.inputs.at(1), Array::scalar(limit)}},
               {output})[0];
    };
    const Array once = looped(x, Tensor(limit)).array();
    const Array expected = limit > 2 ? looped(Tensor(once), Tensor(limit)).array() : once;
    EXPECT_EQ(run(alone, alone.outputs.at(0)), once);
    EXPECT_EQ(run(called, called.outputs.at(0)), expected);
    EXPECT_EQ(run(twice, called.outputs.at(0)), expected);
  }
}

TEST(ImportedExport, NamesDevicesControlInputsAndGroupsStay) {
  const ImportedGraph graph = import_text(
      "node { name: 'v' op: 'VariableV2' device: '/job:localhost/device:CPU:0' "
      "attr { key: 'dtype' value { type: DT_FLOAT } } "
      "attr { key: 'shape' value { shape { dim { size: 2 } } } } "
      "attr { key: 'shared_name' value { s: 'weights' } } }\n" +
      constant("first", "DT_FLOAT", "dim { size: 2 }", "float_val: 3") +
      node("a/set", "Assign", {"v", "first"},
           {{"T", kFloatType}, {"_class", "list { s: 'loc:@v' }"}}) +
      node("read", "Identity", {"v"}, {{"T", kFloatType}, {"_class", "list { s: 'loc:@v' }"}}) +
      node("up", "AssignAdd", {"v", "first", "^read"}, kT) + node("init", "NoOp", {"^a/set"}) +
      "versions { producer: 1000 min_consumer: 12 }");
  const ImportedGraph back = again(graph, GraphFormat::kText);
  expect_same(graph, back);
  EXPECT_EQ(back.graph->find("a/set")->attr<std::vector<std::string>>("_class"),
            std::vector<std::string>{"loc:@v"});
  EXPECT_EQ(back.graph->find("v")->requested_device(), "/job:localhost/device:CPU:0");
  EXPECT_EQ(back.producer, 1000);
  const GraphSession session(back);
  session.run({}, {}, {"init"});
  session.run({}, {}, {"up"});
  EXPECT_EQ(session.run({}, {"read"})[0], Array::vector(std::vector<float>{6, 6}));
}

TEST(ImportedExport, AConstantOfOneValueStaysShort) {
  const std::pair<const char*, const char*> values[] = {
      {"DT_FLOAT", "float_val: 1.5"},      {"DT_DOUBLE", "double_val: -2.5"},
      {"DT_HALF", "half_val: 15360"},      {"DT_BFLOAT16", "half_val: 16256"},
      {"DT_INT8", "int_val: -3"},          {"DT_UINT8", "int_val: 200"},
      {"DT_INT16", "int_val: -300"},       {"DT_UINT16", "int_val: 60000"},
      {"DT_INT32", "int_val: -70000"},     {"DT_UINT32", "uint32_val: 4000000000"},
      {"DT_INT64", "int64_val: -5"},       {"DT_UINT64", "uint64_val: 5"},
      {"DT_BOOL", "bool_val: true"},       {"DT_COMPLEX64", "scomplex_val: 1 scomplex_val: -2"},
      {"DT_STRING", "string_val: 'word'"}, {"DT_COMPLEX128", "dcomplex_val: 1 dcomplex_val: 3"}};
  for (const auto& [type, value] : values) {
    const ImportedGraph graph =
        import_text(constant("c", type, "dim { size: 3000 } dim { size: 1000 }", value) +
                    constant("d", type, "", value));
    const std::string bytes = export_graph_def(graph).bytes;
    EXPECT_LT(bytes.size(), 300u) << type;
    const ImportedGraph back = import_graph_def(bytes);
    expect_same(graph, back);
    const auto found = GraphSession(back).run({}, {"c", "d"});
    EXPECT_EQ(found[0].shape(), (Shape{3000, 1000})) << type;
    if (found[0].dtype() == DType::kString) {
      EXPECT_EQ(found[0].values<std::string>()[2'999'999], "word");
    } else {
      EXPECT_EQ(std::memcmp(static_cast<const char*>(found[0].raw_data()) + found[0].num_bytes() -
                                found[1].num_bytes(),
                            found[1].raw_data(), found[1].num_bytes()),
                0)
          << type;
    }
  }
}

// In a function's body: "node" is "node_def" there.
std::string in_function(const std::string& node) { return "node_def" + node.substr(4); }

// A function f of x that returns `value`.
std::string library(const std::string& nodes, const std::string& value) {
  return "library { function { signature { name: 'f' input_arg { name: 'x' type: DT_FLOAT } "
         "output_arg { name: 'y' type: DT_FLOAT } } " +
         nodes + " ret { key: 'y' value: '" + value + "' } } }";
}

TEST(ImportedExport, AConstantOfOneValueStaysShortInAFunction) {
  const std::string int_type = "type: DT_INT32";
  const ImportedGraph graph = import_text(
      placeholder("x", "dim { size: 2 }") + node("call", "f", {"x"}) +
      library(in_function(constant("large", "DT_FLOAT", "dim { size: 600 } dim { size: 600 }",
                                   "float_val: 0.5")) +
                  in_function(
                      constant("axes", "DT_INT32", "dim { size: 2 }", "int_val: 0 int_val: 1")) +
                  in_function(node("mean", "Mean", {"large:output:0", "axes:output:0"},
                                   {{"T", kFloatType}, {"Tidx", int_type}})) +
                  in_function(node("sum", "AddV2", {"x", "mean:output:0"}, kT)),
              "sum:z:0"));
  const std::string bytes = export_graph_def(graph, GraphFormat::kText).bytes;
  EXPECT_LT(bytes.size(), 4000u);
  EXPECT_THAT(bytes,
              AllOf(HasSubstr("\"large\""), Not(HasSubstr("large/")), Not(HasSubstr("Fill"))));
  const ImportedGraph back = again(graph);
  expect_same(back, again(back));
  for (const ImportedGraph& g : {graph, back}) {
    EXPECT_EQ(GraphSession(g).run({{"x", Array::vector(std::vector<float>{1, -1})}}, {"call"})[0],
              Array::vector(std::vector<float>{1.5f, -0.5f}));
  }
}

// A session knows the nodes that a large constant has become, so a step may hand them out.
TEST(ImportedExport, PartsOfAConstantThatAreUsedAreWritten) {
  const GraphSession session(import_text(
      constant("c", "DT_FLOAT", "dim { size: 600 } dim { size: 600 }", "float_val: 0.5")));
  const Tensor x(1.0f);
  for (const FunctionRef& step : {session.prepare({}, {"c", "c/value"}).function(),
                                  session.prepare({}, {"c"}, {"c/value"}).function()}) {
    auto f = function([&](Tensor given) {
      std::vector<Tensor> all = call_function(step, std::vector<Tensor>{});
      all.push_back(given);
      return all;
    });
    for (const ExportedGraph& graph : {export_graph_def(step), export_graph_def(f.concrete(x))}) {
      EXPECT_LT(graph.bytes.size(), 2000u);
      std::vector<GraphSession::Feed> feeds;
      for (const std::string& input : graph.inputs) feeds.push_back({input, x.array()});
      const auto values =
          GraphSession(import_graph_def(graph.bytes)).run(feeds, graph.outputs, graph.targets);
      EXPECT_EQ(values[0].shape(), (Shape{600, 600}));
      EXPECT_EQ(values[0].values<float>().back(), 0.5f);
      if (step->results().size() == 2) {
        EXPECT_EQ(values[1], Array::scalar(0.5f));
      }
    }
  }
}

TEST(ImportedExport, NodesThatCannotRunAreWrittenAsTheyCame) {
  const ImportedGraph graph =
      import_text(placeholder("x") +
                      node("odd", "NoSuchOp", {"x", "x:0", "^later"},
                           {{"T", kFloatType}, {"what", "s: 'this'"}, {"_note", "i: 3"}}) +
                      node("y", "Neg", {"odd:2"}, kT) + node("later", "Relu", {"x"}, kT),
                  true);
  const ImportedGraph back = again(graph, GraphFormat::kText);
  expect_same(graph, back);
  EXPECT_EQ(export_graph_def(graph).bytes, export_graph_def(back).bytes);
  EXPECT_THAT(graph.graph->to_string(), Not(HasSubstr("this")));  // the bytes are no text
  ASSERT_EQ(back.unsupported.size(), 1u);
  EXPECT_EQ(back.unsupported[0].op, "NoSuchOp");
  EXPECT_THAT(export_graph_def(graph, GraphFormat::kText).bytes,
              AllOf(HasSubstr("\"this\""), HasSubstr("_note"), HasSubstr("\"odd:2\"")));
}

// The attributes before the one that is not known here were read by then.
TEST(ImportedExport, AConstantThatCannotRunKeepsItsValue) {
  const ImportedGraph graph =
      import_text(node("c", "Const", {},
                       {{"dtype", "type: DT_INT32"},
                        {"value", "tensor { dtype: DT_INT32 tensor_shape { } int_val: 57 }"},
                        {"zone", "i: 1"}}),
                  true);
  ASSERT_EQ(graph.unsupported.size(), 1u);
  EXPECT_THAT(export_graph_def(graph, GraphFormat::kText).bytes,
              AllOf(HasSubstr("int_val: 57"), HasSubstr("zone")));
}

// What the message says of nodes that cannot run.
std::string refusal(const ImportedGraph& graph) {
  try {
    export_graph_def(graph);
    return "exported";
  } catch (const UnimplementedError& error) {
    return error.what();
  }
}

TEST(ImportedExport, UnknownNodesAreRefusedInFunctions) {
  const ImportedGraph graph =
      import_text(placeholder("x") + node("call", "f", {"x"}) +
                      library(in_function(node("odd", "NoSuchOp", {"x"})), "odd:z:0"),
                  true);
  EXPECT_THAT(refusal(graph), AllOf(HasSubstr("'odd'"), HasSubstr("no op 'NoSuchOp'")));
}

TEST(ImportedExport, UnknownNodesThatNameFunctionsAreRefused) {
  for (const char* named : {"func { name: 'f' }", "list { func { name: 'f' } }"}) {
    const ImportedGraph graph = import_text(
        placeholder("x") + node("odd", "NoSuchOp", {"x"}, {{"of", named}}) + library("", "x"),
        true);
    EXPECT_THAT(refusal(graph), AllOf(HasSubstr("'odd'"), HasSubstr("no op 'NoSuchOp'"),
                                      HasSubstr("names functions")));
  }
}

// What they are is known, unlike what an unknown op's outputs are called.
TEST(ImportedExport, NodesWithoutAKernelAreWrittenInFunctionsToo) {
  const ImportedGraph graph = import_text(
      placeholder("x") + node("alone", "TestRunsNowhere", {"x"}) + node("call", "f", {"x"}) +
          library(in_function(node("inside", "TestRunsNowhere", {"x"})), "inside:y:0"),
      true);
  ASSERT_EQ(graph.unsupported.size(), 2u);
  const ImportedGraph back = again(graph, GraphFormat::kText);
  expect_same(back, again(back));
  ASSERT_EQ(back.unsupported.size(), 2u);
  for (const UnsupportedNode& node : back.unsupported) EXPECT_EQ(node.op, "TestRunsNowhere");
}

TEST(ImportedExport, WhatHoldsNoGraphIsRefused) {
  EXPECT_THROW(export_graph_def(ImportedGraph()), InvalidArgumentError);
  EXPECT_THROW(export_graph_def(FunctionRef()), InvalidArgumentError);
  EXPECT_THROW(export_graph_def(ConcreteFunction()), InvalidArgumentError);
  EXPECT_THROW(GraphSession{ImportedGraph()}, InvalidArgumentError);
}

}  // namespace
}  // namespace tandem::io
