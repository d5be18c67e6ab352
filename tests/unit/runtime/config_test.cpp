#include "tandem/runtime/config.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/placement/cost_profile.h"
#include "tandem/runtime/device_inventory.h"
#include "tandem/runtime/runtime.h"

#include "tests/unit/runtime/device_config_util.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::size_t kMib = std::size_t{1} << 20;
const PhysicalDevice kCpu{"/physical_device:CPU:0", "CPU"};
const PhysicalDevice kGpu0{"/physical_device:GPU:0", "GPU"};
const PhysicalDevice kGpu1{"/physical_device:GPU:1", "GPU"};

std::shared_ptr<CountingBackend> gpus(int count, std::size_t mib = 1024) {
  return std::make_shared<CountingBackend>("GPU", count, mib * kMib);
}

std::vector<std::string> logical_names(std::string_view type = "") {
  std::vector<std::string> names;
  for (const auto& device : config::list_logical_devices(type)) names.push_back(device.name);
  return names;
}

TEST(Config, ListsDevicesAsTensorFlowNamesThem) {
  in_new_process([] {
    EXPECT_THAT(config::list_physical_devices(), ElementsAre(kCpu));
    EXPECT_THAT(config::list_physical_devices("GPU"), IsEmpty());
    EXPECT_FALSE(Runtime::default_exists()) << "asking for physical devices starts nothing";
    EXPECT_THAT(config::list_logical_devices(),
                ElementsAre(config::LogicalDevice{"/device:CPU:0", "CPU"}));
    EXPECT_TRUE(Runtime::default_exists());
    EXPECT_THAT(config::list_logical_devices("GPU"), IsEmpty());
  });
}

TEST(Config, SplitsTheCpu) {
  in_new_process([] {
    EXPECT_EQ(config::get_logical_device_configuration(kCpu), std::nullopt);
    config::set_logical_device_configuration(kCpu, {{}, {}, {}});
    EXPECT_EQ(config::get_virtual_device_configuration("CPU:0")->size(), 3u);
    EXPECT_EQ(config::get_logical_device_configuration(kCpu)->front(),
              LogicalDeviceConfiguration{});
    EXPECT_THAT(logical_names(), ElementsAre("/device:CPU:0", "/device:CPU:1", "/device:CPU:2"));
  });
}

TEST(Config, TypesAreAskedForInAnyCase) {
  in_new_process([] {
    config::add_backend(gpus(2));
    EXPECT_EQ(config::list_physical_devices("gpu").size(), 2u);
    EXPECT_EQ(config::list_physical_devices("gp").size(), 0u);
    config::set_visible_devices("GPU:1", "Gpu");
    EXPECT_EQ(config::get_visible_devices("gpu").size(), 1u);
    EXPECT_EQ(config::list_logical_devices("cpu").size(), 1u);
  });
}

