// td devices, as a shell would call it.

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

struct Result {
  int code = -1;
  std::string out;
  std::string err;

  std::vector<std::string> lines_with(const std::string& part) const {
    std::vector<std::string> found;
    std::istringstream text(out);
    for (std::string line; std::getline(text, line);) {
      if (line.find(part) != std::string::npos) found.push_back(line);
    }
    return found;
  }
};

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

class TdDevices : public ::testing::Test {
 protected:
  void SetUp() override {
    td_ = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "bin/td";
    if (!std::filesystem::exists(td_)) {
      GTEST_SKIP() << td_ << " is not built: this preset has TANDEM_BUILD_TOOLS=OFF";
    }
  }

  // The devices under these environment variables, written as a shell would take them.
  Result devices(const std::string& environment, const std::string& options = "") {
    const std::string out = ::testing::TempDir() + "/td_devices.out";
    const std::string err = ::testing::TempDir() + "/td_devices.err";
    const std::string command = environment + " '" + td_.string() + "' devices " + options + " >'" +
                                out + "' 2>'" + err + "'";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(out), read(err)};
  }

  std::filesystem::path td_;
};

TEST_F(TdDevices, TellsOfTheCpuAndTheDefaults) {
  const Result r = devices("");
  EXPECT_EQ(r.code, 0) << r.err;
  ASSERT_THAT(r.lines_with("/device:CPU:0"), SizeIs(1));
  EXPECT_THAT(r.lines_with("/device:CPU:0")[0],
              AllOf(StartsWith("/job:localhost/replica:0/task:0/device:CPU:0  CPU  memory "),
                    ContainsRegex("threads [0-9]+ intra-op \\(default\\)"), HasSubstr("on CPU:0")));
  ASSERT_THAT(r.lines_with("/physical_device:"), SizeIs(1));
  EXPECT_THAT(r.lines_with("/physical_device:")[0],
              AllOf(HasSubstr("CPU"), HasSubstr("visible (default)")));
  EXPECT_THAT(r.out, HasSubstr("soft placement on (default)"));
  EXPECT_THAT(r.out, HasSubstr("placement greedy (default)"));
  EXPECT_THAT(r.out, Not(HasSubstr("emulated")));
}

TEST_F(TdDevices, TellsWhereEachSettingCameFrom) {
  const Result r = devices(
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

TEST_F(TdDevices, GivesJsonToPrograms) {
  const Result r = devices("TANDEM_EMULATE=GPU:1,memory=96MiB", "--json");
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
      {"TANDEM_EMULATE", "GPU:2,colour=red"}, {"TANDEM_EMULATE", "GPU"},
      {"TANDEM_VISIBLE_DEVICES", "GPU:7"},    {"TANDEM_LOGICAL_DEVICES", "CPU:0"},
      {"TANDEM_MEMORY_LIMIT_MB", "1GB"},      {"TANDEM_MEMORY_GROWTH", "true"},
      {"TANDEM_SOFT_PLACEMENT", "-"},         {"TANDEM_PLACEMENT", "random"},
      {"TANDEM_PLUGINS", "/no/such/file.so"},
  };
  for (const auto& [name, value] : wrong) {
    const Result r = devices(std::string(name) + "='" + value + "'");
    EXPECT_EQ(r.code, 1) << name << '=' << value;
    EXPECT_EQ(r.out, "");
    EXPECT_THAT(r.err, AllOf(StartsWith("td: "), HasSubstr(name)));
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  }
}

// What docs/kubernetes tells a container to set is understood and does what the page says.
TEST_F(TdDevices, TakesTheSettingsOfTheKubernetesExample) {
  std::istringstream manifest(read("docs/kubernetes/training-job.yaml"));
  std::string environment = "TANDEM_EMULATE=GPU:2,memory=16GiB";
  int settings = 0;
  for (std::string line; std::getline(manifest, line);) {
    const std::size_t colon = line.find(": \"");
    if (!line.starts_with("  TANDEM_") || colon == std::string::npos) continue;
    environment += " " + line.substr(2, colon - 2) + "=" + line.substr(colon + 2);
    ++settings;
  }
  EXPECT_GE(settings, 5);
  const Result r = devices(environment);
  EXPECT_EQ(r.code, 0) << r.err;
  ASSERT_THAT(r.lines_with("/device:GPU:"), SizeIs(1)) << r.out;
  EXPECT_THAT(r.lines_with("/device:GPU:0")[0],
              AllOf(HasSubstr("memory 12.0 GiB (environment TANDEM_MEMORY_LIMIT_MB)"),
                    HasSubstr("memory growth on (environment TANDEM_MEMORY_GROWTH)")));
}

}  // namespace
