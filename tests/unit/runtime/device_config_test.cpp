#include "tandem/runtime/device_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/log.h"
#include "tandem/device/device.h"
#include "tandem/placement/cost_profile.h"
#include "tandem/placement/placement.h"
#include "tandem/runtime/device_inventory.h"
#include "tandem/runtime/runtime.h"

#include "tests/unit/runtime/device_config_util.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::size_t kMib = std::size_t{1} << 20;

std::shared_ptr<CountingBackend> gpus(int count, std::size_t mib = 1024) {
  return std::make_shared<CountingBackend>("GPU", count, mib * kMib);
}

std::vector<std::string> names(const Runtime& runtime) {
  std::vector<std::string> all;
  for (const auto& device : runtime.devices()) all.push_back(device->name());
  return all;
}
std::string full(const std::string& device) {
  return "/job:localhost/replica:0/task:0/device:" + device;
}
std::string refused(const DeviceConfig& config) {
  return thrown_by([&] { Runtime runtime({.devices = config}); });
}

TEST(DeviceConfig, OneCpuUnlessMoreIsSaid) {
  const Runtime runtime;
  EXPECT_THAT(names(runtime), ElementsAre(full("CPU:0")));
  EXPECT_EQ(runtime.physical_device(runtime.default_device()),
            (PhysicalDevice{"/physical_device:CPU:0", "CPU"}));
  EXPECT_TRUE(runtime.soft_placement());
  EXPECT_FALSE(runtime.log_placement());
  EXPECT_EQ(runtime.placement_policy(), PlacementPolicy::kGreedy);
  EXPECT_EQ(runtime.placement_profile(), "");
  EXPECT_EQ(runtime.backends().front()->name(), "host");
}

TEST(DeviceConfig, SeveralCpus) {
  const Runtime runtime({.devices = {.logical = {{"CPU:0", {{}, {}, {}}}}}});
  EXPECT_THAT(names(runtime), ElementsAre(full("CPU:0"), full("CPU:1"), full("CPU:2")));
  EXPECT_EQ(&runtime.default_device(), runtime.devices().front().get());
  EXPECT_EQ(runtime.services(*runtime.devices()[2]).device, runtime.devices()[2].get());
}

TEST(DeviceConfig, CpusComeFirstAndEachTypeIsNumbered) {
  const auto npu = std::make_shared<CountingBackend>("NPU", 1, 64 * kMib);
  const Runtime runtime({.devices = {.backends = {gpus(2), npu, gpus(1)}}});
  EXPECT_THAT(names(runtime), ElementsAre(full("CPU:0"), full("GPU:0"), full("GPU:1"),
                                          full("NPU:0"), full("GPU:2")));
  EXPECT_EQ(runtime.physical_device(*runtime.devices()[4]).name, "/physical_device:GPU:2");
  EXPECT_EQ(runtime.default_device().type(), "CPU");
}

TEST(DeviceConfig, CutsDevicesByMemory) {
  const auto backend = gpus(2);
  const Runtime runtime(
      {.devices = {.backends = {backend},
                   .logical = {{"/gpu:0", {{.memory_limit = 256}, {.memory_limit = 768}}}},
                   .memory_limit = {{"GPU:1", 100}},
                   .memory_growth = {{"", true}}}});
  ASSERT_EQ(backend->made.size(), 3u);
  EXPECT_EQ(backend->made[0].options.memory_limit, 256 * kMib);
  EXPECT_EQ(backend->made[1].options.memory_limit, 768 * kMib);
  EXPECT_EQ(backend->made[1].physical.name, "/physical_device:GPU:0");
  EXPECT_EQ(backend->made[2].name, full("GPU:2"));
  EXPECT_EQ(backend->made[2].physical.name, "/physical_device:GPU:1");
  EXPECT_EQ(backend->made[2].options.memory_limit, 100 * kMib);
  for (const auto& made : backend->made) EXPECT_TRUE(made.options.memory_growth);
  EXPECT_EQ(runtime.devices()[1]->allocator().stats().limit, 256 * kMib);
}

TEST(DeviceConfig, OneLimitForAllLeavesOutWhatIsCut) {
  const auto backend = gpus(2);
  const Runtime runtime({.devices = {.backends = {backend},
                                     .logical = {{"GPU:1", {{.memory_limit = 7}}}},
                                     .memory_limit = {{"", 10}}}});
  EXPECT_EQ(backend->made[0].options.memory_limit, 10 * kMib);
  EXPECT_EQ(backend->made[1].options.memory_limit, 7 * kMib);
}