TEST(Config, RefusesInTensorFlowsWords) {
  in_new_process([] {
    config::add_backend(gpus(1));
    const auto error = [](auto call) { return thrown_by(call); };
    EXPECT_THAT(
        error([] { config::set_logical_device_configuration(kCpu, {{.memory_limit = 5}}); }),
        StartsWith("INVALID_ARGUMENT: Setting memory limit on CPU virtual devices is "
                   "currently not supported"));
    EXPECT_THAT(error([] {
                  config::set_logical_device_configuration(kCpu, {{.experimental_priority = 1}});
                }),
                StartsWith("INVALID_ARGUMENT: Setting experimental_priority on CPU virtual  "
                           "devices is currently not supported"));
    EXPECT_THAT(error([] { config::set_virtual_device_configuration(kGpu0, {{}}); }),
                StartsWith("INVALID_ARGUMENT: Setting memory limit is required for GPU virtual "
                           "devices"));
    EXPECT_THAT(
        error([] {
          config::set_logical_device_configuration(kGpu0,
                                                   {{.memory_limit = 600}, {.memory_limit = 600}});
        }),
        AllOf(StartsWith("INVALID_ARGUMENT: "), HasSubstr("1200 MiB"), HasSubstr("has 1024 MiB")));
    EXPECT_EQ(config::get_logical_device_configuration(kGpu0), std::nullopt)
        << "what was refused is not set";
    EXPECT_THAT(error([] { config::set_logical_device_configuration("xx", {{}}); }),
                StartsWith("INVALID_ARGUMENT: Unrecognized device: 'xx'."));
    EXPECT_THAT(error([] { config::set_visible_devices({kGpu1}, "GPU"); }),
                StartsWith("INVALID_ARGUMENT: Unrecognized device: "
                           "PhysicalDevice(name='/physical_device:GPU:1', device_type='GPU')."));
    EXPECT_THAT(error([] { config::set_visible_devices(kCpu, "GPU"); }),
                StartsWith("INVALID_ARGUMENT: Unrecognized device: PhysicalDevice("));
    EXPECT_THAT(error([] { config::get_memory_growth(kGpu1); }),
                StartsWith("INVALID_ARGUMENT: Unrecognized device: "));
    EXPECT_THAT(error([] { config::get_device_details(kGpu1); }),
                StartsWith("INVALID_ARGUMENT: Unrecognized device: "));
    EXPECT_THAT(error([] { config::set_memory_growth(kCpu, true); }),
                StartsWith("INVALID_ARGUMENT: Cannot set memory growth on non-GPU and "
                           "non-Pluggable devices"));
    EXPECT_THAT(error([] { config::get_memory_growth(kCpu); }), StartsWith("NOT_FOUND: "));
    EXPECT_THAT(error([] { config::set_memory_limit(kCpu, 10); }),
                StartsWith("INVALID_ARGUMENT: Setting memory limit on CPU"));
    EXPECT_THAT(error([] { config::set_memory_limit(kGpu0, 0); }),
                StartsWith("INVALID_ARGUMENT: A memory limit must be 1 MiB or more"));
    EXPECT_THAT(error([] { config::set_memory_limit(kGpu0, 1025); }), HasSubstr("has 1024 MiB"));
    EXPECT_THAT(error([] { config::set_placement_policy("best"); }),
                StartsWith("INVALID_ARGUMENT: The placement policy must be"));
    EXPECT_THAT(error([] { config::add_backend(nullptr); }), StartsWith("INVALID_ARGUMENT: "));
    config::set_logical_device_configuration(kGpu0, {{.memory_limit = 5}});
    EXPECT_THAT(error([] { config::set_memory_growth(kGpu0, true); }),
                StartsWith("INVALID_ARGUMENT: Cannot set memory growth on device when virtual "
                           "devices configured"));
    config::set_logical_device_configuration(kCpu, {{}});
    EXPECT_THAT(error([] { config::set_memory_growth(kCpu, true); }),
                HasSubstr("Cannot set memory growth on device when virtual devices configured"));
    EXPECT_THAT(error([] { config::set_memory_limit(kGpu0, 5); }),
                HasSubstr("has both logical devices (program) and a memory limit"));
  });
}

TEST(Config, ChoosesAndCutsAccelerators) {
  in_new_process([] {
    const auto backend = gpus(3);
    config::add_backend(backend);
    EXPECT_EQ(config::list_physical_devices("GPU").size(), 3u);
    EXPECT_EQ(config::get_visible_devices().size(), 4u);
    config::set_visible_devices({kGpu1, "GPU:0"}, "GPU");
    EXPECT_THAT(config::get_visible_devices(), ElementsAre(kCpu, kGpu0, kGpu1));
    EXPECT_THAT(config::get_visible_devices("GPU"), ElementsAre(kGpu0, kGpu1));
    config::set_memory_growth(kGpu0, true);
    config::set_memory_growth("GPU:1", true);
    config::set_visible_devices(std::string("GPU:0"), "GPU");
    EXPECT_THAT(config::get_visible_devices("GPU"), ElementsAre(kGpu0));
    config::set_visible_devices({kGpu0, kGpu1}, "GPU");
    EXPECT_EQ(config::get_memory_growth(kGpu1), true);
    EXPECT_EQ(config::get_memory_growth("GPU:2"), std::nullopt);
    config::set_logical_device_configuration(kGpu1, {{.memory_limit = 7}, {.memory_limit = 8}});
    config::set_memory_limit(kGpu0, 100);
    config::set_memory_limit(kGpu0, 200);
    EXPECT_THAT(logical_names("GPU"),
                ElementsAre("/device:GPU:0", "/device:GPU:1", "/device:GPU:2"));
    ASSERT_EQ(backend->made.size(), 3u);
    EXPECT_EQ(backend->made[0].options.memory_limit, 200 * kMib);
    EXPECT_EQ(backend->made[2].options.memory_limit, 8 * kMib);
    EXPECT_EQ(config::get_device_details(kGpu1).at("device_name"),
              "Counting /physical_device:GPU:1");
    EXPECT_THAT(config::get_device_details(kCpu), IsEmpty());
  });
}

