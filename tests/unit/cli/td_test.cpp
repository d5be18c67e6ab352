#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/version.h"
#include "tandem/graph/op_registry.h"
#include "tandem/runtime/runtime.h"

namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Result {
  int code = -1;
  std::string out;
  std::string err;
};

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

// Runs the built program as a shell would.
class Td : public ::testing::Test {
 protected:
  void SetUp() override {
    td_ = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "bin/td";
    if (!std::filesystem::exists(td_)) {
      GTEST_SKIP() << td_ << " is not built: this preset has TANDEM_BUILD_TOOLS=OFF";
    }
  }

  Result run(const std::string& arguments, const std::string& before = "") {
    const std::string out = ::testing::TempDir() + "/td_test.out";
    const std::string err = ::testing::TempDir() + "/td_test.err";
    const std::string command =
        before + " '" + td_.string() + "' " + arguments + " >'" + out + "' 2>'" + err + "'";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(out), read(err)};
  }

  std::filesystem::path td_;
};

TEST_F(Td, PrintsVersionAndHelpOnStdout) {
  for (const char* arguments : {"--version", "ops --version", "devices --version"}) {
    const Result r = run(arguments);
    EXPECT_EQ(r.code, 0);
    EXPECT_EQ(r.out, "tandem " TANDEM_VERSION_STRING "\n");
    EXPECT_EQ(r.err, "");
  }
  for (const char* arguments : {"--help", "-h", "ops --help", "devices -h"}) {
    const Result r = run(arguments);
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
    const Result r = run(arguments);
    EXPECT_EQ(r.code, 2) << arguments;
    EXPECT_EQ(r.out, "") << arguments;
    EXPECT_THAT(r.err, HasSubstr("--help")) << arguments;
  }
  EXPECT_THAT(run("--nonsense").err, HasSubstr("there is no option '--nonsense'"));
}

TEST_F(Td, ListsEveryOpOnALine) {
  const Result r = run("ops");
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.err, "");
  std::istringstream lines(r.out);
  std::string line;
  for (const tandem::OpDef* op : tandem::Runtime::current().ops().all()) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_THAT(line, StartsWith(op->name + "("));
    EXPECT_THAT(line, HasSubstr(") -> ("));
    EXPECT_THAT(line, ContainsRegex("gradient: (yes|no )  [a-z]"));
  }
  EXPECT_FALSE(std::getline(lines, line)) << line;
}

TEST_F(Td, PrintsOneDeclaration) {
  const Result r = run("ops AddV2");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, StartsWith("AddV2(x: T, y: T) -> (z: T)\n  T: type in {"));
  EXPECT_THAT(r.out, HasSubstr("gradient: yes"));
  EXPECT_THAT(r.out, ContainsRegex("kernel: cpu  reference +priority   0  T: "));
}

TEST_F(Td, GivesJsonToPrograms) {
  const Result one = run("ops MatMul --json");
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, StartsWith("{\n  \"name\": \"MatMul\",\n  \"inputs\": ["));
  EXPECT_THAT(one.out, HasSubstr("\"gradient\": true"));
  EXPECT_THAT(one.out, HasSubstr("\"kernel_class\": \"cpu\""));
  EXPECT_THAT(one.out, HasSubstr("\"name\": \"transpose_a\""));
  const Result all = run("ops --json");
  EXPECT_THAT(all.out, StartsWith("[\n  {\n    \"name\": \""));
  const Result devices = run("devices --json");
  EXPECT_THAT(devices.out, HasSubstr("\"name\": \"/job:localhost/replica:0/task:0/device:CPU:0\""));
  EXPECT_THAT(devices.out, ContainsRegex("\"memory_bytes\": [1-9]"));
  EXPECT_THAT(devices.out, HasSubstr("\"from\": \"default\""));
}

TEST_F(Td, SuggestsTheNearestName) {
  const Result r = run("ops matmull");
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.out, "");
  EXPECT_THAT(r.err, HasSubstr("There is no op 'matmull'. Did you mean 'MatMul'?"));
  EXPECT_THAT(run("ops matmul").err, HasSubstr("Did you mean 'MatMul'?"));
  const Result part = run("ops gathern");
  EXPECT_EQ(part.code, 1);
  EXPECT_THAT(part.err, HasSubstr("a part of the names of GatherNd"));
  EXPECT_THAT(run("ops a").err, ContainsRegex(" and [0-9]+ more\\."));
  EXPECT_THAT(run("ops ''").out, StartsWith(run("ops").out.substr(0, 20)));
}

TEST_F(Td, ListsDevices) {
  const Result r = run("devices");
  EXPECT_EQ(r.code, 0);
  EXPECT_THAT(r.out, StartsWith("/job:localhost/replica:0/task:0/device:CPU:0  CPU  memory "));
  EXPECT_THAT(r.out, ContainsRegex("threads [0-9]+ intra-op \\(default\\)"));
}

TEST_F(Td, FailsWhenItsOutputIsLost) {
  const std::string command = "'" + td_.string() + "' ops >/dev/full 2>/dev/null";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
