// Emulated devices as td::config, a Runtime's options and the environment make them.

#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/memory_space.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/device_inventory.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"

#include "tests/unit/runtime/device_config_util.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::size_t kMib = std::size_t{1} << 20;

std::string refused(const DeviceConfig& config) {
  return thrown_by([&] { Runtime runtime({.devices = config}); });
}

TEST(EmulatedConfig, ByOptions) {
  const Runtime runtime(
      {.devices = {.emulate = {"GPU:2,memory=64MiB;NPU:1"},
                   .logical = {{"GPU:1", {{.memory_limit = 16}, {.memory_limit = 48}}}}}});
  ASSERT_EQ(runtime.devices().size(), 5u);
  const char* const names[] = {"CPU:0", "GPU:0", "GPU:1", "GPU:2", "NPU:0"};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(runtime.devices()[i]->name(),
              cat("/job:localhost/replica:0/task:0/device:", names[i]));
    EXPECT_EQ(runtime.devices()[i]->properties().emulated, i > 0);
  }
  EXPECT_EQ(runtime.devices()[1]->allocator().stats().limit, 64 * kMib);
  EXPECT_EQ(runtime.devices()[2]->allocator().stats().limit, 16 * kMib);
  EXPECT_EQ(runtime.device_config().origin("emulate"), "program");
}

TEST(EmulatedConfig, LimitsHoldExactly) {
  const Runtime runtime({.devices = {.emulate = {"GPU:1,memory=64MiB"},
                                     .memory_limit = {{"GPU:0", 8}},
                                     .memory_growth = {{"", true}}}});
  Allocator& allocator = runtime.devices()[1]->allocator();
  const Ref<Buffer> most = allocator.allocate(8 * kMib);
  EXPECT_THAT(thrown_by([&] { allocator.allocate(1); }), StartsWith("RESOURCE_EXHAUSTED: "));
}

// The limit for all devices is of no concern to a hidden one.
TEST(EmulatedConfig, LimitsOfHiddenDevicesMustBePossibleToo) {
  const auto with = [](DeviceConfig config) {
    config.emulate = {"GPU:1,memory=64MiB"};
    config.visible = {{"CPU:0"}};
    return refused(config);
  };
  EXPECT_THAT(with({.logical = {{"GPU:0", {{.memory_limit = 60}, {.memory_limit = 5}}}}}),
              HasSubstr("GPU:0 come to 65 MiB, but the device has 64 MiB"));
  EXPECT_THAT(with({.memory_limit = {{"GPU:0", 65}}}), HasSubstr("but the device has 64 MiB"));
  EXPECT_THAT(with({.logical = {{"GPU:0", {{}}}}}), HasSubstr("memory limit is required"));
  EXPECT_EQ(with({.memory_limit = {{"", 65}}}), "nothing was thrown");
  EXPECT_EQ(with({.logical = {{"GPU:0", {{.memory_limit = 60}, {.memory_limit = 4}}}}}),
            "nothing was thrown");
}

TEST(EmulatedConfig, ByTheProgramBeforeTheStart) {
  in_new_process([] {
    const EnvironmentScope environment({{"TANDEM_EMULATE", "GPU:4"}});
    EXPECT_EQ(config::list_physical_devices("GPU").size(), 4u);
    config::emulate("GPU:2,memory=32MiB");
    EXPECT_EQ(config::list_physical_devices("GPU").size(), 2u) << "the program wins";
    EXPECT_THAT(thrown_by([] { config::emulate("GPU:2,speed=9"); }),
                AllOf(StartsWith("INVALID_ARGUMENT: emulate"), HasSubstr("speed")));
    EXPECT_EQ(config::list_physical_devices("GPU").size(), 2u) << "what was refused is not set";
    config::set_logical_device_configuration("GPU:1", {{.memory_limit = 30}, {.memory_limit = 2}});
    EXPECT_THAT(thrown_by([] { config::set_memory_limit("GPU:0", 33); }), HasSubstr("has 32 MiB"));
    EXPECT_EQ(config::list_logical_devices("GPU").size(), 3u);
    EXPECT_EQ(config::get_device_details("GPU:0").at("device_name"), "emulated GPU");
    config::emulate("GPU:2, memory=32MiB");
    EXPECT_THAT(thrown_by([] { config::emulate("GPU:1"); }),
                AllOf(StartsWith("FAILED_PRECONDITION: Emulated devices cannot be modified after "
                                 "being initialized"),
                      HasSubstr("Call emulate before the first op")));
  });
  in_new_process([] {
    const EnvironmentScope environment({{"TANDEM_EMULATE", "GPU:4"}});
    config::emulate("");
    EXPECT_THAT(config::list_logical_devices("GPU"), IsEmpty()) << "\"\" is none at all";
  });
}

