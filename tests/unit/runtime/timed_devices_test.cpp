// What takes time on a device that only takes time (compute=timed), and what does not.
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/device/emulated/emulated_device.h"
#include "tandem/ops/ops.h"
#include "tandem/placement/device_set.h"
#include "tandem/runtime/explain.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/runtime/control_flow_util.h"

namespace tandem {
namespace {

constexpr std::int64_t kSize = 64;
constexpr double kSeconds = static_cast<double>(kSize * kSize) / 1e6;  // of one elementwise op

Runtime::Options timed() {
  return {.devices = {.emulate = {"GPU:1,memory=8MiB,compute=timed,flops=1M,latency=0us"}}};
}

// Seconds that the device says its compute streams were busy: by its own clock, so exact.
double busy_seconds(Runtime& runtime, const std::function<void()>& work) {
  auto& gpu = dynamic_cast<EmulatedDevice&>(*runtime.devices()[1]);
  gpu.reset_usage();
  work();
  gpu.stream(StreamKind::kCompute).synchronize();
  return gpu.usage(StreamKind::kCompute).busy_seconds;
}

Tensor values() { return Tensor::from(std::vector<float>(kSize * kSize, 2.0f), {kSize, kSize}); }

TEST(TimedDevices, TakeNoTimeForIntegersAndBooleans) {
  Runtime runtime(timed());
  RuntimeScope scope(runtime);
  const Tensor x = values();
  const auto f = function([](Tensor a) {
    const Tensor i = cast(a, DType::kInt64);
    return std::vector<Tensor>{i * i, a < 3.0f, argmax(a, 0)};
  });
  EXPECT_EQ(busy_seconds(runtime, [&] { EXPECT_EQ(f(x)[0].to_vector<std::int64_t>()[5], 4); }), 0);
  EXPECT_EQ(busy_seconds(runtime, [&] { cast(x, DType::kInt64).synchronize(); }), 0);
  EXPECT_NEAR(busy_seconds(runtime, [&] { square(x).synchronize(); }), kSeconds, 1e-6);
  const auto g = function([](Tensor a) { return cast(square(a), DType::kInt64); });
  EXPECT_NEAR(busy_seconds(runtime, [&] { g(x).synchronize(); }), kSeconds, 1e-6);
}

TEST(TimedDevices, NorInGraphsWithControlFlow) {
  Runtime runtime(timed());
  RuntimeScope scope(runtime);
  FlowBuilder b;
  Node* data = b.add("Switch", {b.arg(DType::kFloat, {kSize, kSize}), b.arg(DType::kBool)});
  const Output floats = b.add1("Square", {{data, 0}});
  const Output integers = b.add1("Cast", {{data, 1}}, {{"DstT", DType::kInt64}});
  const auto f = b.finish({}, {floats.node, integers.node});
  const Tensor x = values();
  EXPECT_EQ(busy_seconds(runtime, [&] { run(f, {x, Tensor(true)}); }), 0);
  EXPECT_NEAR(busy_seconds(runtime, [&] { run(f, {x, Tensor(false)}); }), kSeconds, 1e-6);
}

TEST(TimedDevices, AreForecastSo) {
  Runtime runtime(timed());
  RuntimeScope scope(runtime);
  const Tensor x = square(values());  // there, so that nothing has to be copied
  const auto f = function([](Tensor a) { return cast(a, DType::kInt64); });
  EXPECT_EQ(explain(f, x).step_seconds, 0);
  // A device that computes takes its time: one that is there, or that is only described.
  ExplainOptions options;
  options.devices = DeviceSet::of(runtime.devices());
  options.devices->devices[1].computes = true;
  EXPECT_NEAR(explain(options, f, x).step_seconds, kSeconds, 1e-6);
}

}  // namespace
}  // namespace tandem
