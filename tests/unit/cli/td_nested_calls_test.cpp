// Functions of which each calls the next one twice: what td says of them takes no time that doubles
// with each.

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/fs/file_system.h"

#include "tests/unit/cli/td_util.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kCall =
    " attr { key: 'Tin' value { list { type: DT_FLOAT } } }"
    " attr { key: 'Tout' value { list { type: DT_FLOAT } } }";

std::string call(const std::string& name, const std::string& input, int function) {
  return " name: '" + name + "' op: 'PartitionedCall' input: '" + input +
         "' attr { key: 'f' value { func { name: 'F" + std::to_string(function) + "' } } }" + kCall;
}

// F0 calls F1 twice, and so on; the last one negates.
std::string doubling(int functions) {
  std::string text =
      "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }"
      "node {" +
      call("r", "x", 0) + "} library {";
  for (int f = 0; f < functions; ++f) {
    text += "function { signature { name: 'F" + std::to_string(f) +
            "' input_arg { name: 'a' type: DT_FLOAT } output_arg { name: 'o' type: DT_FLOAT } }";
    if (f + 1 < functions) {
      text += "node_def {" + call("c", "a", f + 1) + "} node_def {" +
              call("d", "c:output:0", f + 1) + "} ret { key: 'o' value: 'd:output:0' } }";
    } else {
      text +=
          "node_def { name: 'n' op: 'Neg' input: 'a' attr { key: 'T' value { type: DT_FLOAT } } }"
          "ret { key: 'o' value: 'n:y:0' } }";
    }
  }
  return text + "}";
}

class TdNestedCalls : public TdTest {
 protected:
  void SetUp() override {
    fs::write_file(path("deep.pbtxt"), doubling(60));
    fs::write_file(path("two.json"), R"({"devices": [
        {"name": "CPU:0", "flops": "1G", "bandwidth": "1GB/s"},
        {"name": "GPU:0", "flops": "100G", "bandwidth": "100GB/s", "link": "100GB/s"}]})");
  }
};

TEST_F(TdNestedCalls, AreExplainedAndSimulated) {
  const TdResult explained = run("explain deep.pbtxt --feed x=4");
  EXPECT_EQ(explained.code, 0) << explained.err;
  EXPECT_THAT(explained.out, AllOf(HasSubstr("PartitionedCall"), HasSubstr("function of the")));
  const TdResult simulated = run("simulate deep.pbtxt --feed x=4 --devices two.json");
  EXPECT_EQ(simulated.code, 0) << simulated.err;
  EXPECT_THAT(simulated.out, HasSubstr("a step"));
  EXPECT_EQ(run("graph deep.pbtxt").code, 0);
}

// The work of the calls counts as often as they are made.
TEST_F(TdNestedCalls, CountTheirWork) {
  const auto seconds = [&](int functions) {
    const std::string file = "f" + std::to_string(functions) + ".pbtxt";
    fs::write_file(path(file), doubling(functions));
    const TdResult r = run("explain " + file + " --feed x=1 --json");
    EXPECT_EQ(r.code, 0) << r.err;
    const std::string key = "\"step_seconds\":";
    const std::size_t at = r.out.find(key);
    return at == std::string::npos ? 0.0 : std::stod(r.out.substr(at + key.size()));
  };
  const double once = seconds(32), twice = seconds(33);
  EXPECT_GT(once, 0);
  EXPECT_NEAR(twice / once, 2, 0.2);
}

}  // namespace
}  // namespace tandem
