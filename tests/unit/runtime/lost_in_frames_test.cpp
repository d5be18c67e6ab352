// Graphs with TensorFlow 1 control flow go on without a device that is lost.
#include <string>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/emulated/emulated_device.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"

#include "tests/unit/runtime/control_flow_util.h"

namespace tandem {
namespace {

// x doubled five times, in a loop.
FunctionRef doubled_five_times() {
  FlowBuilder b;
  const Output x = b.loop_variable(b.enter(b.arg(DType::kFloat), "loop"));
  const Output i = b.loop_variable(b.enter(b.constant(Array::scalar(0)), "loop"));
  const Output limit = b.enter(b.constant(Array::scalar(5)), "loop", true);
  const Output go_on = b.add1("LoopCond", {b.add1("Less", {i, limit})});
  Node* i_switch = b.add("Switch", {i, go_on});
  Node* x_switch = b.add("Switch", {x, go_on});
  Node* pivot = b.add("Identity", {{i_switch, 1}});
  b.close(i, b.add1("AddV2", {{pivot, 0}, b.constant(Array::scalar(1), {pivot})}));
  b.close(x, b.add1("AddV2", {{x_switch, 1}, {x_switch, 1}}));
  return b.finish({b.add1("Exit", {{x_switch, 0}})});
}

EmulatedDevice& gpu(Runtime& runtime, std::size_t index) {
  return dynamic_cast<EmulatedDevice&>(*runtime.devices()[1 + index]);
}

TEST(LostInFrames, TheNextRunGoesToAnotherDevice) {
  Runtime runtime({.devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  const FunctionRef f = doubled_five_times();
  const Tensor x = Tensor::from(std::vector<float>{1, 2}, {2});
  const Tensor before = run(f, {x})[0];
  EXPECT_EQ(before.to_vector<float>(), (std::vector<float>{32, 64}));
  EXPECT_EQ(before.device(), gpu(runtime, 0).name());
  gpu(runtime, 0).lose("unplugged");
  for (int i = 0; i < 2; ++i) {
    const Tensor after = run(f, {x})[0];
    EXPECT_EQ(after.to_vector<float>(), (std::vector<float>{32, 64}));
    EXPECT_EQ(after.device(), gpu(runtime, 1).name());
  }
  gpu(runtime, 1).lose("unplugged too");
  EXPECT_EQ(run(f, {x})[0].to_vector<float>(), (std::vector<float>{32, 64})) << "on the host";
}

TEST(InFrames, TheNextRunGoesWhereItsScopeSays) {
  Runtime runtime({.devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  const FunctionRef f = doubled_five_times();
  const Tensor x = Tensor::from(std::vector<float>{1, 2}, {2});
  for (const char* asked : {"/GPU:0", "/GPU:1", "/CPU:0", "/GPU:1"}) {
    const DeviceScope device(asked);
    const Tensor y = run(f, {x})[0];
    EXPECT_TRUE(y.device().ends_with(std::string(asked).substr(1))) << asked << " " << y.device();
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{32, 64}));
  }
}

TEST(LostInFrames, AStepInWhichTheDeviceIsLostFailsAndTheNextWorks) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,memory=8MiB,latency=0us,fault=lost@3"}}});
  RuntimeScope scope(runtime);
  const FunctionRef f = doubled_five_times();
  const Tensor x = Tensor::from(std::vector<float>{1, 2}, {2});
  EXPECT_THROW(run(f, {x}), UnavailableError);
  EXPECT_EQ(run(f, {x})[0].to_vector<float>(), (std::vector<float>{32, 64}));
}

// A generator that goes on, not one that starts over, whichever device is left.
TEST(LostInFrames, RandomNumbersGoOn) {
  const auto draw = [](bool lose) {
    Runtime runtime({.devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}});
    RuntimeScope scope(runtime);
    FlowBuilder b;
    const Output pred = b.arg(DType::kBool);
    const Output drawn = b.add1("RandomUniform", {b.constant(Array::vector(std::vector<int>{3}))},
                                {{"dtype", DType::kFloat}, {"seed", std::int64_t{3}}});
    Node* data = b.add("Switch", {drawn, pred});
    const FunctionRef f = b.finish({{b.add("Merge", {{data, 0}, {data, 1}}), 0}});
    std::vector<std::vector<float>> drawn_values;
    for (int i = 0; i < 3; ++i) {
      if (lose && i == 1) gpu(runtime, 0).lose("unplugged");
      drawn_values.push_back(run(f, {Tensor(true)})[0].to_vector<float>());
    }
    return drawn_values;
  };
  EXPECT_EQ(draw(true), draw(false));
}

}  // namespace
}  // namespace tandem