TEST(EmulatedConfig, StandsInForRealDevicesOfItsType) {
  const auto real = std::make_shared<CountingBackend>("XPU", 3, kMib);
  const auto other = std::make_shared<CountingBackend>("YPU", 1, kMib);
  const DeviceConfig config =
      DeviceConfig::with_environment({.emulate = {"XPU:1,memory=2MiB"}, .backends = {real, other}});
  const DeviceInventory inventory(config);
  std::vector<std::string> names;
  for (const auto& entry : inventory.devices())
    names.push_back(entry.backend->name() + " " + entry.short_name());
  EXPECT_THAT(names, ElementsAre("host CPU:0", "counting YPU:0", "emulated XPU:0"));
  EXPECT_THAT(inventory.notes(),
              Contains("counting: 3 XPU not used, because devices of this type are emulated"));
}

TEST(EmulatedConfig, ErrorsNameWhereTheSpecificationIs) {
  EXPECT_THAT(refused({.emulate = {"GPU:x"}}), StartsWith("INVALID_ARGUMENT: emulate"));
  EXPECT_THAT(refused({.emulate = {"GPU:1"}, .visible = {{"CPU:0", "GPU:1"}}}),
              StartsWith("INVALID_ARGUMENT: Unrecognized device: 'GPU:1'"));
  const EnvironmentScope environment({{"TANDEM_EMULATE", "GPU:1,color=red"}});
  EXPECT_THAT(refused({}),
              AllOf(StartsWith("INVALID_ARGUMENT: TANDEM_EMULATE"), HasSubstr("color")));
}

TEST(EmulatedConfig, TypesAreKnownBeforeTheStart) {
  in_new_process([] {
    const EnvironmentScope environment({{"TANDEM_EMULATE", "ZPU:1"}});
    const DeviceScope scope("/zpu:0");
    EXPECT_THAT(thread_context().devices, ElementsAre("/device:ZPU:0"));
    EXPECT_FALSE(Runtime::default_exists());
    EXPECT_THAT(thrown_by([] { const DeviceScope unknown("/wpu:0"); }),
                StartsWith("INVALID_ARGUMENT: Unknown attribute 'wpu'"));
  });
}

// There and back through a device's memory.
void use(const Runtime& runtime, int value) {
  for (const auto& device : runtime.devices()) {
    if (!device->memory_space()) continue;
    const Ref<Buffer> buffer = device->allocator().allocate(sizeof(int));
    device->copy_from_host(&value, buffer, 0, sizeof(int));
    int back = 0;
    device->copy_to_host(buffer, 0, &back, sizeof(int));
    ASSERT_EQ(back, value);
  }
}

void make_and_destroy(int times) {
  for (int i = 0; i < times; ++i) {
    const Runtime runtime(
        {.inter_op_threads = 1,
         .intra_op_threads = 1,
         .devices = {.emulate = {"GPU:2,memory=4MiB,latency=0us"},
                     .logical = {{"GPU:0", {{.memory_limit = 1}, {.memory_limit = 2}}}}}});
    ASSERT_EQ(runtime.devices().size(), 4u);
    if (i % 8 == 0) use(runtime, i);
  }
}

std::ptrdiff_t threads_now() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}
// The system lists a thread for a moment after it was joined.
std::ptrdiff_t settled_threads() {
  std::ptrdiff_t threads = threads_now();
  for (int alike = 0; alike < 50;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::ptrdiff_t now = threads_now();
    alike = now == threads ? alike + 1 : 0;
    threads = now;
  }
  return threads;
}
std::ptrdiff_t files_now() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

TEST(EmulatedConfig, AThousandRuntimes) {
  make_and_destroy(1);
  const std::ptrdiff_t threads = settled_threads(), files = files_now();
  make_and_destroy(400);
  std::thread first(make_and_destroy, 300), second(make_and_destroy, 300);
  first.join();
  second.join();
  EXPECT_LE(settled_threads(), threads) << "threads of devices are left over";
  EXPECT_EQ(files_now(), files) << "open files are left over";
}

}  // namespace
}  // namespace tandem
