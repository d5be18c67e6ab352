// The queue between a stage's own thread and its consumer.
#include "tandem/data/stages/ahead_queue.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"

namespace tandem::data {
namespace {

// Makes the numbers from 0 to `end` - 1.
struct Numbers {
  Numbers(int end_before, std::size_t limit, bool by_halves = false)
      : end(end_before),
        queue({.stage = "numbers",
               .limit = limit,
               .make =
                   [this](int& item) {
                     if (made == end) return false;
                     item = made++;
                     return true;
                   },
               .by_halves = by_halves},
              context, StageMeter()) {}

  const IterationContext context = IterationContext().below();
  const int end;
  std::atomic<int> made{0};
  AheadQueue<int> queue;
};

std::vector<int> all_of(Numbers& numbers) {
  std::vector<int> all;
  for (int item = 0; numbers.queue.take(item);) all.push_back(item);
  return all;
}

TEST(AheadQueue, GivesItemsInTheirOrder) {
  std::vector<int> expected;
  for (int i = 0; i < 50; ++i) expected.push_back(i);
  for (const std::size_t limit : {1, 2, 5, 100}) {
    for (const bool by_halves : {false, true}) {
      Numbers numbers(50, limit, by_halves);
      EXPECT_EQ(all_of(numbers), expected);
      int item = 0;
      EXPECT_FALSE(numbers.queue.take(item));
    }
  }
}

TEST(AheadQueue, HoldsNoMoreThanItsLimit) {
  Numbers numbers(100, 4);
  int item = 0;
  EXPECT_EQ(numbers.made, 0);  // nothing begins before the first is wanted
  EXPECT_TRUE(numbers.queue.take(item));
  while (numbers.made < 5) std::this_thread::yield();
  numbers.queue.paused([&] { EXPECT_EQ(numbers.made, 5); });
  EXPECT_TRUE(numbers.queue.take(item, 2));  // three are there, which stay
  numbers.queue.paused([&] { EXPECT_EQ(numbers.made, 5); });
  EXPECT_EQ(all_of(numbers).size(), 98u);
}

TEST(AheadQueue, SavesWhatIsThere) {
  Numbers numbers(3, 3), other(0, 3);
  int item = 0;
  numbers.queue.take(item);
  while (numbers.made < 3) std::this_thread::yield();
  const auto visit = [](Numbers& of, StateArchive& state) {
    of.queue.paused([&] {
      of.queue.visit_ended(state);
      of.queue.visit_items(state, [&](int& number) {
        std::int64_t wide = number;
        state.value(wide);
        number = static_cast<int>(wide);
      });
    });
  };
  StateArchive saved;
  visit(numbers, saved);
  StateArchive restored(saved.bytes());
  visit(other, restored);
  EXPECT_EQ(all_of(other), (std::vector<int>{1, 2}));
  EXPECT_EQ(all_of(numbers), (std::vector<int>{1, 2}));
}

TEST(AheadQueue, NothingComesAfterItsEnd) {
  Numbers numbers(100, 4);
  int item = 0;
  EXPECT_TRUE(numbers.queue.take(item));
  numbers.queue.end();
  EXPECT_FALSE(numbers.queue.take(item));
}

// The item that is being made comes only when the consumer has gone.
TEST(AheadQueue, StoppingWakesAnyCallerWaits) {
  const IterationContext context = IterationContext().below();
  StageCounters counters;
  std::atomic<bool> gone{false};
  AheadQueue<int> queue({.stage = "slow",
                         .limit = 1,
                         .make =
                             [&](int&) {
                               while (!gone) std::this_thread::yield();
                               return true;
                             }},
                        context, StageMeter(&counters));
  auto consumer = std::async(std::launch::async, [&] {
    int item = 0;
    EXPECT_THROW(queue.take(item), CancelledError);
  });
  // It has the queue's lock when it counts its look, and gives that away only to wait.
  while (StageCounters::get(counters.looks) == 0) std::this_thread::yield();
  context.stop_signal()->stop();
  if (consumer.wait_for(std::chrono::seconds(30)) != std::future_status::ready) {
    std::fprintf(stderr, "The consumer waits although the queue was stopped.\n");
    std::_Exit(1);
  }
  gone = true;
}

}  // namespace
}  // namespace tandem::data
