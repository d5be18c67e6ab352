// td run and td graph, as a shell would call them.

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/fs/file_system.h"
#include "tandem/io/npy.h"

#include "tests/unit/cli/td_util.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// v = v + x each step; y = 2 x; words = s.
constexpr const char* kGraph = R"(
node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }
       attr { key: 'shape' value { shape { dim { size: 2 } } } } }
node { name: 'scope/y' op: 'AddV2' input: 'x' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 's' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } }
node { name: 'words' op: 'Identity' input: 's' attr { key: 'T' value { type: DT_STRING } } }
node { name: 'v' op: 'VarHandleOp' attr { key: 'dtype' value { type: DT_FLOAT } }
       attr { key: 'shape' value { shape { dim { size: 2 } } } }
       attr { key: 'shared_name' value { s: 'v' } } }
node { name: 'zero' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }
       attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } } } } }
node { name: 'init' op: 'AssignVariableOp' input: 'v' input: 'zero'
       attr { key: 'dtype' value { type: DT_FLOAT } } }
node { name: 'up' op: 'AssignAddVariableOp' input: 'v' input: 'x'
       attr { key: 'dtype' value { type: DT_FLOAT } } }
node { name: 'now' op: 'ReadVariableOp' input: 'v' input: '^up'
       attr { key: 'dtype' value { type: DT_FLOAT } } }
node { name: 'odd' op: 'MatMull' input: 'x' }
node { name: 'worse' op: 'NoSuchThing' input: 'odd' }
)";

class TdGraph : public TdTest {
 protected:
  void SetUp() override {
    fs::write_file(path("g.pbtxt"), kGraph);
    io::write_npy(path("x.npy"), Array::vector(std::vector<float>{1, 2}));
    fs::write_file(path("s.txt"), "one\n\nthree");
  }
};

TEST_F(TdGraph, RunSavesFetches) {
  const TdResult r = run("run g.pbtxt --feed x=x.npy --fetch scope/y --fetch x:0 --out results");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.err, "");
  EXPECT_EQ(io::read_npy(path("results/scope_y_0.npy")), Array::vector(std::vector<float>{2, 4}));
  EXPECT_EQ(io::read_npy(path("results/x_0.npy")), Array::vector(std::vector<float>{1, 2}));
}

TEST_F(TdGraph, RunGoesOnFromStepToStep) {
  const TdResult r =
      run("run g.pbtxt --feed x:0=x.npy --fetch now --target up --init init --steps 3 --repeat 2 "
          "--threads 1,1 --device CPU:0 --out . --json");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(io::read_npy(path("now_0.npy")),
            Array::from<float>(std::vector<float>{1, 2, 2, 4, 3, 6}, {3, 2}));
  const std::string last = r.out.substr(r.out.rfind('\n', r.out.size() - 2) + 1);
  EXPECT_THAT(last, StartsWith("{\"min_ms\":"));
  EXPECT_THAT(last, AllOf(HasSubstr("\"median_ms\":"), HasSubstr("\"steps\":3"),
                          HasSubstr("\"nodes\":3"), HasSubstr("\"peak_bytes\":")));
}

TEST_F(TdGraph, RunTakesLinesAsStrings) {
  const TdResult r = run("run g.pbtxt --feed s=s.txt --fetch words --out .");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(io::read_npy(path("words_0.npy")),
            Array::vector(std::vector<std::string>{"one", "", "three"}));
  EXPECT_THAT(run("run g.pbtxt --feed s=s.txt --fetch words").out, HasSubstr("words: string[3]"));
}