TEST(Config, NothingChangesAfterTheStart) {
  in_new_process([] {
    config::add_backend(gpus(2));
    config::set_logical_device_configuration(kCpu, {{}, {}});
    config::set_memory_limit(kGpu0, 64);
    config::list_logical_devices();
    const auto error = [](auto call) { return thrown_by(call); };
    EXPECT_THAT(error([] { config::set_logical_device_configuration(kCpu, {{}}); }),
                AllOf(StartsWith("FAILED_PRECONDITION: Virtual devices cannot be modified after "
                                 "being initialized"),
                      HasSubstr("Call set_logical_device_configuration before the first op and "
                                "before list_logical_devices")));
    EXPECT_THAT(
        error([] { config::set_virtual_device_configuration(kGpu1, {{.memory_limit = 5}}); }),
        StartsWith("FAILED_PRECONDITION: Virtual devices cannot be modified after"));
    EXPECT_THAT(error([] { config::set_visible_devices({}, "GPU"); }),
                AllOf(StartsWith("FAILED_PRECONDITION: Visible devices cannot be modified after "
                                 "being initialized"),
                      HasSubstr("Call set_visible_devices before")));
    EXPECT_THAT(error([] { config::set_memory_growth(kGpu0, true); }),
                StartsWith("FAILED_PRECONDITION: Physical devices cannot be modified after being "
                           "initialized"));
    EXPECT_THAT(error([] { config::set_memory_limit(kGpu0, 65); }),
                StartsWith("FAILED_PRECONDITION: Physical devices cannot be modified after being "
                           "initialized"));
    EXPECT_THAT(error([] { config::add_backend(gpus(1)); }), StartsWith("FAILED_PRECONDITION: "));
    EXPECT_THAT(error([] { config::threading::set_intra_op_parallelism_threads(3); }),
                StartsWith("FAILED_PRECONDITION: Intra op parallelism cannot be modified after "
                           "initialization."));
    EXPECT_THAT(error([] { config::threading::set_inter_op_parallelism_threads(3); }),
                StartsWith("FAILED_PRECONDITION: Inter op parallelism cannot be modified after "
                           "initialization."));
    // The same again is no change, and neither is what has no effect.
    config::set_logical_device_configuration(kCpu, {{}, {}});
    config::set_visible_devices({kGpu1, kGpu0}, "GPU");
    config::set_visible_devices(std::vector<PhysicalDevice>{kGpu0, kGpu1}, "GPU");
    config::set_visible_devices(config::list_physical_devices());
    config::set_memory_limit(kGpu0, 64);
    config::set_memory_growth(kGpu0, false);
    config::emulate("");
    config::threading::set_intra_op_parallelism_threads(
        config::threading::get_intra_op_parallelism_threads());
    // Wrong is still wrong rather than late.
    EXPECT_THAT(error([] { config::set_visible_devices("GPU:9"); }),
                StartsWith("INVALID_ARGUMENT: Unrecognized device: 'GPU:9'"));
    // What may change at any time.
    config::set_soft_device_placement(false);
    EXPECT_FALSE(Runtime::current().soft_placement());
    config::debugging::set_log_device_placement(true);
    EXPECT_TRUE(Runtime::current().log_placement());
    config::set_placement_policy("cost");
    EXPECT_EQ(config::get_placement_policy(), "cost");
  });
}