TEST(DeviceConfig, VisibleDevicesAreNumberedAgain) {
  const auto backend = gpus(3);
  const Runtime runtime(
      {.devices = {.backends = {backend}, .visible = {{"GPU:2", "CPU:0", "GPU:1"}}}});
  EXPECT_THAT(names(runtime), ElementsAre(full("CPU:0"), full("GPU:0"), full("GPU:1")));
  EXPECT_EQ(runtime.physical_device(*runtime.devices()[1]).name, "/physical_device:GPU:1");
  EXPECT_EQ(runtime.inventory().devices().size(), 4u) << "hidden ones are still known";
}

TEST(DeviceConfig, RefusesWhatIsImpossible) {
  const auto b = gpus(2);
  EXPECT_THAT(refused({.backends = {b}, .visible = {{"CPU:0", "GPU:7"}}}),
              AllOf(StartsWith("INVALID_ARGUMENT: Unrecognized device: 'GPU:7'"),
                    HasSubstr("CPU:0, GPU:0, GPU:1")));
  EXPECT_THAT(refused({.backends = {b}, .visible = {{"GPU:0"}}}),
              StartsWith("NOT_FOUND: No CPU devices are available in this process"));
  EXPECT_THAT(refused({.logical = {{"GPU:0", {{.memory_limit = 1}}}}}),
              StartsWith("INVALID_ARGUMENT: Unrecognized device: 'GPU:0'"));
  EXPECT_THAT(refused({.memory_limit = {{"GPU:0", 1}}}),
              StartsWith("INVALID_ARGUMENT: Unrecognized device: 'GPU:0'"));
  EXPECT_THAT(refused({.memory_growth = {{"GPU:0", true}}}),
              StartsWith("INVALID_ARGUMENT: Unrecognized device: 'GPU:0'"));
  EXPECT_THAT(refused({.memory_growth = {{"CPU:0", true}}}),
              HasSubstr("Cannot set memory growth on non-GPU and non-Pluggable devices"));
  EXPECT_THAT(refused({.logical = {{"CPU:0", {{.memory_limit = 1}}}}}),
              HasSubstr("Setting memory limit on CPU virtual devices is currently not supported"));
  EXPECT_THAT(refused({.logical = {{"CPU:0", {{.experimental_priority = 1}}}}}),
              HasSubstr("Setting experimental_priority on CPU virtual  devices is currently not "
                        "supported"));
  EXPECT_THAT(refused({.memory_limit = {{"CPU:0", 1}}}),
              HasSubstr("Setting memory limit on CPU virtual devices is currently not supported"));
  EXPECT_THAT(refused({.backends = {b}, .logical = {{"GPU:0", {{}}}}}),
              HasSubstr("Setting memory limit is required for GPU virtual devices"));
  EXPECT_THAT(refused({.backends = {b}, .memory_growth = {{"GPU:0", true}}}),
              StartsWith("INVALID_ARGUMENT: Memory growth cannot differ between GPU devices"));
  EXPECT_EQ(
      refused(
          {.backends = {b}, .visible = {{"CPU:0", "GPU:0"}}, .memory_growth = {{"GPU:0", true}}}),
      "nothing was thrown")
      << "a hidden device does not count";
  EXPECT_EQ(refused({.backends = {b},
                     .logical = {{"GPU:1", {{.memory_limit = 5}}}},
                     .memory_growth = {{"GPU:0", true}}}),
            "nothing was thrown")
      << "nor does growth where devices are cut";
  EXPECT_THAT(refused({.backends = {nullptr}}), HasSubstr("is null"));
  EXPECT_THAT(refused({.backends = {b}, .visible = {{"CPU:0", "GPU:0", "/gpu:0"}}}),
              StartsWith("INVALID_ARGUMENT: Device GPU:0 is listed twice"));
  EXPECT_THAT(refused({.backends = {b}, .logical = {{"GPU:0", {}}}}),
              StartsWith("INVALID_ARGUMENT: The list of logical devices of GPU:0 is empty"));
  EXPECT_THAT(refused({.logical = {{"CPU:0", {}}}}), HasSubstr("of CPU:0 is empty"));
  EXPECT_THAT(refused({.placement_profile = "/nowhere/profile.json"}),
              HasSubstr("/nowhere/profile.json"));
  EXPECT_THAT(refused({.logical = {{"GPU", {{}}}}}),
              HasSubstr("Failed parsing device name: 'GPU'. Note a valid device string"));
  EXPECT_THAT(refused({.logical = {{"GPU:0", {{}}}, {"/gpu:0", {{}}}}}),
              HasSubstr("Device GPU:0 is configured twice"));
}

