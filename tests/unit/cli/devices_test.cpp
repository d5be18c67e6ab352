// td devices, as a shell would call it.

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/fs/file_system.h"

#include "tests/unit/cli/td_util.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

class TdDevices : public TdTest {
 protected:
  // The devices under these environment variables, written as a shell would take them.
  TdResult devices(const std::string& environment, const std::string& options = "") {
    return run("devices " + options, environment);
  }
};

TEST_F(TdDevices, ReportsOfTheCpuAndTheDefaults) {
  const TdResult r = devices("CUDA_VISIBLE_DEVICES=-1");
  EXPECT_EQ(r.code, 0) << r.err;
  ASSERT_THAT(r.lines_with("/device:CPU:0"), SizeIs(1));
  EXPECT_THAT(r.lines_with("/device:CPU:0")[0],
              AllOf(StartsWith("/job:localhost/replica:0/task:0/device:CPU:0  CPU  memory "),
                    ContainsRegex("threads [0-9]+ intra-op \\(default\\)"), HasSubstr("on CPU:0")));
  ASSERT_THAT(r.lines_with("/physical_device:"), SizeIs(1));
  EXPECT_THAT(r.lines_with("/physical_device:")[0],
              AllOf(HasSubstr("CPU"), HasSubstr("visible (default)")));
  EXPECT_THAT(r.lines_with("cuda: "), SizeIs(1)) << "why there is none";
  EXPECT_THAT(r.out, HasSubstr("soft placement on (default)"));
  EXPECT_THAT(r.out, HasSubstr("placement greedy (default)"));
  EXPECT_THAT(r.out, Not(HasSubstr("emulated")));
}

TEST_F(TdDevices, ReportsOfVariablesThatNothingReads) {
  const TdResult r = devices("TANDEM_EMULATED=GPU:1 TANDEM_SKY=blue");
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  EXPECT_THAT(r.err, AllOf(HasSubstr("TANDEM_EMULATED (did you mean TANDEM_EMULATE?)"),
                           HasSubstr("TANDEM_SKY")));
  EXPECT_THAT(r.out, HasSubstr("TANDEM_EMULATED unknown (did you mean TANDEM_EMULATE?)"));
  EXPECT_EQ(devices("TANDEM_EMULATED=GPU:1 TANDEM_LOG_LEVEL=2").err, "");
}

TEST_F(TdDevices, ReportsWhereEachSettingCameFrom) {
  const TdResult r = devices(
      "TANDEM_EMULATE='GPU:2,memory=1GiB; NPU:1,memory=256MiB' "
      "TANDEM_LOGICAL_DEVICES='GPU:1=300,200;CPU:0=2' TANDEM_VISIBLE_DEVICES=GPU:1,NPU:0 "
      "TANDEM_MEMORY_LIMIT_MB='NPU:0=64' TANDEM_MEMORY_GROWTH=1 TANDEM_SOFT_PLACEMENT=0 "
      "TANDEM_LOG_DEVICE_PLACEMENT=1 TANDEM_PLACEMENT=cost CUDA_VISIBLE_DEVICES=3");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.lines_with("/device:"), SizeIs(5)) << r.out;
  EXPECT_THAT(r.lines_with("/physical_device:"), SizeIs(4));
  ASSERT_THAT(r.lines_with("/device:GPU:0"), SizeIs(1));
  EXPECT_THAT(r.lines_with("/device:GPU:0")[0],
              AllOf(HasSubstr("memory 300 MiB (environment TANDEM_LOGICAL_DEVICES)"),
                    HasSubstr("memory growth on (environment TANDEM_MEMORY_GROWTH)"),
                    HasSubstr("on GPU:1"), HasSubstr("emulated")));
  EXPECT_THAT(r.out, ContainsRegex("/device:NPU:0  NPU  memory 64 MiB \\(environment "
                                   "TANDEM_MEMORY_LIMIT_MB\\)"));
  ASSERT_THAT(r.lines_with("/physical_device:GPU:0"), SizeIs(1));
  EXPECT_THAT(
      r.lines_with("/physical_device:GPU:0")[0],
      AllOf(HasSubstr("memory 1.0 GiB (environment TANDEM_EMULATE)"),
            HasSubstr("not visible (environment TANDEM_VISIBLE_DEVICES)"), HasSubstr("emulated")));
  EXPECT_THAT(r.out, HasSubstr("soft placement off (environment TANDEM_SOFT_PLACEMENT)"));
  EXPECT_THAT(r.out,
              HasSubstr("log device placement on (environment TANDEM_LOG_DEVICE_PLACEMENT)"));
  EXPECT_THAT(r.out, HasSubstr("placement cost (environment TANDEM_PLACEMENT)"));
  EXPECT_THAT(r.out, HasSubstr("CUDA_VISIBLE_DEVICES 3 (environment CUDA_VISIBLE_DEVICES)"));
}

