#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/conformance/conformance.h"
#include "tandem/device/cuda/cuda_backend.h"
#include "tandem/device/plugin_backend.h"
#include "tandem/runtime/runtime.h"

namespace tandem {
namespace {

// Null unless the library runs on the stand-in of cuda_stand_in.h.
const char* stand_in() { return std::getenv("TANDEM_TEST_CUDA_DRIVER"); }

CudaBackend backend() { return stand_in() ? CudaBackend(stand_in(), {}) : CudaBackend(); }

ConformanceOptions options_for(const CudaBackend& cuda) {
  ConformanceOptions options;
  options.many_devices = 50;  // each has streams of the hardware
  options.cannot = {{"copies/seen_by_kernels", "kernels for GPUs are not part of the device layer"},
                    {"failure/*", "a GPU that is lost stays so until the process ends"}};
  const auto devices = cuda.physical_devices();
  if (devices.size() == 1)
    options.cannot.push_back({"copies/between_physical", "there is one GPU"});
  if (cuda.properties(devices.front()).memory_bytes > std::size_t{64} << 20) {
    options.cannot.push_back({"limits/share_physical_memory", "other processes hold memory too"});
  }
  return options;
}

// With the GPUs there are, or with those of the stand-in.
class CudaDevices : public ::testing::Test {
 protected:
  void SetUp() override {
    // Machines without a GPU pass too; the stand-in's run of these tests is never skipped.
    if (!cuda.unavailable().empty()) GTEST_SKIP() << "skipped: " << cuda.unavailable();
  }
  CudaBackend cuda = backend();
};

TEST_F(CudaDevices, PassTheSuite) {
  ConformanceOptions options = options_for(cuda);
  options.begin = [](std::string_view name) { std::cout << name << std::endl; };
  const auto results = run_conformance(cuda, options);
  EXPECT_TRUE(all_passed(results)) << describe(results);
}

// Each case loses a GPU for good, so each takes another one.
TEST_F(CudaDevices, PassTheCasesOfLoss) {
  // There is no way to make a real GPU fail on request that leaves it to other processes.
  if (!stand_in()) GTEST_SKIP() << "skipped: only the stand-in's GPUs can be lost";
  std::size_t gpu = cuda.physical_devices().size();
  for (const char* name : {"failure/lost_leaves_others", "failure/lost_enqueue",
                           "failure/lost_pending", "failure/lost_waiting"}) {
    ConformanceOptions options;
    options.only = name;
    options.lose = lose_plugin_device;
    options.physical = --gpu;
    const auto results = run_conformance(cuda, options);
    EXPECT_TRUE(results.size() == 1 && all_passed(results)) << describe(results);
  }
}

TEST_F(CudaDevices, ReportOfThemselves) {
  const auto devices = cuda.physical_devices();
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices.front(), (PhysicalDevice{"/physical_device:GPU:0", "GPU"}));
  const DeviceProperties p = cuda.properties(devices.front());
  EXPECT_GT(p.memory_bytes, 0u);
  EXPECT_GT(p.flops, 0);
  EXPECT_FALSE(p.emulated);
  EXPECT_THAT(p.details.at("compute_capability"), testing::MatchesRegex("[0-9]+\\.[0-9]"));
}

// Expects what `body` expects, in a new process with this CUDA_VISIBLE_DEVICES: a driver reads it
// once.
void with_visible(const char* gpus, const std::function<void()>& body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("CUDA_VISIBLE_DEVICES", gpus, 1);
        body();
        std::exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "")
      << "CUDA_VISIBLE_DEVICES=" << gpus;
}

TEST(CudaVisibleDevices, HideAllGpus) {
  with_visible("-1", [] {
    const CudaBackend cuda = backend();
    EXPECT_TRUE(cuda.physical_devices().empty());
    EXPECT_FALSE(cuda.unavailable().empty());
    if (stand_in()) {
      EXPECT_EQ(cuda.unavailable(), "the CUDA driver finds no GPU");
    }
    EXPECT_EQ(Runtime().devices().size(), 1u) << "the CPU";
  });
}

TEST(CudaVisibleDevices, HideTheOthersAndGiveTheOrder) {
  // It takes the fifth and the second of several GPUs, which no real machine is sure to have.
  if (!stand_in()) GTEST_SKIP() << "skipped: the stand-in has the GPUs that this needs";
  with_visible("4,1", [] {
    CudaBackend cuda = backend();
    std::vector<std::string> found;
    for (const PhysicalDevice& gpu : cuda.physical_devices())
      found.push_back(gpu.name + " at " + cuda.properties(gpu).details.at("pci_bus_id"));
    EXPECT_THAT(found, testing::ElementsAre("/physical_device:GPU:0 at 0000:05:00.0",
                                            "/physical_device:GPU:1 at 0000:02:00.0"));
    EXPECT_THROW(cuda.properties({"/physical_device:GPU:2", "GPU"}), InvalidArgumentError);
    const auto device =
        cuda.make_device(cuda.physical_devices()[1], {}, DeviceSpec::parse("GPU:1"));
    EXPECT_TRUE(device->allocator().allocate(1024));
  });
}

TEST(Cuda, WithoutADriverSaysSo) {
  const CudaBackend cuda("libno_such_driver.so.1", {});
  EXPECT_EQ(cuda.unavailable(), "no CUDA driver (libno_such_driver.so.1) found");
  EXPECT_TRUE(cuda.physical_devices().empty());
  EXPECT_THROW(cuda.properties({"/physical_device:GPU:0", "GPU"}), FailedPreconditionError);
}

#ifdef TANDEM_CUDA_STUB
TEST(Cuda, TheToolkitsStubIsNoDriver) {
  EXPECT_EQ(CudaBackend(TANDEM_CUDA_STUB, {}).unavailable(),
            "no CUDA driver found: " TANDEM_CUDA_STUB " is the toolkit's stub, not a driver");
}
#endif

#ifdef TANDEM_CUDA_STAND_IN
TEST(Cuda, WithoutItsLibrarySaysSo) {
  EXPECT_EQ(CudaBackend(TANDEM_CUDA_STAND_IN, "/nowhere/libtandem_cuda.so").unavailable(),
            "a CUDA driver is there, but no libtandem_cuda.so: this Tandem was built without the "
            "CUDA toolkit");
}

TEST(Cuda, ALibraryOfAnotherBuildIsRefused) {
  // The stand-in itself is a library without the id.
  EXPECT_THAT(CudaBackend(TANDEM_CUDA_STAND_IN, TANDEM_CUDA_STAND_IN).unavailable(),
              testing::HasSubstr("is of another build of Tandem (without an id, not "));
}
#endif

}  // namespace
}  // namespace tandem