TEST(DeviceConfig, RefusesLimitsAboveTheMemory) {
  const auto b = gpus(1, 1024);
  EXPECT_THAT(
      refused({.backends = {b}, .memory_limit = {{"GPU:0", 1025}}}),
      HasSubstr("The memory limits of GPU:0 come to 1025 MiB, but the device has 1024 MiB"));
  EXPECT_THAT(refused({.backends = {b}, .memory_limit = {{"", 2000}}}), HasSubstr("2000 MiB"));
  EXPECT_THAT(refused({.backends = {b},
                       .logical = {{"GPU:0", {{.memory_limit = 1000}, {.memory_limit = 25}}}}}),
              HasSubstr("The memory limits of GPU:0 come to 1025 MiB"));
  EXPECT_EQ(refused({.backends = {b},
                     .logical = {{"GPU:0", {{.memory_limit = 1000}, {.memory_limit = 24}}}}}),
            "nothing was thrown");
  for (const std::int64_t wrong : {std::int64_t{0}, std::int64_t{-5}, INT64_MAX, INT64_MAX >> 20}) {
    EXPECT_THAT(refused({.backends = {b}, .memory_limit = {{"GPU:0", wrong}}}),
                StartsWith("INVALID_ARGUMENT: "))
        << wrong;
  }
  EXPECT_THAT(refused({.backends = {b},
                       .logical = {{"GPU:0", {{.memory_limit = 10}}}},
                       .memory_limit = {{"GPU:0", 10}}}),
              HasSubstr("Device GPU:0 has both logical devices (program) and a memory limit of its "
                        "own (program)"));
}

TEST(DeviceConfig, FlagsAndPolicy) {
  const std::string costs = ::testing::TempDir() + "flags_and_policy.json";
  CostProfile().save(costs);
  const Runtime runtime(
      {.devices = {.soft_placement = false, .log_placement = true, .placement_profile = costs}});
  EXPECT_FALSE(runtime.soft_placement());
  EXPECT_TRUE(runtime.log_placement());
  EXPECT_EQ(runtime.placement_policy(), PlacementPolicy::kCost) << "a profile is there to be used";
  EXPECT_EQ(runtime.placement_profile(), costs);
}

TEST(DeviceConfig, TheLogLevelIsOfTheProcess) {
  ASSERT_EQ(log_level(), LogLevel::kInfo);
  const Runtime quiet({.devices = {.log_level = 2}});
  EXPECT_EQ(log_level(), LogLevel::kError);
  ::testing::internal::CaptureStderr();
  log(LogLevel::kWarning, "hidden");
  log(LogLevel::kError, "shown");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "shown\n");
  {
    const EnvironmentScope environment({{"TANDEM_LOG_LEVEL", "0"}});
    const Runtime all;
    EXPECT_EQ(log_level(), LogLevel::kInfo);
  }
  EXPECT_THAT(refused({.log_level = 9}), HasSubstr("The log level must be 0 to 3 but is 9"));
  EXPECT_EQ(log_level(), LogLevel::kInfo);
}

TEST(DeviceConfig, NotesWhatIsNotThere) {
  const Runtime runtime({.devices = {.backends = {gpus(0)}}});
  EXPECT_THAT(runtime.inventory().notes(), ::testing::Contains("counting: nothing was counted"));
}

