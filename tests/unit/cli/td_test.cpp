#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/version.h"
#include "tandem/graph/op_registry.h"
#include "tandem/runtime/runtime.h"

#include "tests/unit/cli/td_util.h"

namespace tandem {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Td = TdTest;

TEST_F(Td, PrintsVersionAndHelpOnStdout) {
  for (const char* arguments : {"--version", "ops --version", "devices --version"}) {
    const TdResult r = run(arguments);
    EXPECT_EQ(r.code, 0);
    EXPECT_EQ(r.out, "tandem " TANDEM_VERSION_STRING "\n");
    EXPECT_EQ(r.err, "");
  }
  for (const char* arguments : {"--help", "-h", "ops --help", "devices -h"}) {
    const TdResult r = run(arguments);
    EXPECT_EQ(r.code, 0) << arguments;
    EXPECT_THAT(r.out, HasSubstr("Usage: td")) << arguments;
    EXPECT_EQ(r.err, "") << arguments;
  }
  const std::string help = run("--help").out;
  EXPECT_THAT(help, HasSubstr("ops"));
  EXPECT_THAT(help, HasSubstr("devices"));
}

TEST_F(Td, ExitsWith2OnWrongUsage) {
  for (const char* arguments : {"", "nonsense", "--nonsense", "ops --nonsense", "ops A B",
                                "devices extra", "devices --json=maybe"}) {
    const TdResult r = run(arguments);
    EXPECT_EQ(r.code, 2) << arguments;
    EXPECT_EQ(r.out, "") << arguments;
    EXPECT_THAT(r.err, HasSubstr("--help")) << arguments;
  }
  EXPECT_THAT(run("--nonsense").err, HasSubstr("there is no option '--nonsense'"));
}

// Before anything is read: the files need not be there.
TEST_F(Td, FeedsEachTensorOnce) {
  for (const char* twice : {"run g.pb --fetch y --feed x=a.npy --feed x=b.npy",
                            "run g.pb --fetch y --feed x=a.npy --feed x:0=b.npy"}) {
    const TdResult r = run(twice);
    EXPECT_EQ(r.code, 2) << twice;
    EXPECT_THAT(r.err, HasSubstr("--feed: x is fed twice"));
  }
  EXPECT_EQ(run("run g.pb --fetch y --feed x=a.npy --feed x:1=b.npy").code, 1);
}

TEST_F(Td, ListsEveryOpOnALine) {
  const TdResult r = run("ops");
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.err, "");
  std::istringstream lines(r.out);
  std::string line;
  for (const OpDef* op : Runtime::current().ops().all()) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_THAT(line, StartsWith(op->name + "("));
    EXPECT_THAT(line, HasSubstr(") -> ("));
    EXPECT_THAT(line, ContainsRegex("gradient: (yes|no )  [*a-z]"));
  }
  EXPECT_FALSE(std::getline(lines, line)) << line;
}

TEST_F(Td, PrintsOneDeclaration) {
  const TdResult r = run("ops AddV2");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, StartsWith("AddV2(x: T, y: T) -> (z: T)\n  T: type in {"));
  EXPECT_THAT(r.out, HasSubstr("gradient: yes"));
  EXPECT_THAT(r.out, ContainsRegex("kernel: cpu  reference +priority   0  T: "));
}

TEST_F(Td, GivesJsonToPrograms) {
  const TdResult one = run("ops MatMul --json");
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, StartsWith("{\n  \"name\": \"MatMul\",\n  \"inputs\": ["));
  EXPECT_THAT(one.out, HasSubstr("\"gradient\": true"));
  EXPECT_THAT(one.out, HasSubstr("\"kernel_class\": \"cpu\""));
  EXPECT_THAT(one.out, HasSubstr("\"name\": \"transpose_a\""));
  const TdResult all = run("ops --json");
  EXPECT_THAT(all.out, StartsWith("[\n  {\n    \"name\": \""));
  const TdResult devices = run("devices --json");
  EXPECT_THAT(devices.out, HasSubstr("\"name\": \"/job:localhost/replica:0/task:0/device:CPU:0\""));
  EXPECT_THAT(devices.out, ContainsRegex("\"memory_bytes\": [1-9]"));
  EXPECT_THAT(devices.out, HasSubstr("\"from\": \"default\""));
}

TEST_F(Td, SuggestsTheNearestName) {
  const TdResult r = run("ops matmull");
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.out, "");
  EXPECT_THAT(r.err, HasSubstr("There is no op 'matmull'. Did you mean 'MatMul'?"));
  EXPECT_THAT(run("ops matmul").err, HasSubstr("Did you mean 'MatMul'?"));
  const TdResult part = run("ops gathern");
  EXPECT_EQ(part.code, 1);
  EXPECT_THAT(part.err, HasSubstr("a part of the names of GatherNd"));
  EXPECT_THAT(run("ops a").err, ContainsRegex(" and [0-9]+ more\\."));
}

TEST_F(Td, ListsDevices) {
  const TdResult r = run("devices");
  EXPECT_EQ(r.code, 0);
  EXPECT_THAT(r.out, StartsWith("/job:localhost/replica:0/task:0/device:CPU:0  CPU  memory "));
  EXPECT_THAT(r.out, ContainsRegex("threads [0-9]+ intra-op \\(default\\)"));
}

TEST_F(Td, FailsWhenItsOutputIsLost) { EXPECT_EQ(run_into("/dev/full", "ops").code, 1); }

}  // namespace
}  // namespace tandem