TEST_F(TdDevices, ReportsHowFastAcceleratorsAre) {
  const TdResult r = devices(
      "TANDEM_EMULATE='GPU:1,streams=2,latency=15us,flops=1.5T,bandwidth=300GB/s;NPU:1,"
      "latency=2ms'");
  EXPECT_EQ(r.code, 0) << r.err;
  ASSERT_THAT(r.lines_with("/physical_device:GPU:0"), SizeIs(1));
  const std::string gpu = r.lines_with("/physical_device:GPU:0")[0];
  EXPECT_THAT(gpu, ContainsRegex("streams 2  latency 15 us +1.5 Tflop/s +memory 300 GB/s"));
  EXPECT_THAT(gpu, HasSubstr("link 12 GB/s"));
  const std::string npu = r.lines_with("/physical_device:NPU:0")[0];
  EXPECT_THAT(npu, HasSubstr("streams 1  latency 2 ms"));
  EXPECT_EQ(gpu.find("emulated GPU,"), npu.find("emulated NPU,")) << "in columns";
  const TdResult json = devices("TANDEM_EMULATE=GPU:1,streams=2,flops=1.5T", "--json");
  EXPECT_THAT(json.out, AllOf(HasSubstr("\"streams\": 2,"), HasSubstr("\"flops\": 1500000000000.0"),
                              HasSubstr("\"speed\": {},")))
      << "nothing is known of the CPU";
}

TEST_F(TdDevices, WritesNumbersWithoutExponents) {
  const std::pair<const char*, const char*> cases[] = {
      {"latency=0.00001us", "latency 0.01 ns"}, {"latency=0.9us", "latency 900 ns"},
      {"latency=999us", "latency 999 us"},      {"latency=999.6us", "latency 1 ms"},
      {"latency=1ms", "latency 1 ms"},          {"latency=999.6ms", "latency 1 s"},
      {"latency=3600s", "latency 3600 s"},      {"flops=999.7G", "1 Tflop/s"},
      {"flops=2000000T", "2 Eflop/s"},
  };
  for (const auto& [given, shown] : cases) {
    const TdResult r = devices("TANDEM_EMULATE=GPU:1," + std::string(given));
    EXPECT_EQ(r.code, 0) << r.err;
    ASSERT_THAT(r.lines_with("/physical_device:GPU:0"), SizeIs(1));
    EXPECT_THAT(r.lines_with("/physical_device:GPU:0")[0],
                HasSubstr("  " + std::string(shown) + "  "));
  }
}

TEST_F(TdDevices, GivesJsonToPrograms) {
  const TdResult r = devices("TANDEM_EMULATE=GPU:1,memory=96MiB", "--json");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out,
              StartsWith("[\n  {\n    \"name\": \"/job:localhost/replica:0/task:0/device:CPU:0\""));
  for (const char* part :
       {"\"name\": \"/job:localhost/replica:0/task:0/device:GPU:0\"", "\"kind\": \"logical\"",
        "\"physical\": \"/physical_device:GPU:0\"", "\"memory_bytes\": 100663296",
        "\"emulated\": true", "\"emulated\": false", "\"name\": \"/physical_device:GPU:0\"",
        "\"kind\": \"physical\"", "\"visible\": true", "\"from\": \"environment TANDEM_EMULATE\"",
        "\"from\": \"default\"", "\"soft_placement\": {"}) {
    EXPECT_THAT(r.out, HasSubstr(part));
  }
}

TEST_F(TdDevices, RefusesAMalformedEnvironment) {
  const std::pair<const char*, const char*> wrong[] = {
      {"TANDEM_EMULATE", "GPU:2,colour=red"},
      {"TANDEM_EMULATE", "GPU"},
      {"TANDEM_EMULATE", "job:1"},
      {"TANDEM_EMULATE", "task:1"},
      {"TANDEM_VISIBLE_DEVICES", "GPU:7"},
      {"TANDEM_LOGICAL_DEVICES", "CPU:0"},
      {"TANDEM_MEMORY_LIMIT_MB", "1GB"},
      {"TANDEM_MEMORY_GROWTH", "true"},
      {"TANDEM_SOFT_PLACEMENT", "-"},
      {"TANDEM_PLACEMENT", "random"},
      {"TANDEM_PLUGINS", "/no/such/file.so"},
  };
  for (const auto& [name, value] : wrong) {
    const TdResult r = devices(std::string(name) + "='" + value + "'");
    EXPECT_EQ(r.code, 1) << name << '=' << value;
    EXPECT_EQ(r.out, "");
    EXPECT_THAT(r.err, AllOf(StartsWith("td: "), HasSubstr(name)));
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  }
}

// What docs/kubernetes asks a container to set is understood and does what the page says.
TEST_F(TdDevices, TakesTheSettingsOfTheKubernetesExample) {
  std::istringstream manifest(fs::read_file("docs/kubernetes/training-job.yaml"));
  std::string environment = "TANDEM_EMULATE=GPU:2,memory=16GiB";
  int settings = 0;
  for (std::string line; std::getline(manifest, line);) {
    const std::size_t colon = line.find(": \"");
    if (!line.starts_with("  TANDEM_") || colon == std::string::npos) continue;
    environment += " " + line.substr(2, colon - 2) + "=" + line.substr(colon + 2);
    ++settings;
  }
  EXPECT_GE(settings, 5);
  const TdResult r = devices(environment);
  EXPECT_EQ(r.code, 0) << r.err;
  ASSERT_THAT(r.lines_with("/device:GPU:"), SizeIs(1)) << r.out;
  EXPECT_THAT(r.lines_with("/device:GPU:0")[0],
              AllOf(HasSubstr("memory 12.0 GiB (environment TANDEM_MEMORY_LIMIT_MB)"),
                    HasSubstr("memory growth on (environment TANDEM_MEMORY_GROWTH)")));
}

}  // namespace
}  // namespace tandem
