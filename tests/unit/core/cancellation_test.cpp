#include "tandem/core/cancellation.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/core/timer.h"

namespace tandem {
namespace {

TEST(Cancellation, CallsBackOnceOnTheThreadThatCancels) {
  Cancellation cancellation;
  int calls = 0;
  std::thread::id on;
  EXPECT_NE(cancellation.register_callback([&] {
    ++calls;
    on = std::this_thread::get_id();
  }),
            0u);
  EXPECT_FALSE(cancellation.cancelled());
  cancellation.cancel();
  cancellation.cancel();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(on, std::this_thread::get_id());
  EXPECT_TRUE(cancellation.cancelled());
  EXPECT_THROW(cancellation.check(), CancelledError);
}

TEST(Cancellation, RefusesCallbacksOnceItIsCancelled) {
  Cancellation cancellation;
  cancellation.cancel();
  int calls = 0;
  EXPECT_EQ(cancellation.register_callback([&] { ++calls; }), 0u);
  EXPECT_EQ(calls, 0);
}

TEST(Cancellation, DoesNotCallBackWhatWasDeregistered) {
  Cancellation cancellation;
  int calls = 0;
  const auto token = cancellation.register_callback([&] { ++calls; });
  EXPECT_TRUE(cancellation.deregister_callback(token));
  cancellation.cancel();
  EXPECT_EQ(calls, 0);
  EXPECT_FALSE(cancellation.deregister_callback(token));
}

TEST(Cancellation, DeregisteringWaitsForACallbackThatRuns) {
  Cancellation cancellation;
  std::promise<void> runs, may_end;
  std::atomic<bool> ended{false};
  const auto token = cancellation.register_callback([&] {
    runs.set_value();
    may_end.get_future().wait();
    ended = true;
  });
  std::thread canceller([&] { cancellation.cancel(); });
  runs.get_future().wait();
  std::thread helper([&] { may_end.set_value(); });
  EXPECT_FALSE(cancellation.deregister_callback(token));
  EXPECT_TRUE(ended);
  canceller.join();
  helper.join();
}

TEST(Cancellation, ACallbackMayDeregisterItselfAndOthers) {
  Cancellation cancellation;
  Cancellation::Token first = 0, second = 0;
  int others = 0;
  first = cancellation.register_callback([&] {
    EXPECT_FALSE(cancellation.deregister_callback(first));
    EXPECT_TRUE(cancellation.deregister_callback(second));
  });
  second = cancellation.register_callback([&] { ++others; });
  cancellation.cancel();
  EXPECT_EQ(others, 0);
}

TEST(Cancellation, ACallbackMayDestroyIt) {
  auto cancellation = std::make_unique<Cancellation>();
  int calls = 0;
  cancellation->register_callback([&] {
    ++calls;
    cancellation.reset();
  });
  cancellation->register_callback([&] { ++calls; });
  cancellation->cancel();
  EXPECT_EQ(calls, 2);
}

TEST(Cancellation, ReachesWhatJoinsItAtOnce) {
  const auto one = std::make_shared<Cancellation>(), other = std::make_shared<Cancellation>();
  const Cancellation both(one, other);
  const Cancellation above(std::make_shared<const Cancellation>(one, other), nullptr);
  int calls = 0;
  both.register_callback([&] { ++calls; });
  above.register_callback([&] { ++calls; });
  EXPECT_FALSE(both.cancelled());
  other->cancel(Code::kDeadlineExceeded);
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(both.cancelled());
  EXPECT_EQ(above.reason(), Code::kDeadlineExceeded);
  EXPECT_THROW(both.check(), DeadlineExceededError);
  EXPECT_FALSE(one->cancelled());
  EXPECT_TRUE(Cancellation(other, nullptr).cancelled()) << "joined when it had been cancelled";
}

TEST(Cancellation, LosesNoCallbackAndMakesNoneTooMany) {
  for (int round = 0; round < 200; ++round) {
    const auto parent = std::make_shared<Cancellation>();
    const Cancellation cancellation(parent, nullptr);
    std::atomic<int> called{0}, kept{0}, refused{0};
    constexpr int kThreads = 3, kEach = 20;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) {
          std::atomic<bool> mine{false};
          const auto token = cancellation.register_callback([&] {
            mine = true;
            ++called;
          });
          if (token == 0) {
            ++refused;
            EXPECT_FALSE(mine);
          } else if (cancellation.deregister_callback(token)) {
            ++kept;
            EXPECT_FALSE(mine);
          } else {
            EXPECT_TRUE(mine);
          }
        }
      });
    }
    parent->cancel();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(called + kept + refused, kThreads * kEach);
  }
}

TEST(Timer, CallsBackInOrderOfTimeAndNotOnceItIsGone) {
  using std::chrono::milliseconds;
  const auto now = std::chrono::steady_clock::now();
  std::vector<int> order;
  std::promise<void> registered, done;
  // Holds the others up until all are there.
  const Timer gate(now, [&] { registered.get_future().wait(); });
  const Timer third(now + milliseconds(3), [&] {
    order.push_back(3);
    done.set_value();
  });
  const Timer first(now + milliseconds(1), [&] { order.push_back(1); });
  const Timer second(now + milliseconds(2), [&] { order.push_back(2); });
  {
    const Timer gone(now + milliseconds(2), [&] { order.push_back(-1); });
  }
  registered.set_value();
  done.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_GE(std::chrono::steady_clock::now(), now + milliseconds(3));
}

}  // namespace
}  // namespace tandem
