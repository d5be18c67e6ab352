// The memory of a device GPU:0 on the stand-in for the driver: reserved ranges of addresses that
// memory is put into, and what replaces them.

#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/device.h"
#include <tandem/tandem.h>

#include "tests/cuda/in_new_process.h"
#include "tests/cuda/stand_in_driver.h"

namespace tandem {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

StandInUse used() { return driver().used(); }

// The GPU's memory is 1 GiB, of which 992 MiB are there for Tandem.
Allocator& gpu_memory(Runtime& runtime) {
  for (const auto& device : runtime.devices()) {
    if (device->type() == "GPU") return device->allocator();
  }
  throw NotFoundError("there is no GPU");
}

Runtime::Options growing() {
  Runtime::Options options;
  options.devices.memory_growth = {{"GPU:0", true}};
  return options;
}

TEST(MemoryOfGpus, ThatGrowsStaysInOnePiece) {
  Runtime runtime(growing());
  Allocator& memory = gpu_memory(runtime);
  {
    std::vector<Ref<Buffer>> parts;
    for (int i = 0; i < 9; ++i) parts.push_back(memory.allocate(100 * kMiB));
    EXPECT_GE(memory.stats().reserved, 900 * kMiB);
  }
  // In pieces of the sizes by which it grew this would not fit anywhere.
  const Ref<Buffer> all = memory.allocate(950 * kMiB);
  EXPECT_EQ(all->size(), 950 * kMiB);
  EXPECT_EQ(memory.stats().current, 950 * kMiB);
}

TEST(MemoryOfGpus, GoesBackToOthersOnRequest) {
  Runtime first(growing()), second(growing());
  {
    const Ref<Buffer> much = gpu_memory(first).allocate(700 * kMiB);
    EXPECT_THROW(gpu_memory(second).allocate(700 * kMiB), ResourceExhaustedError);
  }
  EXPECT_GE(used().device_bytes, static_cast<long long>(700 * kMiB));
  const Ref<Buffer> now = gpu_memory(second).allocate(700 * kMiB);
  EXPECT_EQ(now->size(), 700 * kMiB);
  EXPECT_LT(gpu_memory(first).stats().reserved, 700 * kMiB);
}

TEST(MemoryOfGpus, KeepsToLimitsOfLogicalDevices) {
  Runtime::Options options;
  options.devices.logical = {{"GPU:0", {{.memory_limit = 3}, {.memory_limit = 500}}}};
  Runtime runtime(options);
  Allocator& memory = gpu_memory(runtime);
  const Ref<Buffer> two = memory.allocate(2 * kMiB), one = memory.allocate(kMiB);
  EXPECT_THROW(memory.allocate(1), ResourceExhaustedError);
  EXPECT_EQ(memory.stats().current, 3 * kMiB);
}

TEST(MemoryOfGpus, GoesBackToTheDriverWithTheDevice) {
  const StandInUse before = used();
  {
    Runtime runtime(growing());
    const Ref<Buffer> some = gpu_memory(runtime).allocate(50 * kMiB);
    EXPECT_GT(used().reserved_ranges, before.reserved_ranges);
  }
  EXPECT_EQ(used().reserved_ranges, before.reserved_ranges);
  EXPECT_EQ(used().device_bytes, before.device_bytes);
}

// Expects what `body` expects, in a process of its own with this variable.
void with_variable(const char* name, const std::function<void()>& body) {
  in_new_process([&] {
    setenv(name, "1", 1);
    body();
  });
}

void add_on_gpu() {
  const DeviceScope on("/GPU:0");
  EXPECT_EQ(add(ones({3}), ones({3})).to_vector<float>(), (std::vector<float>{2, 2, 2}));
}

TEST(MemoryOfGpus, ComesInBlocksWhereTheDriverReservesNoAddresses) {
  with_variable("CUDA_STAND_IN_WITHOUT_RANGES", [] {
    add_on_gpu();
    EXPECT_EQ(used().reserved_ranges, 0);
    EXPECT_GT(used().device_bytes, 0);
  });
}

TEST(MemoryOfGpus, IsManagedOnRequest) {
  with_variable("TANDEM_CUDA_MANAGED_MEMORY", [] {
    add_on_gpu();
    EXPECT_EQ(used().reserved_ranges, 0);
    EXPECT_GT(used().managed_blocks, 0);
  });
}

}  // namespace
}  // namespace tandem