TEST_F(TdGraph, RunReportsWrongUsageFromFailure) {
  expect_wrong_usage({"run", "run g.pbtxt", "run g.pbtxt --feed x --fetch x",
                      "run g.pbtxt --fetch x --steps 0", "run g.pbtxt --fetch x --threads 1",
                      "run g.pbtxt --fetch x --repeat -1"});
  EXPECT_THAT(run("run g.pbtxt --fetch x --repeat -1").err, HasSubstr("range 0 to 1000000000"));
  const auto fails = [&](const std::string& arguments) { return failure_of("run " + arguments); };
  EXPECT_THAT(fails("missing.pb --fetch x"), HasSubstr("No such file"));
  EXPECT_THAT(fails("x.npy --fetch x"), HasSubstr("is no GraphDef but an array of NumPy"));
  EXPECT_THAT(fails("g.pbtxt --fetch scope/y"), HasSubstr("'x' (float[2])"));
  EXPECT_THAT(fails("g.pbtxt --feed x=x.npy --fetch scope/z"), HasSubstr("Did you mean 'scope/y'"));
  EXPECT_THAT(
      fails("g.pbtxt --feed x=x.npy --fetch now"),
      HasSubstr("in td run: --init NODE runs a node first; 'init' looks like one that does"));
  EXPECT_THAT(fails("g.pbtxt --feed x=x.npy --fetch x --device GPU:7"), HasSubstr("GPU:7"));
  EXPECT_THAT(fails("g.pbtxt --feed x=no.npy --fetch x"),
              StartsWith("td: --feed x=no.npy: no.npy;"));
  EXPECT_THAT(fails("g.pbtxt --feed x=x.npy --fetch x --out x.npy"),
              StartsWith("td: --out x.npy: x.npy"));
  std::filesystem::create_directories(path("saved"));
  EXPECT_THAT(fails("saved --fetch x"), HasSubstr("is a folder"));
  fs::write_file(path("saved/saved_model.pb"), "");
  EXPECT_THAT(fails("saved --fetch x"), HasSubstr("is a SavedModel"));
  fs::write_file(path("saved_model.pb"), std::string("\x08\x01\x12\x02\x0a\x00", 6));
  EXPECT_THAT(fails("saved_model.pb --fetch x"), HasSubstr("is a SavedModel"));
  EXPECT_THAT(fails("/dev/null --fetch x"), HasSubstr("is empty"));
  EXPECT_THAT(fails("g.pbtxt --feed x=x.npy --fetch worse:0"),
              AllOf(HasSubstr("'odd' (MatMull)"), HasSubstr("'worse' (NoSuchThing)")));
}

TEST_F(TdGraph, WhatIsAskedForTwiceIsWrongUsage) {
  expect_wrong_usage({"run g.pbtxt --feed x=x.npy --feed x:0=x.npy --fetch scope/y",
                      "run g.pbtxt --feed x=x.npy --fetch x --fetch x:0 --out .",
                      "run g.pbtxt --feed x=x.npy --fetch scope/y --fetch scope_y"});
  EXPECT_THAT(run("run g.pbtxt --feed x=x.npy --fetch x --fetch x:0 --out .").err,
              AllOf(HasSubstr("x:0 is fetched twice"), HasSubstr("x_0.npy")));
  EXPECT_THAT(run("run g.pbtxt --feed x=x.npy --fetch scope/y --fetch scope_y").err,
              HasSubstr("scope/y:0 and scope_y:0 would both be saved as scope_y_0.npy"));
}

TEST_F(TdGraph, LinesMayEndAsOnWindows) {
  fs::write_file(path("crlf.txt"), "one\r\n\r\nth\rree\r\n");
  EXPECT_EQ(run("run g.pbtxt --feed s=crlf.txt --fetch words --out .").code, 0);
  EXPECT_EQ(io::read_npy(path("words_0.npy")),
            Array::vector(std::vector<std::string>{"one", "", "th\rree"}));
}

TEST_F(TdGraph, OneNodeIsNotCalledNodes) {
  EXPECT_THAT(run("run g.pbtxt --feed x=x.npy --fetch scope/y").out, HasSubstr("\n1 node, "));
  EXPECT_THAT(run("run g.pbtxt --feed x=x.npy --fetch scope/y --json").out,
              HasSubstr("\"peak_bytes\":null"))
      << "small blocks are not counted";
  fs::write_file(path("one.pbtxt"), "node { name: 'n' op: 'NoOp' }");
  EXPECT_THAT(run("graph one.pbtxt").out, HasSubstr("one.pbtxt: 1 node, 0 functions, "));
}

TEST_F(TdGraph, WhatATerminalWouldObeyIsShown) {
  fs::write_file(path("red.pbtxt"), "node { name: 'a\\033[31mb' op: 'NoOp' }");
  const std::string reported = failure_of("graph red.pbtxt");
  EXPECT_THAT(reported, HasSubstr("a\\x1b[31mb"));
  EXPECT_EQ(reported.find('\x1b'), std::string::npos);
}

