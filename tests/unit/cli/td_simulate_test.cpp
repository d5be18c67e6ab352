// td simulate, as a shell would call it.

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/fs/file_system.h"

namespace {

namespace td = tandem;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Result {
  int code = -1;
  std::string out;
  std::string err;
};

// Two products of 512 x 512 beside each other, and their sum.
constexpr const char* kGraph = R"(
node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }
node { name: 'a' op: 'MatMul' input: 'x' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 'b' op: 'MatMul' input: 'x' input: 'a' attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 'c' op: 'MatMul' input: 'a' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 'sum' op: 'AddV2' input: 'b' input: 'c' attr { key: 'T' value { type: DT_FLOAT } } }
)";

constexpr const char* kDevices = R"({"devices": [
  {"name": "CPU:0", "flops": "1G", "bandwidth": "1GB/s"},
  {"name": "GPU:0", "count": 1000, "flops": "100G", "bandwidth": "100GB/s", "link": "100GB/s",
   "memory": "1GiB"}]})";

class TdSimulate : public ::testing::Test {
 protected:
  void SetUp() override {
    td_ = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "bin/td";
    if (!std::filesystem::exists(td_)) {
      GTEST_SKIP() << td_ << " is not built: this preset has TANDEM_BUILD_TOOLS=OFF";
    }
    folder_ = ::testing::TempDir() + "/td_simulate_test";
    std::filesystem::create_directories(folder_);
    td::fs::write_file(path("g.pbtxt"), kGraph);
    std::string devices = kDevices;
    td::fs::write_file(path("devices.json"), devices);
    devices.replace(devices.find("1GiB"), 4, "1MiB");
    td::fs::write_file(path("small.json"), devices);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  Result run(const std::string& arguments) {
    const std::string command = "cd '" + folder_ + "' && '" + td_.string() + "' simulate " +
                                arguments + " >out.txt 2>err.txt";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, td::fs::read_file(path("out.txt")),
            td::fs::read_file(path("err.txt"))};
  }

  std::filesystem::path td_;
  std::string folder_;
};

TEST_F(TdSimulate, AThousandDevices) {
  const Result r = run("g.pbtxt --devices devices.json --policy cost --feed-shapes x=512,512");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(
      r.out, AllOf(HasSubstr("on 1001 devices, placed by the cost policy"), HasSubstr(" ms a step"),
                   HasSubstr("peak memory"), HasSubstr("devices have nothing to do"),
                   HasSubstr("/job:localhost/replica:0/task:0/device:GPU:0")));
}

TEST_F(TdSimulate, GreedyOnOneDeviceAddsUp) {
  // Three products of 2 * 512^3 operations at 1e11 a second, a sum, and the copy of x.
  const Result r = run("g.pbtxt --devices devices.json --feed-shapes x:0=512,512 --json");
  EXPECT_EQ(r.code, 0) << r.err;
  const std::size_t at = r.out.find("\"step_ms\":");
  ASSERT_NE(at, std::string::npos) << r.out;
  const double products = 3 * 2 * 512.0 * 512 * 512 / 1e11 * 1e3;
  const double step = std::atof(r.out.c_str() + at + 10);
  EXPECT_GT(step, products);
  EXPECT_LT(step, 1.02 * products);
  EXPECT_THAT(r.out, AllOf(HasSubstr("\"copies\":1,\"copied_bytes\":1048576.0"),
                           HasSubstr("\"policy\":\"greedy\""), HasSubstr("\"busy_share\":")));
  // x, two products and a third or the sum in its place do not fit into 1 MiB.
  EXPECT_THAT(run("g.pbtxt --devices small.json --feed-shapes x=512,512").out,
              HasSubstr("more than there is"));
}

TEST_F(TdSimulate, TellsWrongUsageFromFailure) {
  for (const char* arguments : {"", "g.pbtxt", "g.pbtxt --devices devices.json --policy best",
                                "g.pbtxt --devices devices.json --feed-shapes x",
                                "g.pbtxt --devices devices.json --feed-shapes x=1,b"}) {
    const Result r = run(arguments);
    EXPECT_EQ(r.code, 2) << arguments;
    EXPECT_EQ(r.out, "") << arguments;
  }
  const auto fails = [&](const std::string& arguments) {
    const Result r = run(arguments);
    EXPECT_EQ(r.code, 1) << arguments;
    return r.err;
  };
  EXPECT_THAT(fails("g.pbtxt --devices missing.json"), HasSubstr("No such file"));
  EXPECT_THAT(fails("g.pbtxt --devices g.pbtxt"), HasSubstr("g.pbtxt: device set: "));
  EXPECT_THAT(fails("g.pbtxt --devices devices.json --profile devices.json"),
              HasSubstr("no cost profile"));
  EXPECT_THAT(fails("g.pbtxt --devices devices.json --fetch som"), HasSubstr("Did you mean 'sum'"));
}

}  // namespace