TEST(DeviceEnvironment, CompletesWhatTheProgramLeavesUnsaid) {
  const EnvironmentScope environment({{"TANDEM_VISIBLE_DEVICES", "gpu:1 , GPU:0"},
                                      {"TANDEM_LOGICAL_DEVICES", "GPU:0=512,256; CPU:0=2"},
                                      {"TANDEM_MEMORY_LIMIT_MB", "GPU:1=128"},
                                      {"TANDEM_MEMORY_GROWTH", "1"},
                                      {"TANDEM_SOFT_PLACEMENT", "0"},
                                      {"TANDEM_LOG_DEVICE_PLACEMENT", "1"},
                                      {"TANDEM_PLACEMENT", "cost"},
                                      {"TANDEM_LOG_LEVEL", "2"}});
  const auto backend = gpus(3);
  const Runtime runtime({.devices = {.backends = {backend}}});
  EXPECT_THAT(names(runtime), ElementsAre(full("CPU:0"), full("CPU:1"), full("GPU:0"),
                                          full("GPU:1"), full("GPU:2")));
  ASSERT_EQ(backend->made.size(), 3u);
  EXPECT_EQ(backend->made[0].options.memory_limit, 128 * kMib) << "as listed";
  EXPECT_EQ(backend->made[2].options.memory_limit, 256 * kMib);
  EXPECT_TRUE(backend->made[2].options.memory_growth);
  EXPECT_FALSE(runtime.soft_placement());
  EXPECT_TRUE(runtime.log_placement());
  EXPECT_EQ(runtime.placement_policy(), PlacementPolicy::kCost);
  const DeviceConfig& config = runtime.device_config();
  EXPECT_EQ(config.log_level, 2);
  set_log_level(LogLevel::kInfo);
  EXPECT_EQ(config.origin("visible"), "environment TANDEM_VISIBLE_DEVICES");
  EXPECT_EQ(config.origin("logical GPU:0"), "environment TANDEM_LOGICAL_DEVICES");
  EXPECT_EQ(config.origin("memory_limit GPU:1"), "environment TANDEM_MEMORY_LIMIT_MB");
  EXPECT_EQ(config.origin("memory_limit GPU:0"), "default");
  EXPECT_EQ(config.origin("memory_growth GPU:0"), "environment TANDEM_MEMORY_GROWTH");
  EXPECT_EQ(config.origin("soft_placement"), "environment TANDEM_SOFT_PLACEMENT");
  EXPECT_EQ(config.origin("placement"), "environment TANDEM_PLACEMENT");
  EXPECT_EQ(config.origin("backends"), "program");
  EXPECT_EQ(config.origin("emulate"), "default");
}

TEST(DeviceEnvironment, TheProgramsOwnSettingsWin) {
  const EnvironmentScope environment({{"TANDEM_VISIBLE_DEVICES", "none"},
                                      {"TANDEM_LOGICAL_DEVICES", "GPU:0=512;GPU:1=512"},
                                      {"TANDEM_MEMORY_LIMIT_MB", "GPU:0=64"},
                                      {"TANDEM_MEMORY_GROWTH", "0"},
                                      {"TANDEM_SOFT_PLACEMENT", "0"}});
  const DeviceConfig config =
      DeviceConfig::with_environment({.visible = {{"CPU:0", "GPU:0", "GPU:1"}},
                                      .logical = {{"GPU:0", {{.memory_limit = 100}}}},
                                      .memory_limit = {{"GPU:1", 200}},
                                      .memory_growth = {{"GPU:0", true}},
                                      .soft_placement = true});
  EXPECT_EQ(config.visible->size(), 3u);
  EXPECT_EQ(config.logical.size(), 1u);
  EXPECT_EQ(config.logical.at("GPU:0").size(), 1u);
  EXPECT_FALSE(config.memory_limit.contains("GPU:0"));
  EXPECT_EQ(config.memory_limit.at("GPU:1"), 200);
  EXPECT_TRUE(config.memory_growth.at("GPU:0"));
  EXPECT_FALSE(config.memory_growth.at(""));
  EXPECT_TRUE(*config.soft_placement);
  for (const char* setting :
       {"visible", "logical GPU:0", "memory_limit GPU:1", "memory_growth GPU:0", "soft_placement"})
    EXPECT_EQ(config.origin(setting), "program") << setting;
  EXPECT_EQ(config.origin("memory_growth GPU:1"), "environment TANDEM_MEMORY_GROWTH");
}

TEST(DeviceEnvironment, ListsOfDevices) {
  {
    const EnvironmentScope none({{"TANDEM_VISIBLE_DEVICES", "none"}});
    const Runtime runtime({.devices = {.backends = {gpus(2)}}});
    EXPECT_THAT(names(runtime), ElementsAre(full("CPU:0"))) << "no accelerator";
  }
  {
    const EnvironmentScope all({{"TANDEM_MEMORY_LIMIT_MB", " 96 "}});
    const auto backend = gpus(2);
    const Runtime runtime({.devices = {.backends = {backend}}});
    EXPECT_EQ(backend->made[1].options.memory_limit, 96 * kMib);
    EXPECT_EQ(runtime.device_config().origin("memory_limit GPU:1"),
              "environment TANDEM_MEMORY_LIMIT_MB");
  }
  const EnvironmentScope empty({{"TANDEM_VISIBLE_DEVICES", ""}, {"TANDEM_MEMORY_GROWTH", " "}});
  const Runtime runtime({.devices = {.backends = {gpus(1)}}});
  EXPECT_EQ(runtime.devices().size(), 2u) << "an empty variable says nothing";
}