TEST_F(TdGraph, FilesOfOtherFormatsAreNamed) {
  const auto reported = [&](const std::string& name, std::string_view bytes) {
    fs::write_file(path(name), std::string(bytes));
    return failure_of("graph " + name);
  };
  using std::string_view_literals::operator""sv;
  EXPECT_THAT(reported("a.keras", "PK\x03\x04\x14\0\0\0"sv),
              AllOf(HasSubstr("a model that Keras saved"), HasSubstr("docs/graphs.md")));
  EXPECT_THAT(reported("b", "PK\x03\x04\x14\0\0\0model.weights.h5"sv), HasSubstr("Keras saved"));
  EXPECT_THAT(reported("a.pt", "PK\x03\x04\x14\0\0\0archive/data.pkl"sv), HasSubstr("PyTorch"));
  EXPECT_THAT(reported("a.zip", "PK\x03\x04\x14\0\0\0"sv), HasSubstr("a zip archive"));
  EXPECT_THAT(reported("a.h5", "\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0"sv),
              AllOf(HasSubstr("HDF5"), HasSubstr("docs/saving.md")));
  EXPECT_THAT(reported("a.tflite", "\x1c\0\0\0TFL3\x14\0\x20\0"sv), HasSubstr("TensorFlow Lite"));
  EXPECT_THAT(reported("a.index", "\0\0\x06\x08\x57\xfb\x80\x8b\x24\x75\x47\xdb"sv),
              HasSubstr("a file of a checkpoint"));
  EXPECT_THAT(reported("a.data-00000-of-00001", "\x01\0\0\0"sv),
              HasSubstr("a file of a checkpoint"));
  EXPECT_THAT(reported("onnx", "\x08\x08\x12\x07pytorch\x3a\x02\x0a\0"sv), HasSubstr("ONNX"));
  // What is known of the graph: a list of ops, the first "AddV2"; then a graph without nodes.
  constexpr std::string_view kMeta = "\x0a\x0b\x12\x09\x0a\x07\x0a\x05\x41\x64\x64V2\x12\0"sv;
  for (const char* name : {"a.meta", "meta"})
    EXPECT_THAT(reported(name, kMeta), HasSubstr("MetaGraphDef (.meta)"));
  EXPECT_THAT(reported("text", "saved_model_schema_version: 1\n"sv), HasSubstr("in text form"));
  EXPECT_THAT(reported("damaged.pb", "\x0a\x05\x0a\x09x"sv), HasSubstr("or is damaged"));
}

// The init op of a SavedModel waits for a function that fills a table.
TEST_F(TdGraph, TheInitOpOfASavedModelIsFound) {
  fs::write_file(path("table.pbtxt"), R"(
node { name: 'table' op: 'HashTableV2'
       attr { key: 'key_dtype' value { type: DT_STRING } }
       attr { key: 'value_dtype' value { type: DT_INT64 } }
       attr { key: 'shared_name' value { s: 'table' } } }
node { name: 'keys' op: 'Const' attr { key: 'dtype' value { type: DT_STRING } }
       attr { key: 'value' value { tensor { dtype: DT_STRING tensor_shape { dim { size: 2 } }
       string_val: 'one' string_val: 'three' } } } }
node { name: 'values' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
       attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape { dim { size: 2 } }
       int64_val: 1 int64_val: 3 } } } }
node { name: 'other' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } }
       attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape { } int64_val: -1 } } } }
node { name: 'fill' op: 'StatefulPartitionedCall' input: 'table' input: 'keys' input: 'values'
       attr { key: 'Tin' value { list { type: DT_RESOURCE type: DT_STRING type: DT_INT64 } } }
       attr { key: 'Tout' value { list { type: DT_INT64 } } }
       attr { key: 'f' value { func { name: 'filler' } } } }
node { name: 'start' op: 'NoOp' input: '^fill' }
node { name: 's' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } }
node { name: 'ids' op: 'LookupTableFindV2' input: 'table' input: 's' input: 'other'
       attr { key: 'Tin' value { type: DT_STRING } } attr { key: 'Tout' value { type: DT_INT64 } } }
library { function {
  signature { name: 'filler' input_arg { name: 't' type: DT_RESOURCE }
              input_arg { name: 'k' type: DT_STRING } input_arg { name: 'v' type: DT_INT64 }
              output_arg { name: 'r' type: DT_INT64 } }
  node_def { name: 'import' op: 'LookupTableImportV2' input: 't' input: 'k' input: 'v'
             attr { key: 'Tin' value { type: DT_STRING } }
             attr { key: 'Tout' value { type: DT_INT64 } } }
  node_def { name: 'done' op: 'Identity' input: 'v' input: '^import'
             attr { key: 'T' value { type: DT_INT64 } } }
  ret { key: 'r' value: 'done:output:0' } } }
)");
  EXPECT_THAT(run("graph table.pbtxt").out,
              HasSubstr("initializers, for td run --init:\n  start\nops:"));
  EXPECT_THAT(failure_of("run table.pbtxt --feed s=s.txt --fetch ids"),
              HasSubstr("'start' looks like one that does"));
  EXPECT_EQ(run("run table.pbtxt --feed s=s.txt --fetch ids --init start --out .").code, 0);
  EXPECT_EQ(io::read_npy(path("ids_0.npy")), Array::vector(std::vector<std::int64_t>{1, -1, 3}));
}

