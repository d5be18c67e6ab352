// Copies that make no way, and calls that never end, end when they are cancelled or with their
// runtime.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/device.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/graph/op_registry.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/runtime/control_flow_util.h"

namespace tandem {
namespace {

// Hands its input on and counts.
std::atomic<int> g_rounds{0};
const OpRegistration kRound{{.name = "TestRound",
                             .inputs = "x: int32",
                             .outputs = "y: int32",
                             .traits = {.stateful = true, .cpu_only = true}}};
const KernelRegistration kRoundKernel{{.op = "TestRound", .run = [](KernelContext& c) {
                                         ++g_rounds;
                                         c.set_output(0, c.input(0));
                                       }}};

Runtime::Options stalls_at(int copy) {
  return {.devices = {
              .emulate = {"GPU:1,memory=8MiB,latency=0us,fault=stall@" + std::to_string(copy)}}};
}

// What `body` threw in another thread, after `interrupt` ran while it was at a copy.
Code code_after(Runtime& runtime, const std::shared_ptr<Cancellation>& cancellation,
                const std::function<void()>& body, const std::function<void()>& interrupt) {
  const std::shared_ptr<Device> gpu = runtime.devices()[1];
  Code code = Code::kOk;
  std::atomic<bool> over{false};
  std::thread worker([&] {
    RuntimeScope scope(runtime);
    CancellationScope stop(cancellation);
    try {
      body();
    } catch (const Error& error) {
      code = error.code();
    }
    over = true;
  });
  // A stream has nothing to do until the first copy, which is the one that stalls.
  const auto at_work = [&](StreamKind kind) { return !gpu->stream(kind).record()->done(); };
  while (!at_work(StreamKind::kCopyIn) && !at_work(StreamKind::kCopyOut) && !over)
    std::this_thread::yield();
  interrupt();
  worker.join();
  return code;
}

Code code_when_cancelled(Runtime& runtime, const std::function<void()>& body) {
  const auto stop = std::make_shared<Cancellation>();
  return code_after(runtime, stop, body, [&] { stop->cancel(); });
}

std::function<void()> step_on_gpu() {
  return [] {
    auto f = function([](Tensor x) {
      DeviceScope on("/GPU:0");
      return x + x;
    });
    f(Tensor::from(std::vector<float>(256), {16, 16}));
  };
}

TEST(StalledCopy, EndsWhenTheStepIsCancelled) {
  Runtime runtime(stalls_at(1));
  EXPECT_EQ(code_when_cancelled(runtime, step_on_gpu()), Code::kCancelled);
  // The device goes on working.
  RuntimeScope scope(runtime);
  EXPECT_NO_THROW(step_on_gpu()());
}

TEST(StalledCopy, EndsWhenAGraphWithControlFlowIsCancelled) {
  Runtime runtime(stalls_at(1));
  const auto body = [] {
    FlowBuilder b;
    const Output pred = b.arg(DType::kBool), x = b.arg(DType::kFloat);
    Node* data = b.add("Switch", {x, pred});
    Node* merge = b.add("Merge", {b.add1("Neg", {{data, 0}}), b.add1("Square", {{data, 1}})});
    run(b.finish({{merge, 0}}), {Tensor(true), ones({4, 4})});
  };
  EXPECT_EQ(code_when_cancelled(runtime, body), Code::kCancelled);
}

TEST(StalledCopy, EndsWhenAReadIsCancelled) {
  Runtime runtime(stalls_at(1));
  const auto body = [] {
    DeviceScope on("/GPU:0");
    ones({16, 16}).array();
  };
  EXPECT_EQ(code_when_cancelled(runtime, body), Code::kCancelled);
}

// That `body`, which never ends by itself, ends with its runtime, whatever else may cancel it.
void expect_ends_with_its_runtime(const std::function<void()>& body) {
  auto runtime =
      std::make_unique<Runtime>(Runtime::Options{.devices = {.emulate = {"GPU:1,latency=0us"}}});
  const auto own = std::make_shared<Cancellation>();
  g_rounds = 0;
  Code code = Code::kOk;
  std::thread worker([&, at = runtime.get()] {
    RuntimeScope scope(*at);
    CancellationScope stop(own);
    try {
      body();
    } catch (const Error& error) {
      code = error.code();
    }
  });
  // The limits only end a test that has failed.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (g_rounds < 3 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  EXPECT_GE(g_rounds, 3);
  std::this_thread::sleep_for(
      std::chrono::milliseconds(20));  // for it to come to what it waits for
  std::promise<void> gone;
  std::thread end([&] {
    runtime.reset();
    gone.set_value();
  });
  EXPECT_EQ(gone.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready)
      << "it waits for the call";
  EXPECT_FALSE(own->cancelled());
  own->cancel();
  worker.join();
  end.join();
  EXPECT_EQ(code, Code::kCancelled);
}

TEST(EndlessCall, OfALoopEndsWithItsRuntime) {
  expect_ends_with_its_runtime([] {
    auto f = function([](Tensor x) {
      return while_loop([](Tensor i) { return i < 5; },
                        [](Tensor i) { return raw_op("TestRound", {i})[0]; }, x);
    });
    f(Tensor(1));
  });
}

TEST(EndlessCall, OfAGraphWithControlFlowEndsWithItsRuntime) {
  expect_ends_with_its_runtime([] {
    FlowBuilder b;
    const Output i = b.loop_variable(b.enter(b.arg(DType::kInt32), "loop"));
    const Output limit = b.enter(b.constant(Array::scalar(5)), "loop", true);
    Node* const choice = b.add("Switch", {i, b.add1("LoopCond", {b.add1("Less", {i, limit})})});
    b.close(i, b.add1("TestRound", {{choice, 1}}));
    run(b.finish({b.add1("Exit", {{choice, 0}})}), {Tensor(1)});
  });
}

TEST(EndlessCall, ThatWaitsForAQueueEndsWithItsRuntime) {
  expect_ends_with_its_runtime([] {
    FlowBuilder b;
    Node* last = b.add("TestRound", {b.arg(DType::kInt32)});
    for (int i = 0; i < 2; ++i) last = b.add("TestRound", {{last, 0}});
    const AttrMap types{{"component_types", std::vector<DType>{int32}}};
    const Output queue = b.add1("FIFOQueueV2", {}, types);
    run(b.finish({b.add1("QueueDequeueV2", {queue}, types, {last})}), {Tensor(1)});
  });
}

TEST(StalledCopy, EndsWithItsRuntime) {
  auto runtime = std::make_unique<Runtime>(stalls_at(1));
  EXPECT_EQ(code_after(*runtime, nullptr, step_on_gpu(), [&] { runtime.reset(); }),
            Code::kCancelled);
}

}  // namespace
}  // namespace tandem
