// What a call copies from device to device.
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/emulated/emulated_device.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/profiler.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using ::testing::Each;
using ::testing::Pair;
using ::testing::SizeIs;

EmulatedDevice& gpu(Runtime& runtime, std::size_t index) {
  return dynamic_cast<EmulatedDevice&>(*runtime.devices()[1 + index]);
}

std::string short_name(std::string_view device) {
  return std::string(device.substr(device.rfind("device:") + 7));
}

// How often each value was copied in a call, as "MatMul GPU:0 CPU:0".
std::map<std::string, int> copies_of(const std::function<void()>& call) {
  profiler::start();
  call();
  const profiler::Profile profile = profiler::stop();
  std::map<std::string, int> copies;
  for (const auto& event : profile.events()) {
    if (event.kind == profiler::EventKind::kCopy)
      ++copies[cat(event.name, ' ', short_name(event.from), ' ', short_name(event.to))];
  }
  return copies;
}

// Integers of 32 bits stay on the host, constants too, until an op of a device reads them.
TEST(Copies, ConstantIndicesAreCopiedToTheDeviceThatReadsThem) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  const auto f = function(
      [](Tensor x) {
        DeviceScope on("/GPU:0");
        return gather(x, Tensor{2, 0});
      },
      {.optimize = false});
  DeviceScope host("/CPU:0");
  const Tensor x{1.0f, 2.0f, 3.0f};
  const Tensor first = f(x);
  EXPECT_EQ(first.to_vector<float>(), (std::vector<float>{3, 1}));
  const auto copies = copies_of([&] { EXPECT_TRUE(all_equal(f(x), first)); });
  int to_gpu = 0;
  for (const auto& [name, count] : copies)
    if (name.ends_with("CPU:0 GPU:0")) to_gpu += count;
  EXPECT_EQ(to_gpu, 2) << ::testing::PrintToString(copies);
}

TEST(Copies, AValueGoesOnceToEachMemoryAnyCallerUsesItThere) {
  Runtime runtime({.devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  const auto f = function(
      [](Tensor x) {
        Tensor a, b, c;
        {
          DeviceScope on("/GPU:0");
          a = exp(x) + square(x);
        }
        {
          DeviceScope on("/GPU:1");
          b = sin(a) + cos(a) + matmul(a, a);
        }
        DeviceScope on("/CPU:0");
        return tanh(a) + square(a) + b;
      },
      {.optimize = false});
  DeviceScope host("/CPU:0");
  const Tensor x = fill({4, 4}, 0.5f);
  const Tensor first = f(x);
  for (int call = 0; call < 3; ++call) {
    for (std::size_t g = 0; g < 2; ++g) gpu(runtime, g).reset_usage();
    const auto copies = copies_of([&] { EXPECT_TRUE(all_equal(f(x), first)); });
    // The argument to GPU:0, the sum to GPU:1 and to the host, and what GPU:1 made to the host.
    EXPECT_THAT(copies, SizeIs(4)) << ::testing::PrintToString(copies);
    EXPECT_THAT(copies, Each(Pair(::testing::_, 1))) << ::testing::PrintToString(copies);
    // So say the devices.
    EXPECT_EQ(gpu(runtime, 0).usage(StreamKind::kCopyIn).works, 1u);
    EXPECT_EQ(gpu(runtime, 1).usage(StreamKind::kCopyIn).works, 1u);
    EXPECT_EQ(gpu(runtime, 0).usage(StreamKind::kCopyOut).works, 1u);
    EXPECT_EQ(gpu(runtime, 1).usage(StreamKind::kCopyOut).works, 1u);
  }
}

}  // namespace
}  // namespace tandem