// v = 0 at first; then v = 2 v and w = v, which a training step does as well.
TEST_F(TdGraph, UpdatesAndCopiesAreNoInitializers) {
  const auto variable = [](const std::string& name) {
    return "node { name: '" + name + R"(' op: 'VarHandleOp'
       attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { shape { } } }
       attr { key: 'shared_name' value { s: ')" +
           name + "' } } }\n" + "node { name: 'read_" + name + "' op: 'ReadVariableOp' input: '" +
           name + "' attr { key: 'dtype' value { type: DT_FLOAT } } }\n";
  };
  const auto assign = [](const std::string& name, const std::string& to, const std::string& what) {
    return "node { name: '" + name + "' op: 'AssignVariableOp' input: '" + to + "' input: '" +
           what + "' attr { key: 'dtype' value { type: DT_FLOAT } } }\n";
  };
  fs::write_file(path("update.pbtxt"), variable("v") + variable("w") + variable("u") + R"(
node { name: 'zero' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }
       attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { } } } } }
node { name: 'twice' op: 'AddV2' input: 'read_v' input: 'read_v'
       attr { key: 'T' value { type: DT_FLOAT } } }
)" + assign("first", "v", "zero") + assign("update", "v", "twice") +
                                           assign("from_v", "w", "read_v") +
                                           assign("copy", "w", "read_u"));
  EXPECT_THAT(run("graph update.pbtxt").out,
              HasSubstr("initializers, for td run --init:\n  first\n  from_v\nops:"));
}

TEST_F(TdGraph, GraphSummarizes) {
  const TdResult r = run("graph g.pbtxt");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, AllOf(HasSubstr("11 nodes"), HasSubstr("  x  float[2]  Placeholder"),
                           HasSubstr("  scope/y  float[2]  AddV2"), ContainsRegex("Placeholder +2"),
                           HasSubstr("no version: very old, or cut short"),
                           HasSubstr("variables:\n  v  float[2]  VarHandleOp"),
                           HasSubstr("initializers, for td run --init:\n  init\nops:"),
                           HasSubstr("'odd' (MatMull): there is no op 'MatMull' (the nearest is "
                                     "'MatMul')")));
  EXPECT_THAT(run("graph g.pbtxt --json").out,
              AllOf(HasSubstr("\"nearest\": \"MatMul\""), HasSubstr("\"nodes\": 11")));
}

constexpr const char* kProduct = R"(
node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }
       attr { key: 'shape' value { shape { dim { size: -1 } dim { size: 2 } } } } }
node { name: 'w' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }
       attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: 3 } }
       float_val: 1 float_val: 2 float_val: 3 float_val: 4 float_val: 5 float_val: -6 } } } }
node { name: 'b' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }
       attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } }
       float_val: 1 float_val: 1 float_val: 1 } } } }
node { name: 'xw' op: 'MatMul' input: 'x' input: 'w' attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 'xwb' op: 'BiasAdd' input: 'xw' input: 'b' attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 'y' op: 'Relu' input: 'xwb' attr { key: 'T' value { type: DT_FLOAT } } }
)";

TEST_F(TdGraph, GraphShowsWhatRuns) {
  fs::write_file(path("p.pbtxt"), kProduct);
  const TdResult plain = run("graph p.pbtxt"), optimized = run("graph p.pbtxt --optimized");
  EXPECT_THAT(plain.out, AllOf(HasSubstr("Relu"), Not(HasSubstr("_FusedMatMul"))));
  EXPECT_EQ(optimized.code, 0) << optimized.err;
  EXPECT_THAT(optimized.out, AllOf(HasSubstr("_FusedMatMul"), HasSubstr("_PackWeights"),
                                   HasSubstr("x/fed_0  float[?,2]"), Not(HasSubstr("Relu "))));
  EXPECT_THAT(run("graph p.pbtxt --optimized --dot").out, HasSubstr("_FusedMatMul"));
  EXPECT_THAT(run("graph p.pbtxt --optimized --html").out, HasSubstr("_FusedMatMul"));
  EXPECT_THAT(run("graph p.pbtxt --optimized --json").out, HasSubstr("\"_FusedMatMul\": 1"));
  // What cannot run cannot be optimized.
  const TdResult refused = run("graph g.pbtxt --optimized");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("MatMull"));
}

