// What a runtime logs on stderr of where things run.
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/ops/ops.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/runtime/device_config_util.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::vector<std::string> lines_of(const std::function<void()>& body) {
  ::testing::internal::CaptureStderr();
  body();
  std::istringstream said(::testing::internal::GetCapturedStderr());
  std::vector<std::string> lines;
  for (std::string line; std::getline(said, line);) lines.push_back(line);
  return lines;
}

std::string executing(const std::string& op, const std::string& device) {
  return "Executing op " + op + " in device /job:localhost/replica:0/task:0/device:" + device;
}

std::string placed(const std::string& node, const std::string& op, const std::string& device) {
  return node + ": (" + op + "): /job:localhost/replica:0/task:0/device:" + device;
}

TEST(PlacementLog, ReportsWhereEachEagerCallRuns) {
  Runtime runtime({.devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  const Tensor x{1.0f, 2.0f};
  const auto calls = [&] {
    (x + x).synchronize();
    (x + x).synchronize();
    {
      DeviceScope on("/GPU:1");
      (x * x).synchronize();
    }
    DeviceScope on("/CPU:0");
    (x - x).synchronize();
  };
  EXPECT_THAT(lines_of(calls), IsEmpty());
  config::debugging::set_log_device_placement(true);
  EXPECT_THAT(lines_of(calls), ElementsAre(executing("AddV2", "GPU:0"), executing("AddV2", "GPU:0"),
                                           executing("Mul", "GPU:1"), executing("Sub", "CPU:0")));
  config::debugging::set_log_device_placement(false);
  EXPECT_THAT(lines_of(calls), IsEmpty());
}

TEST(PlacementLog, ReportsOfEagerCallsWhereThereIsOneDevice) {
  Runtime runtime;
  RuntimeScope scope(runtime);
  const Tensor x{1.0f, 2.0f};
  const auto calls = [&] {
    x + x;
    x* x;
  };
  EXPECT_THAT(lines_of(calls), IsEmpty());
  config::debugging::set_log_device_placement(true);
  EXPECT_THAT(lines_of(calls), ElementsAre(executing("AddV2", "CPU:0"), executing("Mul", "CPU:0")));
}

// A trace is placed before its first call, and no later call places it again.
TEST(PlacementLog, ReportsOnceWhereEachNodeOfAFunctionGoes) {
  Runtime runtime({.devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  config::debugging::set_log_device_placement(true);
  const auto f = function(
      [](Tensor a) {
        Tensor y;
        {
          DeviceScope on("/GPU:1");
          y = a * a;
        }
        DeviceScope on("/CPU:0");
        return y + a;
      },
      {.name = "f"});
  const Tensor x{1.0f, 2.0f};
  std::vector<std::string> lines = lines_of([&] { f(x); });
  ASSERT_THAT(lines, SizeIs(4));
  EXPECT_THAT(lines[0], StartsWith("Executing op f"));
  EXPECT_THAT(lines[0], EndsWith("GPU:0"));
  lines.erase(lines.begin());
  EXPECT_THAT(lines, ElementsAre(placed("arg_0", "_Arg", "CPU:0"), placed("Mul", "Mul", "GPU:1"),
                                 placed("AddV2", "AddV2", "CPU:0")));
  for (int call = 0; call < 20; ++call)
    EXPECT_THAT(lines_of([&] { f(x); }), ElementsAre(StartsWith("Executing op f"))) << call;
  // Another shape is another trace.
  EXPECT_THAT(lines_of([&] { f(Tensor{1.0f, 2.0f, 3.0f}); }), SizeIs(4));
}

TEST(PlacementLog, ReportsOfFunctionsWhereThereIsOneDevice) {
  Runtime runtime;
  RuntimeScope scope(runtime);
  config::debugging::set_log_device_placement(true);
  const auto f = function([](Tensor a) { return a * a; }, {.name = "f"});
  const Tensor x{1.0f, 2.0f};
  EXPECT_THAT(lines_of([&] { f(x); }),
              ElementsAre(StartsWith("Executing op f"), placed("arg_0", "_Arg", "CPU:0"),
                          placed("Mul", "Mul", "CPU:0")));
  EXPECT_THAT(lines_of([&] { f(x); }), ElementsAre(StartsWith("Executing op f")));
}

TEST(PlacementLog, IsAskedForByTheEnvironment) {
  for (const bool asked : {false, true}) {
    const EnvironmentScope environment({{"TANDEM_LOG_DEVICE_PLACEMENT", asked ? "1" : "0"}});
    Runtime runtime({.devices = {.emulate = {"GPU:1,memory=8MiB,latency=0us"}}});
    RuntimeScope scope(runtime);
    const Tensor x{1.0f, 2.0f};
    const auto lines = lines_of([&] { (x + x).synchronize(); });
    if (asked) {
      EXPECT_THAT(lines, ElementsAre(executing("AddV2", "GPU:0")));
    } else {
      EXPECT_THAT(lines, IsEmpty());
    }
  }
}

}  // namespace
}  // namespace tandem
