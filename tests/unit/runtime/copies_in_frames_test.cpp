// What graphs with TensorFlow 1 control flow copy between devices, and what the profiler reports
// it.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tandem/core/error.h"
#include "tandem/device/emulated/emulated_device.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/profiler.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"

#include "tests/unit/runtime/control_flow_util.h"

namespace tandem {
namespace {

constexpr int kRounds = 4;

Runtime::Options two_gpus() { return {.devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}}; }

EmulatedDevice& gpu(Runtime& runtime, std::size_t index) {
  return dynamic_cast<EmulatedDevice&>(*runtime.devices()[1 + index]);
}

std::uint64_t copies_in(Runtime& runtime, std::size_t index) {
  return gpu(runtime, index).usage(StreamKind::kCopyIn).works;
}

// Four rounds of x = x + w on GPU:0, where two nodes of GPU:1 look at x and w in each:
// sum += exp(x) * w - (sin(x) + w).
FunctionRef rounds() {
  FlowBuilder b;
  const auto on = [&](const char* device, Output value) {
    b.graph.set_requested_device(value.node, device);
    return value;
  };
  const auto gpu0 = [&](Output v) { return on("/GPU:0", v); };
  const auto gpu1 = [&](Output v) { return on("/GPU:1", v); };
  const PartialShape shape{2};
  const Output w = b.enter(b.arg(DType::kFloat, shape), "loop", true);
  const Output x = b.loop_variable(b.enter(b.arg(DType::kFloat, shape), "loop"));
  const Output sum = b.loop_variable(b.enter(b.arg(DType::kFloat, shape), "loop"));
  const Output i = b.loop_variable(b.enter(b.constant(Array::scalar(0)), "loop"));
  const Output limit = b.enter(b.constant(Array::scalar(kRounds)), "loop", true);
  const Output go_on = b.add1("LoopCond", {on("/CPU:0", b.add1("Less", {i, limit}))});
  Node* const i_switch = b.add("Switch", {i, go_on});
  Node* const x_switch = b.add("Switch", {x, go_on});
  Node* const sum_switch = b.add("Switch", {sum, go_on});
  b.close(i,
          on("/CPU:0", b.add1("AddV2", {{i_switch, 1}, b.constant(Array::scalar(1), {i_switch})})));
  const Output next = gpu0(b.add1("AddV2", {{x_switch, 1}, w}));
  b.close(x, next);
  const Output product = gpu1(b.add1("Mul", {gpu1(b.add1("Exp", {next})), w}));
  const Output added = gpu1(b.add1("AddV2", {gpu1(b.add1("Sin", {next})), w}));
  const Output change = gpu1(b.add1("Sub", {product, added}));
  b.close(sum, gpu1(b.add1("AddV2", {{sum_switch, 1}, change})));
  return b.finish({b.add1("Exit", {{x_switch, 0}}), b.add1("Exit", {{sum_switch, 0}})});
}

std::vector<Tensor> arguments() {
  DeviceScope host("/CPU:0");
  return {Tensor{0.5f, 0.25f}, Tensor{1.0f, 2.0f}, Tensor{0.0f, 0.0f}};
}

TEST(CopiesInFrames, OnceForEachDestinationAndOnceForWhatALoopDoesNotChange) {
  std::vector<float> expected;
  {
    Runtime runtime({.devices = {}});
    RuntimeScope scope(runtime);
    expected = run(rounds(), arguments())[1].to_vector<float>();
  }
  Runtime runtime(two_gpus());
  RuntimeScope scope(runtime);
  const FunctionRef f = rounds();
  for (int call = 0; call < 2; ++call) {
    for (std::size_t g = 0; g < 2; ++g) gpu(runtime, g).reset_usage();
    EXPECT_EQ(run(f, arguments())[1].to_vector<float>(), expected);
    // w and the first x to GPU:0; w, the first sum, and x in each round to GPU:1.
    EXPECT_EQ(copies_in(runtime, 0), 2u);
    EXPECT_EQ(copies_in(runtime, 1), 2u + kRounds);
  }
}

TEST(CopiesInFrames, AreRecordedWithTheKernelsOnOneTrackForEachStream) {
  Runtime runtime(two_gpus());
  RuntimeScope scope(runtime);
  const FunctionRef f = rounds();
  run(f, arguments());
  profiler::start();
  run(f, arguments());
  const profiler::Profile profile = profiler::stop();
  std::map<std::string, int> kernels, copies;  // by track
  std::map<int, double> over;                  // by track
  for (const profiler::Event& e : profile.events()) {
    const profiler::Track& track = profile.tracks()[static_cast<std::size_t>(e.track)];
    const std::string where =
        cat(track.process.substr(track.process.rfind("device:") + 7), ' ', track.name);
    if (e.kind == profiler::EventKind::kKernel) ++kernels[where];
    if (e.kind == profiler::EventKind::kCopy) ++copies[where];
    if (e.kind != profiler::EventKind::kKernel && e.kind != profiler::EventKind::kCopy) continue;
    EXPECT_LE(over[e.track], e.begin) << where;
    over[e.track] = e.end;
    EXPECT_EQ(e.function, "flow") << e.name;
  }
  EXPECT_EQ(kernels["GPU:0 compute 0"], kRounds);
  EXPECT_EQ(kernels["GPU:1 compute 0"], kRounds * 6);
  EXPECT_EQ(copies,
            (std::map<std::string, int>{{"GPU:0 copy in 0", 2}, {"GPU:1 copy in 0", 2 + kRounds}}));
  // Arrows from what made x to its copies.
  int arrows = 0;
  const auto trace = nlohmann::json::parse(profile.to_json());
  for (const auto& e : trace["traceEvents"]) arrows += e["ph"] == "s";
  EXPECT_GE(arrows, kRounds);
}

// A copy to a device that makes no way holds up what needs it, and nothing else.
TEST(CopiesInFrames, AStalledDeviceDoesNotStopAnother) {
  Runtime runtime(two_gpus());
  RuntimeScope scope(runtime);
  const FunctionRef f = rounds();
  run(f, arguments());
  const std::vector<Tensor> args = arguments();
  for (std::size_t g = 0; g < 2; ++g) gpu(runtime, g).reset_usage();
  gpu(runtime, 1).inject_fault({.stall_at = 1});
  const auto stop = std::make_shared<Cancellation>();
  std::atomic<bool> over{false};
  std::thread call([&] {
    RuntimeScope here(runtime);
    CancellationScope cancellation(stop);
    EXPECT_THROW(run(f, args), CancelledError);
    over = true;
  });
  // The limit only ends a test that has failed.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto done = [&] { return gpu(runtime, 0).usage(StreamKind::kCompute).works; };
  while (done() < kRounds && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  EXPECT_EQ(done(), std::uint64_t{kRounds}) << "GPU:0 waits for GPU:1";
  EXPECT_FALSE(over);
  stop->cancel();
  call.join();
  EXPECT_EQ(run(f, args)[0].to_vector<float>(), (std::vector<float>{3, 3}));
}

}  // namespace
}  // namespace tandem