TEST(DeviceEnvironment, ReportsOfAHiddenDeviceThatItNames) {
  const EnvironmentScope environment({{"TANDEM_VISIBLE_DEVICES", "GPU:1"},
                                      {"TANDEM_LOGICAL_DEVICES", "GPU:2=5,6"},
                                      {"TANDEM_MEMORY_LIMIT_MB", "GPU:0=5;GPU:1=7"}});
  ::testing::internal::CaptureStderr();
  const Runtime runtime({.devices = {.backends = {gpus(3)}}});
  const std::string reported = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(reported, HasSubstr("TANDEM_MEMORY_LIMIT_MB names GPU:0, which is not visible"));
  EXPECT_THAT(reported, HasSubstr("TANDEM_LOGICAL_DEVICES names GPU:2, which is not visible"));
  EXPECT_THAT(reported, Not(HasSubstr("names GPU:1")));
}

TEST(DeviceEnvironment, NamesTheVariableThatIsWrong) {
  const std::pair<const char*, const char*> wrong[] = {
      {"TANDEM_VISIBLE_DEVICES", "GPU"},
      {"TANDEM_VISIBLE_DEVICES", "GPU:0,,CPU:0"},
      {"TANDEM_VISIBLE_DEVICES", "GPU:0,GPU:0"},
      {"TANDEM_VISIBLE_DEVICES", "GPU:5"},
      {"TANDEM_VISIBLE_DEVICES", "/job:worker/GPU:0"},
      {"TANDEM_VISIBLE_DEVICES", "all"},
      {"TANDEM_LOGICAL_DEVICES", "GPU:0"},
      {"TANDEM_LOGICAL_DEVICES", "GPU:0="},
      {"TANDEM_LOGICAL_DEVICES", "GPU:0=1,x"},
      {"TANDEM_LOGICAL_DEVICES", "GPU:0=0"},
      {"TANDEM_LOGICAL_DEVICES", "GPU:0=5;GPU:0=6"},
      {"TANDEM_LOGICAL_DEVICES", "CPU:0=2,2"},
      {"TANDEM_LOGICAL_DEVICES", "CPU:0=99999999999"},
      {"TANDEM_LOGICAL_DEVICES", "GPU:0=99999"},
      {"TANDEM_LOGICAL_DEVICES", "TPU:0=9"},
      {"TANDEM_MEMORY_LIMIT_MB", "much"},
      {"TANDEM_MEMORY_LIMIT_MB", "-1"},
      {"TANDEM_MEMORY_LIMIT_MB", "1GiB"},
      {"TANDEM_MEMORY_LIMIT_MB", "GPU:0=1,2"},
      {"TANDEM_MEMORY_LIMIT_MB", "GPU:0=2;GPU:0=2"},
      {"TANDEM_MEMORY_LIMIT_MB", "99999"},
      {"TANDEM_MEMORY_LIMIT_MB", "CPU:0=5"},
      {"TANDEM_MEMORY_GROWTH", "yes"},
      {"TANDEM_SOFT_PLACEMENT", "2"},
      {"TANDEM_LOG_DEVICE_PLACEMENT", "on"},
      {"TANDEM_PLACEMENT", "best"},
      {"TANDEM_PLACEMENT_PROFILE", "/proc/self/status"},
      {"TANDEM_LOG_LEVEL", "4"},
      {"TANDEM_LOG_LEVEL", "info"},
  };
  for (const auto& [name, value] : wrong) {
    const EnvironmentScope environment({{name, value}});
    EXPECT_THAT(refused({.backends = {gpus(1)}}),
                AllOf(StartsWith("INVALID_ARGUMENT: "), HasSubstr(name)))
        << name << "=" << value;
  }
  {
    const EnvironmentScope environment({{"TANDEM_LOGICAL_DEVICES", "CPU:0=100000000"}});
    EXPECT_THAT(refused({}), HasSubstr("must be at most 1024 logical devices of a CPU, but is"));
  }
  EXPECT_THAT(refused({.logical = {{"CPU:0", std::vector<LogicalDeviceConfiguration>(1025)}}}),
              HasSubstr("cut into 1025 logical devices; at most 1024"));
  const EnvironmentScope environment({{"TANDEM_MEMORY_GROWTH", "yes"}});
  EXPECT_EQ(refused({}), "INVALID_ARGUMENT: TANDEM_MEMORY_GROWTH must be 0 or 1 but is 'yes'.");
}

}  // namespace
}  // namespace tandem
