// Devices do not wait for each other's work unless they need what it makes.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/device.h"
#include "tandem/device/emulated/emulated_device.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/graph/op_registry.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

// Two devices of hardware of their own.
Runtime::Options two_gpus(int inter_op_threads) {
  return {.inter_op_threads = inter_op_threads,
          .intra_op_threads = 1,
          .devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}};
}

// The next copy to GPU:1 never ends, and with it nothing that is given to GPU:1 later.
void stall_gpu1(Runtime& runtime) {
  dynamic_cast<EmulatedDevice&>(*runtime.devices()[2]).inject_fault({.stall_at = 1});
}

bool stalls(Device& device) { return !device.stream(StreamKind::kCopyIn).record()->done(); }

// Work in a thread of its own, which the end of the scope cancels.
class Work {
 public:
  Work(Runtime& runtime, std::function<void()> body)
      : thread_([this, &runtime, body = std::move(body)] {
          RuntimeScope scope(runtime);
          CancellationScope stop(cancellation_);
          try {
            body();
            over_.set_value(Code::kOk);
          } catch (const Error& error) {
            over_.set_value(error.code());
          }
        }) {}
  ~Work() {
    cancellation_->cancel();
    thread_.join();
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Whether it is over without being cancelled. The limit only ends a test that has failed.
  bool ends() { return code_.wait_for(std::chrono::seconds(60)) == std::future_status::ready; }
  bool is_over() const {
    return code_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  Code cancelled() {
    cancellation_->cancel();
    return code_.get();
  }

 private:
  const std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();
  std::promise<Code> over_;
  std::shared_future<Code> code_ = over_.get_future().share();
  std::thread thread_;
};

// Hands its input on, once the copy to GPU:1 stalls where there is one to wait for.
const OpRegistration kGate{{.name = "TestAfterStall", .inputs = "x: float", .outputs = "y: float"}};
std::atomic<Device*> g_stalling{nullptr};
const KernelRegistration kGateKernel{
    {.op = "TestAfterStall", .run_async = [](KernelContext& c, KernelDone done) {
       std::thread([&c, done = std::move(done)] {
         Device* const stalling = g_stalling;
         while (stalling && !stalls(*stalling)) std::this_thread::yield();
         c.set_output(0, c.input(0));
         done(nullptr);
       }).detach();
     }}};

// Says that its input was computed.
const OpRegistration kReport{{.name = "TestReport",
                              .inputs = "x: float",
                              .outputs = "y: float",
                              .traits = {.stateful = true, .cpu_only = true}}};
std::atomic<std::promise<float>*> g_result{nullptr};
const KernelRegistration kReportKernel{{.op = "TestReport", .run = [](KernelContext& c) {
                                          g_result.load()->set_value(c.input(0).values<float>()[0]);
                                          c.set_output(0, c.input(0));
                                        }}};

class SideBySide : public ::testing::TestWithParam<int> {};

// A chain on each device; GPU:0's begins once GPU:1 stalls, and reports its end.
auto two_chains() {
  return function(
      [](Tensor x) {
        Tensor a, b;
        {
          DeviceScope on("/GPU:1");
          b = x;
          for (int i = 0; i < 5; ++i) b = b * 2.0f;
        }
        {
          DeviceScope on("/CPU:0");
          a = raw_op("TestAfterStall", {x})[0];
        }
        {
          DeviceScope on("/GPU:0");
          for (int i = 0; i < 5; ++i) a = a + 1.0f;
        }
        DeviceScope on("/CPU:0");
        a = raw_op("TestReport", {a})[0];
        return a + b;
      },
      {.optimize = false});
}

// That the chain on GPU:0 ends while GPU:1 stalls, and the call when it is cancelled.
void expect_gpu0_goes_on(Runtime& runtime, const std::function<void()>& call) {
  std::promise<float> reported;
  g_result = &reported;
  g_stalling = runtime.devices()[2].get();
  stall_gpu1(runtime);
  std::future<float> value = reported.get_future();
  {
    Work work(runtime, call);
    // The limit only ends a test that has failed.
    EXPECT_EQ(value.wait_for(std::chrono::seconds(60)), std::future_status::ready)
        << "GPU:0 waits for GPU:1";
    EXPECT_FALSE(work.is_over());
    EXPECT_EQ(work.cancelled(), Code::kCancelled);
  }
  if (value.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    EXPECT_EQ(value.get(), 6.0f);
  }
}

TEST_P(SideBySide, AChainEndsWhileAnotherDeviceOfItsFunctionStalls) {
  Runtime runtime(two_gpus(GetParam()));
  RuntimeScope scope(runtime);
  const auto f = two_chains();
  // Its first call also uploads constants to the devices.
  std::promise<float> before;
  g_result = &before;
  g_stalling = nullptr;
  const Tensor x{1.0f, 2.0f};
  f(x);
  expect_gpu0_goes_on(runtime, [&] { f(x); });
}

TEST_P(SideBySide, AChainOfTheFirstCallEndsWhileAnotherDeviceStallsWithItsConstants) {
  Runtime runtime(two_gpus(GetParam()));
  RuntimeScope scope(runtime);
  const auto f = two_chains();
  const Tensor x{1.0f, 2.0f};
  expect_gpu0_goes_on(runtime, [&] { f(x); });
  // The cancelled call has left nothing half done.
  std::promise<float> reported;
  g_result = &reported;
  g_stalling = nullptr;
  EXPECT_THAT(f(x).to_vector<float>(), ::testing::ElementsAre(38, 71));
}

// Two calls wait for the same constant; the one that has it copied is cancelled.
TEST_P(SideBySide, ACancelledFirstCallLeavesItsConstantsToTheNext) {
  Runtime runtime(two_gpus(GetParam()));
  RuntimeScope scope(runtime);
  const auto f = function(
      [](Tensor x) {
        DeviceScope on("/GPU:1");
        return x * 2.0f;
      },
      {.optimize = false});
  Tensor x;
  {
    DeviceScope on("/GPU:1");
    x = random::uniform({2});
  }
  x.synchronize();
  ASSERT_EQ(dynamic_cast<EmulatedDevice&>(*runtime.devices()[2]).usage(StreamKind::kCopyIn).works,
            0u)
      << "the copy of the constant is the first";
  stall_gpu1(runtime);
  auto first = std::make_unique<Work>(runtime, [&] { f(x); });
  while (!stalls(*runtime.devices()[2])) std::this_thread::yield();
  std::vector<float> doubled;
  Work second(runtime, [&] { doubled = f(x).to_vector<float>(); });
  EXPECT_EQ(first->cancelled(), Code::kCancelled);
  EXPECT_TRUE(second.ends());
  EXPECT_EQ(second.cancelled(), Code::kOk);
  const std::vector<float> before = x.to_vector<float>();
  EXPECT_THAT(doubled, ::testing::ElementsAre(2 * before[0], 2 * before[1]));
}

TEST_P(SideBySide, FunctionsOnOneDeviceRunWhileOneOnAnotherStalls) {
  Runtime runtime(two_gpus(GetParam()));
  RuntimeScope scope(runtime);
  const auto on_device = [](const std::string& device) {
    return function([device](Tensor x) {
      DeviceScope on(device);
      for (int i = 0; i < 3; ++i) x = x + 1.0f;
      return reduce_sum(x);
    });
  };
  const auto stuck = on_device("/GPU:1"), free = on_device("/GPU:0");
  const Tensor x{1.0f, 2.0f};
  stall_gpu1(runtime);
  Work on_gpu1(runtime, [&] { stuck(x).item<float>(); });
  while (!stalls(*runtime.devices()[2])) std::this_thread::yield();
  Work on_gpu0(runtime, [&] {
    for (int i = 0; i < 50; ++i) EXPECT_EQ(free(x).item<float>(), 9.0f);
  });
  EXPECT_TRUE(on_gpu0.ends()) << "GPU:0 waits for GPU:1";
  EXPECT_FALSE(on_gpu1.is_over());
}

TEST_P(SideBySide, EagerCallsOnOneDeviceRunWhileOneOnAnotherStalls) {
  Runtime runtime(two_gpus(GetParam()));
  RuntimeScope scope(runtime);
  const Tensor x{1.0f, 2.0f};
  Tensor late;
  stall_gpu1(runtime);
  {
    DeviceScope on("/GPU:1");
    late = x + 1.0f;
  }
  while (!stalls(*runtime.devices()[2])) std::this_thread::yield();
  Work on_gpu0(runtime, [&] {
    DeviceScope on("/GPU:0");
    Tensor y = x;
    for (int i = 0; i < 50; ++i) y = y + 1.0f;
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{51, 52}));
  });
  EXPECT_TRUE(on_gpu0.ends()) << "GPU:0 waits for GPU:1";
  EXPECT_FALSE(late.is_ready());
}

// Numbers of threads between ops.
INSTANTIATE_TEST_SUITE_P(Threads, SideBySide, ::testing::Values(1, 4));

}  // namespace
}  // namespace tandem
