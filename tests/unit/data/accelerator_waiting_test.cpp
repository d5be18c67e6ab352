#include <chrono>
#include <thread>

#include "tandem/data/explain.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

// Eager calls return before the accelerator has run them, so that their caller comes for input long
// before it is needed: what counts is how long the accelerator has nothing to do.
TEST(AcceleratorWaiting, IsNotThatOfTheThreadThatFeedsIt) {
  Runtime runtime(
      {.devices = {.emulate = {"GPU:1,memory=64MiB,compute=timed,flops=2G,latency=0us"}}});
  RuntimeScope scope(runtime);
  const Dataset slow = range(1000)
                           .map(
                               [](Tensor x) {
                                 std::this_thread::sleep_for(std::chrono::milliseconds(3));
                                 return x;
                               },
                               {.traced = false})
                           .prefetch(2);
  Tensor w;
  {
    DeviceScope on("/GPU:0");
    w = ones({256, 256}) + 0.0f;
  }
  w.synchronize();
  auto it = slow.iterator({.observe = true});
  double in_next = 0;
  for (int i = 0; i < 40; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    it.next();
    in_next += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    DeviceScope on("/GPU:0");
    w = matmul(w, w);  // some 17 ms
  }
  const PipelineStats stats = it.stats();
  EXPECT_GT(in_next, 40 * 0.002);
  EXPECT_LT(stats.in_next, 0.5 * in_next);
  w.synchronize();
}

}  // namespace
}  // namespace tandem::data
