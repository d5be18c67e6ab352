// The memory of a device GPU:0 on the stand-in for the driver: reserved ranges of addresses that
// memory is put into, and what replaces them.

#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/device.h"
#include "tandem/device/memory_space.h"
#include "tandem/runtime/runtime.h"
#include <tandem/tandem.h>

#include "tests/cuda/in_new_process.h"
#include "tests/cuda/stand_in_driver.h"

namespace tandem {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

StandInUse used() { return driver().used(); }

Device& gpu_of(Runtime& runtime) {
  for (const auto& device : runtime.devices()) {
    if (device->type() == "GPU") return *device;
  }
  throw NotFoundError("there is no GPU");
}
// The GPU's memory is 1 GiB, of which 992 MiB are there for Tandem.
Allocator& gpu_memory(Runtime& runtime) { return gpu_of(runtime).allocator(); }

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

// GPUs begin no kernel, and no copy within their memory, while the test holds the mutex for it.
struct Gates {
  std::mutex kernels, copies;
};
Gates& gates() {
  static Gates all;
  return all;
}
void pass_gates(const StandInActivity& activity) {
  if (!activity.begins) return;
  if (activity.kind == StandInActivity::kKernel) const std::lock_guard pass(gates().kernels);
  if (activity.kind == StandInActivity::kCopy) const std::lock_guard pass(gates().copies);
}

// An update of a variable whose value a kernel on its way still reads goes to other memory, where
// the GPU first copies the value. When the reader is done the copy may have yet to come.
TEST(MemoryOfGpus, OfAReplacedValueStaysUntilTheGpuHasCopiedIt) {
  const DeviceScope on("/GPU:0");
  const Variable weights(fill({1000}, 2.0f));
  const Tensor one = fill({1000}, 1.0f);
  EXPECT_EQ((weights.read_value() * one).to_vector<float>()[0], 2);
  std::unique_lock no_kernels(gates().kernels), no_copies(gates().copies);
  driver().observe(pass_gates);

  const long long before = driver().kernels();
  const Tensor product = weights.read_value() * one;
  std::thread update([&] { weights.assign_add(one); });  // which waits for the GPU
  while (driver().kernels() < before + 2) std::this_thread::yield();
  no_kernels.unlock();
  EXPECT_EQ(product.to_vector<float>(), std::vector<float>(1000, 2.0f));  // the reader is done
  const std::vector<float> sevens(1000, 7.0f);
  std::vector<Array> others;
  for (int i = 0; i < 4; ++i) {
    others.push_back(
        copy_to_device(Array::from<float>(sevens, Shape{1000}), gpu_of(Runtime::current())));
  }
  no_copies.unlock();
  update.join();
  driver().observe(nullptr);
  EXPECT_EQ(weights.read_value().to_vector<float>(), std::vector<float>(1000, 3.0f));
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
