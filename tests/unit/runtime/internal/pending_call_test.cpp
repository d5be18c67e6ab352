#include "tandem/runtime/eager/pending_call.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "tandem/core/error.h"

namespace tandem {
namespace {

TEST(PendingCallsOfARuntime, AreDrainedThoughOthersComeAndGo) {
  PendingCalls calls;
  const auto slow = make_ref<PendingCall>();
  calls.add(slow);
  std::atomic<bool> begun{false}, drained{false};
  std::thread end([&] {
    begun = true;
    calls.drain();
    drained = true;
  });
  while (!begun) std::this_thread::yield();
  {
    const PendingCalls::Use at_work(calls);  // so that patience has no end
    for (int i = 0; i < 1000; ++i) {
      const auto quick = make_ref<PendingCall>();
      calls.add(quick);
      calls.finish(quick, nullptr);
    }
    EXPECT_FALSE(drained);
  }
  calls.finish(slow, nullptr);
  end.join();
  EXPECT_TRUE(slow->done());
}

TEST(PendingCallsOfARuntime, ThatCannotEndAreLeft) {
  PendingCalls calls;
  const auto stalled = make_ref<PendingCall>();
  calls.add(stalled);
  calls.drain();
  EXPECT_FALSE(stalled->done());
  calls.close();
  EXPECT_THROW(stalled->wait(), CancelledError);
  EXPECT_THROW(calls.add(make_ref<PendingCall>()), CancelledError);
}

}  // namespace
}  // namespace tandem