TEST(Config, AMemoryLimitCanBeTakenBack) {
  in_new_process([] {
    const EnvironmentScope environment({{"TANDEM_MEMORY_LIMIT_MB", "GPU:1=128"}});
    const auto backend = gpus(2);
    config::add_backend(backend);
    for (const auto& gpu : {kGpu0, kGpu1}) {
      config::set_memory_limit(gpu, 64);
      config::set_memory_limit(gpu, std::nullopt);
    }
    config::set_logical_device_configuration(kGpu0, {{.memory_limit = 5}, {.memory_limit = 6}});
    config::list_logical_devices();
    ASSERT_EQ(backend->made.size(), 3u);
    EXPECT_EQ(backend->made[0].options.memory_limit, 5 * kMib);
    EXPECT_EQ(backend->made[2].options.memory_limit, 128 * kMib) << "the environment's";
    config::set_memory_limit(kGpu1, std::nullopt);
  });
}

TEST(Config, AFailedStartCanBeRepaired) {
  in_new_process([] {
    config::add_backend(gpus(2));
    config::set_memory_growth(kGpu0, true);
    EXPECT_THAT(thrown_by([] { config::list_logical_devices(); }),
                StartsWith("INVALID_ARGUMENT: Memory growth cannot differ between GPU devices"));
    EXPECT_FALSE(Runtime::default_exists());
    config::set_visible_devices({"GPU:0"});
    EXPECT_THAT(thrown_by([] { Runtime::current(); }),
                StartsWith("NOT_FOUND: No CPU devices are available in this process"));
    config::set_visible_devices({kCpu, kGpu0, kGpu1});
    config::set_memory_growth(kGpu1, true);
    EXPECT_EQ(logical_names("GPU").size(), 2u);
  });
}

TEST(Config, FlagsBeforeTheStart) {
  const std::string costs = ::testing::TempDir() + "/config_costs.json";
  CostProfile().save(costs);
  in_new_process([&] {
    EXPECT_TRUE(config::get_soft_device_placement());
    EXPECT_FALSE(config::debugging::get_log_device_placement());
    EXPECT_EQ(config::get_placement_policy(), "greedy");
    config::set_soft_device_placement(false);
    config::debugging::set_log_device_placement(true);
    EXPECT_THROW(config::set_placement_profile("no/such/costs.json"), NotFoundError);
    EXPECT_EQ(config::get_placement_policy(), "greedy");
    config::set_placement_profile(costs);
    EXPECT_EQ(config::get_placement_policy(), "cost") << "a profile is there to be used";
    EXPECT_FALSE(config::get_soft_device_placement());
    EXPECT_FALSE(Runtime::default_exists());
    EXPECT_FALSE(Runtime::current().soft_placement());
    EXPECT_TRUE(Runtime::current().log_placement());
    EXPECT_EQ(Runtime::current().placement_profile(), costs);
    EXPECT_EQ(config::get_placement_policy(), "cost");
    EXPECT_EQ(Runtime::current().device_config().origin("soft_placement"), "program");
  });
}

TEST(Config, TheEnvironmentIsSeenAndOverridden) {
  in_new_process([] {
    const EnvironmentScope environment({{"TANDEM_VISIBLE_DEVICES", "GPU:1"},
                                        {"TANDEM_LOGICAL_DEVICES", "GPU:1=5,6;CPU:0=2"},
                                        {"TANDEM_SOFT_PLACEMENT", "0"}});
    config::add_backend(gpus(2));
    EXPECT_THAT(config::get_visible_devices(), ElementsAre(kCpu, kGpu1));
    EXPECT_EQ(config::get_logical_device_configuration(kGpu1)->size(), 2u);
    EXPECT_FALSE(config::get_soft_device_placement());
    config::set_logical_device_configuration(kCpu, {{}});
    EXPECT_THAT(logical_names(), ElementsAre("/device:CPU:0", "/device:GPU:0", "/device:GPU:1"));
    EXPECT_EQ(Runtime::current().device_config().origin("logical CPU:0"), "program");
    EXPECT_EQ(Runtime::current().device_config().origin("logical GPU:1"),
              "environment TANDEM_LOGICAL_DEVICES");
  });
  in_new_process([] {
    const EnvironmentScope environment({{"TANDEM_SOFT_PLACEMENT", "maybe"}});
    EXPECT_THAT(thrown_by([] { Runtime::current(); }),
                StartsWith("INVALID_ARGUMENT: TANDEM_SOFT_PLACEMENT must be 0 or 1"));
  });
}