TEST_F(TdGraph, RunLeavesTheGraphAsItIs) {
  fs::write_file(path("p.pbtxt"), kProduct);
  io::write_npy(path("m.npy"), Array::vector<float>({1, 2, -3, 4}).reshape({2, 2}));
  for (const char* option : {"", " --no-optimize"}) {
    const TdResult r = run("run p.pbtxt --feed x=m.npy --fetch y --out . " + std::string(option));
    ASSERT_EQ(r.code, 0) << r.err;
    const Array y = io::read_npy(path("y_0.npy"));
    EXPECT_THAT(y.values<float>(), ::testing::ElementsAre(10, 13, 0, 14, 15, 0));
  }
}

TEST_F(TdGraph, RunKeepsNoMoreThanThereIsMemoryFor) {
  fs::write_file(path("p.pbtxt"), kProduct);
  io::write_npy(path("m.npy"), Array(DType::kFloat, Shape{1000, 2}));
  const std::string run = "run p.pbtxt --feed x=m.npy --repeat 0 --steps 1000000000 ";
  EXPECT_THAT(failure_of(run + "--fetch y"),
              AllOf(HasSubstr("--steps 1000000000: 'y' (float[1000,3]) of all steps would take "
                              "12000.0 GB"),
                    HasSubstr("--repeat")));
}

TEST_F(TdGraph, RunReportsWhereEachNodeGoesIfAsked) {
  fs::write_file(path("p.pbtxt"), kProduct);
  io::write_npy(path("m.npy"), Array::vector<float>({1, 2, -3, 4}).reshape({2, 2}));
  const std::string arguments = "run p.pbtxt --feed x=m.npy --fetch y --out . --no-optimize";
  // The way to the device takes far longer than the work.
  const std::string devices = "TANDEM_EMULATE=GPU:1,memory=8MiB,latency=10ms ";
  const auto count = [](const std::string& text, const std::string& line) {
    int found = 0;
    for (std::size_t at = text.find(line); at != text.npos; at = text.find(line, at + 1)) ++found;
    return found;
  };
  const auto lines = [](const std::string& device) {
    const std::string where = "): /job:localhost/replica:0/task:0/device:" + device + "\n";
    return std::vector<std::string>{"xw: (MatMul" + where, "xwb: (BiasAdd" + where,
                                    "y: (Relu" + where};
  };
  EXPECT_EQ(run(arguments, devices).err, "");
  for (const auto& [policy, device] : {std::pair("greedy", "GPU:0"), std::pair("cost", "CPU:0")}) {
    const TdResult r =
        run(arguments, devices + "TANDEM_LOG_DEVICE_PLACEMENT=1 TANDEM_PLACEMENT=" + policy);
    ASSERT_EQ(r.code, 0) << r.err;
    for (const std::string& line : lines(device)) EXPECT_EQ(count(r.err, line), 1) << r.err;
  }
}

TEST_F(TdGraph, GraphDraws) {
  EXPECT_THAT(
      run("graph g.pbtxt --dot").out,
      AllOf(StartsWith("digraph"), HasSubstr("\"x\" -> \"scope/y\""), HasSubstr("style=dashed")));
  const TdResult html = run("graph g.pbtxt --html");
  EXPECT_EQ(html.code, 0) << html.err;
  EXPECT_THAT(html.out, AllOf(StartsWith("<!DOCTYPE html>"), HasSubstr("scope/y"),
                              Not(HasSubstr("http://")), Not(HasSubstr("src="))));
  EXPECT_EQ(run("graph g.pbtxt --html --dot").code, 2);
}

// A frozen model's weights come through Identity and arithmetic: only the model is drawn.
TEST_F(TdGraph, DrawsNothingThatFollowsFromConstants) {
  const std::string weight = R"(
    node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 2 } } } }
    node { name: "w/Read" op: "Identity" input: "w"
      attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "w/Root" op: "Sqrt" input: "w/Read" attr { key: "T" value { type: DT_FLOAT } } })";
  fs::write_file(path("w.pbtxt"), weight);
  EXPECT_THAT(run("graph w.pbtxt --html").out, HasSubstr("\"w/Root"));
  fs::write_file(path("m.pbtxt"), weight + R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "y" op: "Mul" input: "x" input: "w/Root"
      attr { key: "T" value { type: DT_FLOAT } } })");
  EXPECT_THAT(
      run("graph m.pbtxt --html").out,
      AllOf(HasSubstr("\"x\\nPlaceholder"), HasSubstr("\"y\\nMul"), Not(HasSubstr("\"w/"))));
}

}  // namespace
}  // namespace tandem
