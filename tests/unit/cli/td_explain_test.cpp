// td explain, as a shell would call it.
#include <filesystem>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"

#include "tests/unit/cli/td_util.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// y = relu(x x) x, with the relu on the CPU; s on strings.
constexpr const char* kGraph = R"(
node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }
       attr { key: 'shape' value { shape { dim { size: -1 } dim { size: 64 } } } } }
node { name: 'layer/product' op: 'MatMul' input: 'x' input: 'x' device: '/GPU:0'
       attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 'layer/relu' op: 'Relu' input: 'layer/product' device: '/CPU:0'
       attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 'y' op: 'MatMul' input: 'layer/relu' input: 'x' device: '/GPU:0'
       attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 's' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } }
node { name: 'words' op: 'Identity' input: 's' attr { key: 'T' value { type: DT_STRING } } }
)";

constexpr const char* kDevices = R"({"devices": [
  {"name": "CPU:0", "flops": "100G", "bandwidth": "20GB/s", "overhead": "1us"},
  {"name": "GPU:0", "flops": "5T", "bandwidth": "300GB/s", "overhead": "5us",
   "link": "10GB/s", "latency": "10us", "memory": "1GiB"}]})";

class TdExplain : public TdTest {
 protected:
  void SetUp() override {
    fs::write_file(path("g.pbtxt"), kGraph);
    fs::write_file(path("devices.json"), kDevices);
  }

  TdResult explain(const std::string& arguments) { return run("explain " + arguments); }
};

TEST_F(TdExplain, PrintsText) {
  const TdResult r = explain("g.pbtxt --devices devices.json --feed x=64,64");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.err, "");
  EXPECT_THAT(r.out, StartsWith("g.pbtxt: "));
  EXPECT_THAT(r.out, AllOf(HasSubstr("expected  "), HasSubstr("back and forth"),
                           HasSubstr("layer/product goes from GPU:0 to CPU:0 for layer/relu"),
                           HasSubstr("asked for /CPU:0"), HasSubstr("16.0 KiB")));
  EXPECT_THAT(explain("g.pbtxt --devices devices.json").out, HasSubstr("unknown size"));
  EXPECT_THAT(explain("g.pbtxt --devices devices.json --rows 2").out, HasSubstr("more"));
}

TEST_F(TdExplain, TakesThisMachinesDevices) {
  const TdResult r = explain("g.pbtxt");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("CPU:0"));
}

TEST_F(TdExplain, PrintsJson) {
  const TdResult r =
      explain("g.pbtxt --devices devices.json --feed x=64,64 --fetch y --policy cost --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto json = nlohmann::json::parse(r.out);
  EXPECT_EQ(json["policy"], "cost");
  EXPECT_EQ(json["ops"].size(), 4u);  // x and what y needs
  EXPECT_EQ(json["devices"].size(), 2u);
  EXPECT_GT(json["step_seconds"].get<double>(), 0);
}

TEST_F(TdExplain, WritesAPageAndDot) {
  const TdResult r = explain("g.pbtxt --devices devices.json --html page.html");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_THAT(fs::read_file(path("page.html")),
              AllOf(StartsWith("<!DOCTYPE html>"), HasSubstr("layer/relu")));
  const TdResult dot = explain("g.pbtxt --devices devices.json --dot");
  EXPECT_THAT(dot.out, AllOf(StartsWith("digraph"), HasSubstr("CPU:0"), HasSubstr("penwidth")));
}

TEST_F(TdExplain, ReportsWrongUsageFromFailure) {
  expect_wrong_usage({"explain", "explain g.pbtxt --feed x", "explain g.pbtxt --feed x=2,a",
                      "explain g.pbtxt --policy best", "explain g.pbtxt --json --dot",
                      "explain g.pbtxt --rows many"});
  const auto fails = [&](const std::string& arguments) {
    return failure_of("explain " + arguments);
  };
  EXPECT_THAT(fails("missing.pb"), HasSubstr("No such file"));
  EXPECT_THAT(fails("g.pbtxt --devices missing.json"), HasSubstr("missing.json"));
  EXPECT_THAT(fails("g.pbtxt --devices g.pbtxt"), Not(HasSubstr("unexpected")));
  EXPECT_THAT(fails("g.pbtxt --costs devices.json"), HasSubstr("devices.json"));
  EXPECT_THAT(fails("g.pbtxt --feed x=64"), HasSubstr("'x' is float[?,64] but is fed float[64]"));
  EXPECT_THAT(fails("g.pbtxt --feed q=2"), HasSubstr("'q'"));
  EXPECT_THAT(fails("g.pbtxt --fetch z"), HasSubstr("'z'"));
  EXPECT_THAT(fails("g.pbtxt --html no/folder/page.html"), HasSubstr("no/folder"));
}

// y = x v, of a variable that init gives its value.
constexpr const char* kTraining = R"(
node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }
       attr { key: 'shape' value { shape { dim { size: -1 } dim { size: 2 } } } } }
node { name: 'v' op: 'VarHandleOp' attr { key: 'dtype' value { type: DT_FLOAT } }
       attr { key: 'shape' value { shape { dim { size: 2 } dim { size: 1 } } } } }
