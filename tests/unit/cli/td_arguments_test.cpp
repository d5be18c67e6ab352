// What a command line says that no command could do, reported in words that name what to write.

#include <filesystem>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/fs/file_system.h"

#include "tests/unit/cli/td_util.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// y = -x
constexpr const char* kGraph = R"(
node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }
node { name: 'dense/y' op: 'Neg' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }
)";

class TdArguments : public TdTest {
 protected:
  void SetUp() override {
    fs::write_file(path("g.pbtxt"), kGraph);
    fs::write_file(path("devices.json"),
                   R"({"devices": [{"name": "CPU:0", "flops": "1G", "bandwidth": "1GB/s"}]})");
    fs::write_file(path("bad.json"), "{bad");
    std::filesystem::create_directories(path("folder"));
  }

  // The message for wrong usage.
  std::string refusal_of(const std::string& arguments) const {
    const TdResult r = run(arguments);
    EXPECT_EQ(r.code, 2) << arguments;
    EXPECT_EQ(r.out, "") << arguments;
    return r.err;
  }
};

// As `--out "$FOLDER"` gives them where FOLDER is not set.
TEST_F(TdArguments, NoValueIsEmpty) {
  for (const auto& [arguments, option] : {
           std::pair("explain ''", "GRAPH"),
           std::pair("explain g.pbtxt --devices ''", "--devices"),
           std::pair("explain g.pbtxt --costs ''", "--costs"),
           std::pair("explain g.pbtxt --html ''", "--html"),
           std::pair("explain g.pbtxt --policy ''", "--policy"),
           std::pair("explain g.pbtxt --rows ''", "--rows"),
           std::pair("simulate g.pbtxt --devices devices.json --costs ''", "--costs"),
           std::pair("simulate g.pbtxt --devices devices.json --fetch ''", "--fetch"),
           std::pair("run g.pbtxt --fetch dense/y --out ''", "--out"),
           std::pair("run g.pbtxt --fetch dense/y --init ''", "--init"),
           std::pair("run g.pbtxt --fetch dense/y --device ''", "--device"),
           std::pair("run g.pbtxt --fetch dense/y --device=''", "--device"),
           std::pair("run g.pbtxt --fetch dense/y --threads ''", "--threads"),
           std::pair("run g.pbtxt --fetch ''", "--fetch"),
           std::pair("graph ''", "GRAPH"),
           std::pair("ops --json=''", "NAME"),
           std::pair("ops ''", "NAME"),
           std::pair("data-bench ''", "library"),
           std::pair("data-bench x.so --seconds ''", "--seconds"),
       }) {
    EXPECT_THAT(refusal_of(arguments), StartsWith(std::string(option) + ": the value is empty."))
        << arguments;
  }
}

TEST_F(TdArguments, NumbersAreReported) {
  const std::string run = "run g.pbtxt --fetch dense/y ";
  EXPECT_THAT(refusal_of(run + "--steps 1.5"), StartsWith("--steps: '1.5' is no whole number"));
  EXPECT_THAT(refusal_of(run + "--repeat many"), HasSubstr("'many' is no whole number"));
  EXPECT_THAT(refusal_of(run + "--steps 0"), HasSubstr("0 is not in the range 1 to 1000000000"));
  EXPECT_THAT(refusal_of(run + "--steps 99999999999999999999"), HasSubstr("not in the range"));
  EXPECT_THAT(refusal_of("explain g.pbtxt --measure abc"), HasSubstr("'abc' is no whole number"));
  EXPECT_THAT(refusal_of("data-bench x.so --seconds abc"), HasSubstr("'abc' is no number"));
  EXPECT_THAT(refusal_of("data-bench x.so --seconds -1"), HasSubstr("not in the range 0 to 1e9"));
  EXPECT_THAT(refusal_of("data-bench x.so --seconds nan"), HasSubstr("'nan' is no number"));
}

TEST_F(TdArguments, ThreadsAreTwo) {
  const std::string run = "run g.pbtxt --fetch dense/y --threads ";
  for (const char* wrong : {"2", "1,2,3", "1,2,", "1,", ",2", ","})
    EXPECT_THAT(refusal_of(run + wrong), HasSubstr("write INTER,INTRA, such as 1,2")) << wrong;
  EXPECT_THAT(refusal_of(run + "a,b"), HasSubstr("'a' is no whole number"));
  EXPECT_THAT(refusal_of(run + "1,4097"), HasSubstr("4097 is not in the range 1 to 4096"));
  EXPECT_THAT(refusal_of(run + "0,1"), HasSubstr("0 is not in the range 1 to 4096"));
  EXPECT_THAT(this->run("run --help").out, HasSubstr("1 to 4096"));
}

TEST_F(TdArguments, ShapesCouldBe) {
  for (const std::string command : {"explain g.pbtxt", "simulate g.pbtxt --devices devices.json"}) {
    EXPECT_THAT(refusal_of(command + " --feed x=9223372036854775807,4"),
                AllOf(StartsWith("--feed: x=9223372036854775807,4: "),
                      HasSubstr("multiply to more than 2^63 elements; give NAME=SHAPE")));
    EXPECT_THAT(failure_of(command + " --feed x=4611686018427387904"),
                HasSubstr("Tensor 'x' of float[4611686018427387904] would have more than 2^63"));
    EXPECT_THAT(refusal_of(command + " --feed x=2,4,"), HasSubstr("'' is not a size"));
    EXPECT_THAT(refusal_of(command + " --feed x=,2"), HasSubstr("'' is not a size"));
    EXPECT_THAT(refusal_of(command + " --feed x=2,4 --feed x:0=3,4"), HasSubstr("x is fed twice"));
    EXPECT_EQ(run(command + " --feed x=").code, 0) << "a scalar";
    EXPECT_EQ(run(command + " --feed x=?,4").code, 0);
  }
}

TEST_F(TdArguments, FilesAreReportedWithTheirOption) {
  EXPECT_THAT(failure_of("explain g.pbtxt --costs folder"),
              StartsWith("td: --costs: folder; Is a directory"));
  EXPECT_THAT(failure_of("explain g.pbtxt --devices folder"),
              StartsWith("td: --devices: folder; Is a directory"));
  EXPECT_THAT(failure_of("explain g.pbtxt --html folder"), StartsWith("td: --html: folder"));
  for (const char* option : {"--costs", "--devices"}) {
    EXPECT_THAT(failure_of(std::string("explain g.pbtxt ") + option + " bad.json"),
                AllOf(StartsWith(std::string("td: ") + option + ": bad.json: "),
                      HasSubstr("no JSON: parse error at line 1"), Not(HasSubstr("exception"))));
  }
}

TEST_F(TdArguments, NamesThatAreNot) {
  EXPECT_THAT(failure_of("run g.pbtxt --fetch nosuch"),
              AllOf(HasSubstr("The graph has no node 'nosuch'. `td graph FILE` lists"),
                    Not(HasSubstr("Did you mean"))));
  EXPECT_THAT(failure_of("run g.pbtxt --fetch y"), HasSubstr("It is a part of 'dense/y'."));
  EXPECT_THAT(failure_of("run g.pbtxt --target dense/y:0"),
              HasSubstr("'dense/y:0' is a tensor, but a target is a node: write 'dense/y'"));
  EXPECT_THAT(failure_of("ops '*'"), Not(HasSubstr("Did you mean")));
}

}  // namespace
}  // namespace tandem
