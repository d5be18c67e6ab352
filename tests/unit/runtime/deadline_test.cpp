// What is under a deadline ends with it, wherever it blocks, and says what had not ended.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/runtime/control_flow_util.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

const AttrMap kFloats{{"component_types", std::vector<DType>{DType::kFloat}}};

// A queue of its own: without a name, equal calls would get the same one.
Tensor queue() {
  static std::atomic<int> made{0};
  AttrMap attrs = kFloats;
  attrs.set("shared_name", "deadline_test_" + std::to_string(++made));
  return raw_op("FIFOQueueV2", {}, attrs)[0];
}

// The message of what `body`, which never ends by itself, throws under a deadline of 30 ms.
std::string overdue(const std::function<void()>& body) {
  const auto begin = Clock::now();
  try {
    const DeadlineScope within(30ms);
    body();
  } catch (const DeadlineExceededError& error) {
    const auto took = Clock::now() - begin;
    EXPECT_GE(took, 30ms);
    // For who looks at the log: how long after its deadline it ended.
    const double late = std::chrono::duration<double, std::milli>(took - 30ms).count();
    ::testing::Test::RecordProperty("late_ms", std::to_string(late));
    std::printf("[ ended  ] %.2f ms after its deadline\n", late);
    return error.what();
  }
  ADD_FAILURE() << "it ended";
  return "";
}

FunctionRef dequeue_in_graph(const Tensor& from) {
  FlowBuilder b;
  const Output handle = b.arg(DType::kResource);
  Node* const take = b.add("QueueDequeueV2", {handle}, kFloats, {}, "take_one");
  static_cast<void>(from);
  return b.finish({b.add1("Neg", {{take, 0}})});
}

TEST(Deadline, EndsAFunctionThatWaitsForAQueue) {
  for (const int threads : {1, 2}) {
    Runtime runtime({.inter_op_threads = threads, .intra_op_threads = 1});
    const RuntimeScope scope(runtime);
    const Tensor from = queue();
    const FunctionRef f = dequeue_in_graph(from);
    EXPECT_THAT(overdue([&] { run(f, {from}); }),
                HasSubstr("Still running: 'take_one' (QueueDequeueV2)"));
    // Nothing is left behind.
    raw_op("QueueEnqueueV2", {from, Tensor(2.0f)});
    EXPECT_EQ(run_float(f, {from}), -2.0f);
  }
}

TEST(Deadline, EndsAnEagerCallThatWaits) {
  const Tensor from = queue();
  EXPECT_THAT(overdue([&] { raw_op("QueueDequeueV2", {from}, kFloats); }),
              HasSubstr("QueueDequeueV2"));
}

TEST(Deadline, EndsALoop) {
  const auto f = function([](Tensor x) {
    return while_loop([](Tensor i) { return i < 5; }, [](Tensor i) { return i * 1; }, x);
  });
  EXPECT_THAT(overdue([&] { f(Tensor(1)); }), HasSubstr("While"));
}

TEST(Deadline, EndsALoopOfTensorFlow1) {
  FlowBuilder b;
  const Output i = b.loop_variable(b.enter(b.arg(DType::kInt32), "loop"));
  const Output limit = b.enter(b.constant(Array::scalar(5)), "loop", true);
  Node* const choice = b.add("Switch", {i, b.add1("LoopCond", {b.add1("Less", {i, limit})})});
  b.close(i, b.add1("Identity", {{choice, 1}}));
  const FunctionRef f = b.finish({b.add1("Exit", {{choice, 0}})});
  EXPECT_THAT(overdue([&] { run(f, {Tensor(1)}); }), HasSubstr("Still running: "));
}

TEST(Deadline, EndsACopyThatMakesNoWay) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,memory=8MiB,latency=0us,fault=stall@1"}}});
  const RuntimeScope scope(runtime);
  const auto f = function([](Tensor x) {
    const DeviceScope on("/GPU:0");
    return x + x;
  });
  overdue([&] { f(Tensor::from(std::vector<float>(256), {16, 16})); });
}

TEST(Deadline, EndsACopyOverASlowLink) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,memory=8MiB,latency=0us,link=1KB/s"}}});
  const RuntimeScope scope(runtime);
  overdue([&] {
    const DeviceScope on("/GPU:0");
    const Tensor x = Tensor::from(std::vector<float>(65536), {256, 256});
    (x + x).array();
  });
}

TEST(Deadline, TheEarlierOneCounts) {
  const Tensor from = queue();
  const DeadlineScope outer(1h);
  EXPECT_THAT(overdue([&] { raw_op("QueueDequeueV2", {from}, kFloats); }),
              HasSubstr("QueueDequeueV2"));
  overdue([&] {
    const DeadlineScope later(1h);
    raw_op("QueueDequeueV2", {from}, kFloats);
  });
}

TEST(Deadline, LeavesWhatEndsInTimeAlone) {
  const auto f = function([](Tensor x) { return x + 1.0f; });
  const DeadlineScope within(1h);
  EXPECT_EQ(f(Tensor(1.0f)).item<float>(), 2.0f);
}

TEST(Deadline, MustLieAhead) {
  EXPECT_THROW(DeadlineScope(0s), InvalidArgumentError);
  EXPECT_THROW(DeadlineScope(-1s), InvalidArgumentError);
  EXPECT_NO_THROW(static_cast<void>(DeadlineScope(std::chrono::nanoseconds::max())));
}

// ---- Cancellation reaches what waits by a callback ----

TEST(CancelledRequest, HasEndedWhenCancelReturns) {
  const Tensor from = queue();
  const FunctionRef f = dequeue_in_graph(from);
  for (int round = 0; round < 20; ++round) {
    const auto stop = std::make_shared<Cancellation>();
    std::atomic<bool> over{false};
    std::thread waits([&] {
      const CancellationScope scope(stop);
      EXPECT_THROW(run(f, {from}), CancelledError);
      over = true;
    });
    stop->cancel();
    waits.join();
    EXPECT_TRUE(over);
  }
  // No request is left that would take it away.
  raw_op("QueueEnqueueV2", {from, Tensor(2.0f)});
  EXPECT_EQ(raw_op("QueueSizeV2", {from})[0].item<std::int32_t>(), 1);
}

}  // namespace
}  // namespace tandem