TEST(Config, MemoryInfo) {
  Runtime runtime({.devices = {.backends = {gpus(1)}, .memory_limit = {{"GPU:0", 64}}}});
  const RuntimeScope scope(runtime);
  EXPECT_EQ(config::get_memory_info("GPU:0").peak, 0u);
  Allocator& allocator = runtime.devices()[1]->allocator();
  allocator.allocate(1000);
  EXPECT_EQ(config::get_memory_info("/job:localhost/task:0/gpu:0").current, 1000u);
  EXPECT_EQ(config::get_memory_info("GPU:0").peak, 1000u);
  const Ref<Buffer> held = runtime.default_device().allocator().allocate(5 * kMib);
  EXPECT_GE(config::get_memory_info("CPU:0").current, 5 * kMib);
  EXPECT_GE(config::get_memory_info("CPU:0").peak, 5 * kMib);
  runtime.default_device().allocator().allocate(64 * kMib);
  EXPECT_GE(config::get_memory_info("CPU:0").peak, 69 * kMib);
  config::reset_memory_stats("CPU:0");
  EXPECT_LT(config::get_memory_info("CPU:0").peak, 69 * kMib);
  for (const char* name : {"CPU", "xx", "GPU:*", "", "GPU:0:0"}) {
    EXPECT_THAT(thrown_by([&] { config::get_memory_info(name); }),
                StartsWith(cat("INVALID_ARGUMENT: Failed parsing device name: '", name,
                               "'. Note a valid device string should at least contain a device "
                               "type and a device index, like \"GPU:0\".")));
  }
  EXPECT_THAT(thrown_by([] { config::reset_memory_stats("GPU:1"); }),
              StartsWith("INVALID_ARGUMENT: No matching devices found for 'GPU:1'"));
}

TEST(Config, ConcernsTheThreadsRuntime) {
  Runtime runtime({.devices = {.backends = {gpus(2)}, .visible = {{"CPU:0", "GPU:1"}}}});
  {
    const RuntimeScope scope(runtime);
    EXPECT_THAT(config::get_visible_devices("GPU"), ElementsAre(kGpu1));
    EXPECT_THAT(config::list_physical_devices("GPU"), ElementsAre(kGpu0, kGpu1));
    EXPECT_THAT(logical_names("GPU"), ElementsAre("/device:GPU:0"));
    config::set_visible_devices(kGpu1, "GPU");
    EXPECT_THAT(thrown_by([] { config::set_visible_devices(kGpu0, "GPU"); }),
                StartsWith("FAILED_PRECONDITION: Visible devices cannot be modified"));
    config::set_soft_device_placement(false);
    EXPECT_FALSE(config::get_soft_device_placement());
  }
  EXPECT_FALSE(runtime.soft_placement());
  EXPECT_TRUE(config::get_soft_device_placement()) << "of the default runtime";
  EXPECT_THAT(config::list_physical_devices("GPU"), IsEmpty());
}

TEST(Config, TwoThreadsConfigureAtOnce) {
  const std::string costs = ::testing::TempDir() + "/config_costs.json";
  CostProfile().save(costs);
  in_new_process([&] {
    config::add_backend(gpus(2));
    std::atomic<int> refused = 0;
    const auto work = [&](const PhysicalDevice& gpu) {
      for (int i = 0; i < 200; ++i) {
        try {
          config::set_memory_growth(gpu, true);
          config::set_memory_limit(gpu, 1 + i % 7);
          config::set_visible_devices({kGpu0, kGpu1}, "GPU");
          config::set_soft_device_placement(i % 2 == 0);
          config::set_placement_profile(i % 2 == 0 ? costs : std::string());
          config::get_visible_devices();
          if (i == 150) config::set_memory_growth(gpu == kGpu0 ? kGpu1 : kGpu0, true);
          if (i == 150) config::list_logical_devices();
        } catch (const FailedPreconditionError&) {
          ++refused;  // the other thread has started the runtime
        }
      }
    };
    std::thread first(work, kGpu0), second(work, kGpu1);
    first.join();
    second.join();
    EXPECT_GT(refused, 0);
    EXPECT_EQ(logical_names("GPU").size(), 2u);
  });
}

}  // namespace
}  // namespace tandem
