#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tandem/graph/kernel_context.h"
#include "tandem/runtime/thread_context.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

TEST(Turns, ThreadsThatShareAnIteratorGetEachElementOnce) {
  constexpr std::int64_t kCount = 3000;
  const auto plus_one = [](const Tensor& x) { return plus(x, 1); };
  for (const Dataset& dataset :
       {range(1, kCount + 1), range(1, kCount + 1).shuffle(50), range(1, kCount + 1).prefetch(2),
        range(kCount).map(plus_one), range(kCount).map(plus_one, {.num_parallel_calls = 2}),
        range(1, kCount + 1).batch(3).unbatch()}) {
    Iterator shared = dataset.iterator();
    std::vector<std::vector<std::int64_t>> got(3);
    std::vector<std::thread> threads;
    for (auto& mine : got) {
      threads.emplace_back([&] { mine = numbers(shared, kCount); });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<std::int64_t> all;
    for (const auto& mine : got) all.insert(all.end(), mine.begin(), mine.end());
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), static_cast<std::size_t>(kCount)) << dataset;
    EXPECT_EQ(all.front(), 1);
    EXPECT_EQ(all.back(), kCount);
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << dataset;
  }
}

TEST(Turns, SavingAndLookingAreSafeMeanwhile) {
  const Dataset dataset = range(2000).shuffle(20, {.seed = 1}).prefetch(2);
  Iterator shared = dataset.iterator({.observe = true});
  std::atomic<bool> done{false};
  std::thread looks([&] {
    while (!done) {
      EXPECT_LE(shared.stats().elements, 2000);
      shared.reserve_cores(0);
      EXPECT_FALSE(shared.save().empty());
    }
  });
  numbers(shared, 1000);
  shared.restore(shared.save());
  EXPECT_EQ(numbers(shared, 2000).size(), 1000u);
  done = true;
  looks.join();
}

// A thread waits for another that looks for an element in vain.
TEST(Turns, CancellingTheOneThatWaitsStopsBoth) {
  std::atomic<bool> inside{false};
  Iterator shared = range(1)
                        .repeat()
                        .filter([&](const Tensor&) {
                          inside = true;
                          return false;
                        })
                        .iterator();
  std::thread first([&] { EXPECT_THROW(shared.next(), CancelledError); });
  while (!inside) std::this_thread::yield();
  const auto stop = std::make_shared<Cancellation>();
  std::thread second([&] {
    const CancellationScope scope(stop);
    EXPECT_THROW(shared.next(), CancelledError);
  });
  stop->cancel();
  first.join();
  second.join();
}

}  // namespace
}  // namespace tandem::data
