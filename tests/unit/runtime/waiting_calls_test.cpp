// Functions that wait in loops and branches hold no thread, however many of them there are.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

const AttrMap kFloats{{"component_types", std::vector<DType>{DType::kFloat}}};

Tensor take(const Tensor& queue) { return raw_op("QueueDequeueV2", {queue}, kFloats)[0]; }

// The sum of `n` elements, each taken in a branch in a loop in a function that is called.
auto sum_of_taken(const Tensor& queue) {
  auto inner = function([queue](Tensor n) {
    auto [left, sum] =
        while_loop([](Tensor i, Tensor) { return i > 0; },
                   [queue](Tensor i, Tensor s) {
                     const Tensor next = cond(
                         i > -1, [&] { return s + take(queue); }, [&] { return s - 1.0f; });
                     return std::tuple(i - 1, next);
                   },
                   n, Tensor(0.0f));
    return sum;
  });
  return function([inner](Tensor n) { return inner(n) * 2.0f; });
}

class WaitingCalls : public ::testing::TestWithParam<int> {};

TEST_P(WaitingCalls, AHundredStepsWaitAtOnce) {
  constexpr int kSteps = 100, kEach = 3;
  Runtime runtime({.inter_op_threads = GetParam(), .intra_op_threads = 1});
  const RuntimeScope scope(runtime);
  const Tensor queue = raw_op("FIFOQueueV2", {}, kFloats)[0];
  const auto f = sum_of_taken(queue);
  std::vector<float> results(kSteps);
  std::vector<std::thread> steps;
  for (int s = 0; s < kSteps; ++s) {
    steps.emplace_back([&, s] {
      const RuntimeScope here(runtime);
      results[static_cast<std::size_t>(s)] = f(Tensor(std::int32_t{kEach})).item<float>();
    });
  }
  std::thread feeder([&] {
    const RuntimeScope here(runtime);
    for (int i = 0; i < kSteps * kEach; ++i) raw_op("QueueEnqueueV2", {queue, Tensor(1.0f)});
  });
  feeder.join();
  for (std::thread& step : steps) step.join();
  EXPECT_EQ(results, std::vector<float>(kSteps, 2.0f * kEach));
}

TEST_P(WaitingCalls, LongLoopsTakeNoStack) {
  Runtime runtime({.inter_op_threads = GetParam(), .intra_op_threads = 1});
  const RuntimeScope scope(runtime);
  constexpr int kMany = 20000;
  const Tensor queue = raw_op("FIFOQueueV2", {}, kFloats)[0];
  const auto f = sum_of_taken(queue);
  std::thread feeder([&] {
    const RuntimeScope here(runtime);
    for (int i = 0; i < kMany; ++i) raw_op("QueueEnqueueV2", {queue, Tensor(1.0f)});
  });
  EXPECT_EQ(f(Tensor(std::int32_t{kMany})).item<float>(), 2.0f * kMany);
  feeder.join();
}

TEST_P(WaitingCalls, EndWhenTheyAreCancelled) {
  Runtime runtime({.inter_op_threads = GetParam(), .intra_op_threads = 1});
  const RuntimeScope scope(runtime);
  const Tensor queue = raw_op("FIFOQueueV2", {}, kFloats)[0];
  const auto f = sum_of_taken(queue);
  const auto stop = std::make_shared<Cancellation>();
  std::thread step([&] {
    const RuntimeScope here(runtime);
    const CancellationScope stops(stop);
    EXPECT_THROW(f(Tensor(5)), CancelledError);
  });
  raw_op("QueueEnqueueV2", {queue, Tensor(1.0f)});
  stop->cancel();
  step.join();
}

TEST_P(WaitingCalls, PassFailuresOn) {
  Runtime runtime({.inter_op_threads = GetParam(), .intra_op_threads = 1});
  const RuntimeScope scope(runtime);
  const Tensor queue = raw_op("FIFOQueueV2", {}, kFloats)[0];
  const auto f = sum_of_taken(queue);
  raw_op("QueueEnqueueV2", {queue, Tensor(1.0f)});
  raw_op("QueueCloseV2", {queue});
  EXPECT_THROW(f(Tensor(2)), OutOfRangeError);
}

INSTANTIATE_TEST_SUITE_P(InterOpThreads, WaitingCalls, ::testing::Values(1, 2, 4));

// ---- Kernels of the asynchronous form alone, on a device ----

const OpRegistration kPending{{.name = "TestPending", .inputs = "x: float", .outputs = "y: float"}};
const KernelRegistration kPendingKernel{
    {.op = "TestPending", .run_async = [](KernelContext& c, KernelDone done) {
       std::thread([&c, done = std::move(done)] {
         const Array& x = c.input(0);
         Array& y = c.allocate_output(0, x.shape());
         for (std::int64_t i = 0; i < x.num_elements(); ++i)
           y.data<float>()[i] = x.data<float>()[i] + 1.0f;
         done(nullptr);
       }).detach();
     }}};

TEST(AsynchronousKernel, RunsOnADevice) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,latency=0us"}}});
  const RuntimeScope scope(runtime);
  const auto body = [](Tensor x) {
    const DeviceScope on("/GPU:0");
    return raw_op("TestPending", {x * 2.0f})[0] * 3.0f;
  };
  const Tensor x{1.0f, 2.0f};
  EXPECT_EQ(function(body)(x).to_vector<float>(), (std::vector<float>{9, 15}));
  EXPECT_EQ(body(x).to_vector<float>(), (std::vector<float>{9, 15})) << "eager";
}

}  // namespace
}  // namespace tandem