node { name: 'value' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }
       attr { key: 'value' value { tensor { dtype: DT_FLOAT
         tensor_shape { dim { size: 2 } dim { size: 1 } } float_val: 3 } } } }
node { name: 'assign' op: 'AssignVariableOp' input: 'v' input: 'value'
       attr { key: 'dtype' value { type: DT_FLOAT } } }
node { name: 'init' op: 'NoOp' input: '^assign' }
node { name: 'read' op: 'ReadVariableOp' input: 'v'
       attr { key: 'dtype' value { type: DT_FLOAT } } }
node { name: 'y' op: 'MatMul' input: 'x' input: 'read'
       attr { key: 'T' value { type: DT_FLOAT } } }
)";

TEST_F(TdExplain, MeasuresByTheNamesOfTheGraph) {
  const TdResult open = explain("g.pbtxt --measure 2 --fetch y");
  EXPECT_EQ(open.code, 2);
  EXPECT_THAT(open.err, AllOf(HasSubstr("the shape of 'x', which is [?,64]"),
                              HasSubstr("give --feed x=SHAPE.")));
  EXPECT_THAT(failure_of("explain g.pbtxt --measure 2 --fetch nosuch"), HasSubstr("'nosuch'"));
  EXPECT_THAT(failure_of("explain g.pbtxt --measure 2 --fetch y --feed x=100000000000,64"),
              HasSubstr("what is fed would take 25600.0 GB, more than the"));
  const TdResult r = explain("g.pbtxt --measure 2 --fetch y --feed x=64,64");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("measured"));
  EXPECT_THAT(explain("g.pbtxt --measure 2 --fetch layer/product --feed x=64,64").out,
              HasSubstr("costs of 1 op measured"));
}

TEST_F(TdExplain, InitializesWhatItMeasures) {
  fs::write_file(path("training.pbtxt"), kTraining);
  EXPECT_THAT(
      failure_of("explain training.pbtxt --measure 2 --feed x=4,2 --fetch y"),
      AllOf(HasSubstr("run its initializer"), HasSubstr("--init NODE"), HasSubstr("'init'")));
  for (const char* fetch : {"--fetch y", ""}) {
    const TdResult r =
        explain(cat("training.pbtxt --measure 2 --feed x=4,2 --init init --json ", fetch));
    ASSERT_EQ(r.code, 0) << r.err;
    const auto json = nlohmann::json::parse(r.out);
    for (const auto& op : json["ops"]) EXPECT_NE(op["name"], "assign");
  }
  EXPECT_EQ(explain("training.pbtxt --measure 2 --feed x=4,2 --init assign --init init").code, 0);
  EXPECT_THAT(failure_of("explain training.pbtxt --measure 2 --feed x=4,2 --init inot"),
              HasSubstr("Did you mean 'init'"));
  expect_wrong_usage({"explain training.pbtxt --init init"});
}

// A shape that follows from what was not computed: an initializer would not help.
constexpr const char* kSizes = R"(
node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }
       attr { key: 'shape' value { shape { dim { size: 2 } } } } }
node { name: 'relu' op: 'Relu' input: 'x' device: '/GPU:0'
       attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 'sizes' op: 'Cast' input: 'relu'
       attr { key: 'SrcT' value { type: DT_FLOAT } } attr { key: 'DstT' value { type: DT_INT32 } } }
node { name: 'value' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }
       attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 3 } } } }
node { name: 'y' op: 'Fill' input: 'sizes' input: 'value'
       attr { key: 'T' value { type: DT_FLOAT } }
       attr { key: 'index_type' value { type: DT_INT32 } } }
)";

TEST_F(TdExplain, SpeaksOfInitializersWhereThereAreVariables) {
  fs::write_file(path("sizes.pbtxt"), kSizes);
  const TdResult r =
      run("explain sizes.pbtxt --measure 2 --fetch y", "TANDEM_EMULATE=GPU:1,compute=timed ");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.err, AllOf(HasSubstr("not computed"), Not(HasSubstr("--init"))));
}

// Lines may be broken elsewhere.
std::string words(const std::string& text) {
  std::istringstream in(text);
  std::string all;
  for (std::string word; in >> word;) all += (all.empty() ? "" : " ") + word;
  return all;
}

TEST_F(TdExplain, ThePageShowsWhatTheCommandPrints) {
  const std::string page = fs::read_file("docs/explain.md"), begin = "\n    td explain ";
  const std::size_t at = page.find(begin);
  ASSERT_NE(at, std::string::npos);
  const std::size_t command = at + begin.size(), line_end = page.find('\n', command);
  const std::size_t end = page.find("\n\n|", line_end);
  ASSERT_NE(end, std::string::npos);
  std::filesystem::create_directories(path("examples"));
  std::filesystem::create_directory_symlink(std::filesystem::absolute("examples/data"),
                                            path("examples/data"));
  const TdResult r = explain(page.substr(command, line_end - command));
  EXPECT_EQ(r.code, 0) << r.err;
  // What follows has times of the machine at hand (docs/kernel-choice.md).
  const std::string measured = "kernels with several implementations";
  const auto before = [&](const std::string& text) {
    return words(text.substr(0, text.find(measured)));
  };
  EXPECT_EQ(before(r.out), before(page.substr(line_end, end - line_end)));
}

}  // namespace
}  // namespace tandem
