// What the environment says of devices, and which of its names have no meaning.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/config/environment_names.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"

#include "tests/unit/runtime/device_config_util.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::vector<std::string> physical_names(const Runtime& runtime) {
  std::vector<std::string> names;
  for (const auto& device : runtime.devices())
    names.push_back(runtime.physical_device(*device).name);
  return names;
}

// Like CUDA_VISIBLE_DEVICES has it.
TEST(VisibleDevices, AreNumberedAsTheEnvironmentListsThem) {
  const EnvironmentScope environment({{"TANDEM_EMULATE", "GPU:3,memory=8MiB;NPU:1,memory=8MiB"},
                                      {"TANDEM_VISIBLE_DEVICES", "GPU:2,NPU:0,GPU:0"}});
  const Runtime runtime;
  EXPECT_THAT(physical_names(runtime),
              ElementsAre("/physical_device:CPU:0", "/physical_device:GPU:2",
                          "/physical_device:NPU:0", "/physical_device:GPU:0"));
  EXPECT_EQ(runtime.devices()[1]->name(), "/job:localhost/replica:0/task:0/device:GPU:0");
  EXPECT_EQ(runtime.devices()[3]->name(), "/job:localhost/replica:0/task:0/device:GPU:1");
}

TEST(VisibleDevices, ALogicalDeviceReportsThePhysicalOne) {
  Runtime runtime(
      {.devices = {.emulate = {"GPU:3,memory=8MiB"},
                   .visible = {{"CPU:0", "GPU:2"}},
                   .logical = {{"GPU:2", {{.memory_limit = 1}, {.memory_limit = 2}}}}}});
  RuntimeScope scope(runtime);
  for (const config::LogicalDevice& device : config::list_logical_devices("GPU")) {
    EXPECT_EQ(device.physical_device, "/physical_device:GPU:2") << device.name;
    EXPECT_FALSE(config::get_device_details(device.physical_device).contains("lost"));
  }
}

// Like TensorFlow has it: the list is a set.
TEST(VisibleDevices, AreNumberedByTheHardwareWhereTheProgramSetsThem) {
  in_new_process([] {
    config::emulate("GPU:3,memory=8MiB");
    config::set_visible_devices({"GPU:2", "GPU:0"}, "GPU");
    EXPECT_THAT(
        physical_names(Runtime::current()),
        ElementsAre("/physical_device:CPU:0", "/physical_device:GPU:0", "/physical_device:GPU:2"));
  });
}

TEST(Environment, UnknownVariablesAreFoundWithTheNearestKnownOne) {
  EXPECT_THAT(unknown_variables(), IsEmpty());
  const EnvironmentScope environment({{"TANDEM_EMULATED", "GPU:1"},
                                      {"TANDEM_TEST_ANYTHING", "1"},
                                      {"TANDEM_COLOUR_OF_THE_SKY", "blue"},
                                      {"TANDEM_LOG_LEVEL", "1"}});
  const std::vector<UnknownVariable> unknown = unknown_variables();
  ASSERT_EQ(unknown.size(), 2u);
  EXPECT_EQ(unknown[0].name, "TANDEM_COLOUR_OF_THE_SKY");
  EXPECT_EQ(unknown[0].nearest, "");
  EXPECT_EQ(unknown[1].name, "TANDEM_EMULATED");
  EXPECT_EQ(unknown[1].nearest, "TANDEM_EMULATE");
}

TEST(Environment, AnOpThatDoesNotExistIsNoOpWithoutAKernel) {
  EXPECT_THAT(thrown_by([] {
                const EnvironmentScope environment({{"TANDEM_EMULATE", "GPU:1,without=MatMull"}});
                Runtime runtime;
              }),
              AllOf(StartsWith("INVALID_ARGUMENT: TANDEM_EMULATE"), HasSubstr("without=MatMull"),
                    HasSubstr("Did you mean 'MatMul'?")));
  EXPECT_THAT(thrown_by([] { Runtime runtime({.devices = {.emulate = {"GPU:1,without=Relo"}}}); }),
              AllOf(StartsWith("INVALID_ARGUMENT: emulate"), HasSubstr("'Relu'")));
}

TEST(Threads, AreBounded) {
  EXPECT_THAT(thrown_by([] { config::threading::set_intra_op_parallelism_threads(1000000); }),
              AllOf(StartsWith("INVALID_ARGUMENT: Intra op"), HasSubstr("1000000"),
                    HasSubstr("4096 threads")));
  EXPECT_THAT(thrown_by([] { config::threading::set_inter_op_parallelism_threads(-1); }),
              StartsWith("INVALID_ARGUMENT: Inter op"));
  EXPECT_THAT(thrown_by([] { Runtime runtime({.inter_op_threads = 4097}); }),
              StartsWith("INVALID_ARGUMENT: Inter op"));
}

}  // namespace
}  // namespace tandem
