#include "tandem/runtime/internal/late_call.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "tandem/core/error.h"

namespace tandem {
namespace {

TEST(LateCallsOfARuntime, AreDrainedThoughOthersComeAndGo) {
  LateCalls calls;
  const auto slow = make_ref<LateCall>();
  calls.add(slow);
  std::atomic<bool> begun{false}, drained{false};
  std::thread end([&] {
    begun = true;
    calls.drain();
    drained = true;
  });
  while (!begun) std::this_thread::yield();
  {
    const LateCalls::Use at_work(calls);  // so that patience has no end
    for (int i = 0; i < 1000; ++i) {
      const auto quick = make_ref<LateCall>();
      calls.add(quick);
      calls.finish(quick, nullptr);
    }
    EXPECT_FALSE(drained);
  }
  calls.finish(slow, nullptr);
  end.join();
  EXPECT_TRUE(slow->done());
}

TEST(LateCallsOfARuntime, ThatCannotEndAreLeft) {
  LateCalls calls;
  const auto stalled = make_ref<LateCall>();
  calls.add(stalled);
  calls.drain();
  EXPECT_FALSE(stalled->done());
  calls.close();
  EXPECT_THROW(stalled->wait(), CancelledError);
  EXPECT_THROW(calls.add(make_ref<LateCall>()), CancelledError);
}

}  // namespace
}  // namespace tandem
