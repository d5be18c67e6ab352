// Functions of a map that wait: they hold threads of their stage and none of the runtime's pools.
#include <numeric>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/data/data.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {
namespace {

const AttrMap kFloats{{"component_types", std::vector<DType>{DType::kFloat}}};

// Takes `x` elements of a queue, one after the other in a branch in a loop, and adds them up.
auto sum_of_taken(const Tensor& queue) {
  return [queue](Tensor x) {
    auto [left, sum] =
        while_loop([](Tensor i, Tensor) { return i > 0; },
                   [queue](Tensor i, Tensor s) {
                     const Tensor next = cond(
                         i > -1, [&] { return s + raw_op("QueueDequeueV2", {queue}, kFloats)[0]; },
                         [&] { return s - 1.0f; });
                     return std::tuple(i - 1, next);
                   },
                   cast(x, DType::kInt32), Tensor(0.0f));
    return sum;
  };
}

TEST(WaitingMap, AHundredElementsWaitAtOnceWithOneInterOpThread) {
  constexpr int kElements = 100, kEach = 3;
  Runtime runtime({.inter_op_threads = 1, .intra_op_threads = 1});
  const RuntimeScope scope(runtime);
  const Tensor queue = raw_op("FIFOQueueV2", {}, kFloats)[0];
  const data::Dataset sums =
      data::from_tensor_slices(fill({kElements}, static_cast<float>(kEach)))
          .map(sum_of_taken(queue), {.num_parallel_calls = kElements, .traced = true});
  // Nothing is fed before all elements wait, and none of the pool's threads is needed for it.
  std::thread feeder([&] {
    const RuntimeScope here(runtime);
    for (int i = 0; i < kElements * kEach; ++i) raw_op("QueueEnqueueV2", {queue, Tensor(1.0f)});
  });
  std::vector<float> results;
  for (const auto& element : sums) results.push_back(element[0].item<float>());
  feeder.join();
  EXPECT_EQ(results, std::vector<float>(kElements, static_cast<float>(kEach)));
}

TEST(WaitingMap, EndsWhenTheIterationIsCancelled) {
  Runtime runtime({.inter_op_threads = 1, .intra_op_threads = 1});
  const RuntimeScope scope(runtime);
  const Tensor queue = raw_op("FIFOQueueV2", {}, kFloats)[0];
  const data::Dataset sums =
      data::from_tensor_slices(fill({8}, 1.0f))
          .map(sum_of_taken(queue), {.num_parallel_calls = 4, .traced = true});
  const auto stop = std::make_shared<Cancellation>();
  std::thread stopper([&] { stop->cancel(); });
  {
    const CancellationScope stops(stop);
    EXPECT_THROW(
        {
          for (const auto& element : sums) static_cast<void>(element);
        },
        CancelledError);
  }
  stopper.join();
}

}  // namespace
}  // namespace tandem
