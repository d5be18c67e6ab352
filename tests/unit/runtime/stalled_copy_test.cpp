// A copy that makes no way ends when its step is cancelled, or with its runtime.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/device.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/runtime/control_flow_util.h"

namespace tandem {
namespace {

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

TEST(StalledCopy, EndsWithItsRuntime) {
  auto runtime = std::make_unique<Runtime>(stalls_at(1));
  EXPECT_EQ(code_after(*runtime, nullptr, step_on_gpu(), [&] { runtime.reset(); }),
            Code::kCancelled);
}

}  // namespace
}  // namespace tandem
