// Pipelines whose threads and buffers are found while they run.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include <gmock/gmock.h>

#include "tandem/graph/kernel_context.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::HasSubstr;

constexpr MapOptions kTuned{.num_parallel_calls = kAutotune};

Options budget(std::int64_t threads, std::int64_t bytes = 0) {
  Options options;
  options.autotune.cpu_budget = threads;
  options.autotune.ram_budget = bytes;
  return options;
}

// How many are in a function at once, at most.
class Crowd {
 public:
  Tensor pass(Tensor x) {
    const int now = ++inside_;
    for (int most = most_; now > most && !most_.compare_exchange_weak(most, now);) {
    }
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    --inside_;
    return x;
  }
  int most() const { return most_; }

 private:
  std::atomic<int> inside_{0}, most_{0};
};

TEST(Autotune, NeverChangesTheOrder) {
  const auto nested = [](const Tensor& x) {
    return range(x.item<std::int64_t>() % 5).map([](Tensor y) { return y; }, kTuned);
  };
  const auto make = [&](std::int64_t calls) {
    return range(300)
        .map([](const Tensor& x) { return plus(x, 1); }, {.num_parallel_calls = calls})
        .interleave(nested, {.cycle_length = 3, .num_parallel_calls = calls})
        .batch(3)
        .prefetch(kAutotune)
        .unbatch()
        .map([](const Tensor& x) { return plus(x, 2); }, {.num_parallel_calls = calls})
        .prefetch(kAutotune);
  };
  const std::vector<std::int64_t> serial = numbers(make(0));
  ASSERT_EQ(serial.size(), 600u);
  for (const std::int64_t threads : {1, 2, 5, 16}) {
    EXPECT_EQ(numbers(make(kAutotune).with_options(budget(threads))), serial) << threads;
  }
  EXPECT_EQ(numbers(make(kAutotune)), serial);
  Options off;
  off.autotune.enabled = false;
  EXPECT_EQ(numbers(make(kAutotune).with_options(off)), serial);
}

TEST(Autotune, KeepsToTheCpuBudget) {
  for (const int threads : {1, 3}) {
    Crowd crowd;
    const auto pass = [&](Tensor x) { return crowd.pass(std::move(x)); };
    const auto ds = range(900).map(pass, kTuned).batch(3).map(pass, kTuned).prefetch(kAutotune);
    const std::size_t before = threads_at_rest();
    auto it = ds.with_options(budget(threads)).iterator({.observe = true});
    Element element;
    std::size_t most = 0;
    while (it.next(element)) {
      most = std::max(most, thread_count());
      int sum = 0;
      for (const auto& stage : it.stats().stages) {
        if (stage.name == "ParallelMap") sum += stage.threads;
      }
      ASSERT_LE(sum, std::max(threads, 2));
    }
    EXPECT_LE(crowd.most(), std::max(threads, 2));
    EXPECT_GT(most, before);
  }
}

TEST(Autotune, BeginsWithTheWholeBudget) {
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  const auto ds = range(40).map(
      [&](Tensor x) {
        std::unique_lock lock(mutex);
        ++inside;
        changed.notify_all();
        changed.wait(lock, [&] { return inside >= 4; });  // four calls are under way
        return x;
      },
      kTuned);
  EXPECT_EQ(numbers(ds.with_options(budget(4))), upto(40));
}

TEST(Autotune, LeavesCoresToOthers) {
  Crowd crowd;
  const auto ds = range(1).repeat().map([&](Tensor x) { return crowd.pass(std::move(x)); }, kTuned);
  auto it = ds.with_options(budget(6)).iterator({.observe = true});
  const auto map = [&] { return it.stats().stages[0]; };
  it.reserve_cores(4);
  numbers(it, 50);
  EXPECT_EQ(map().threads, 2);
  EXPECT_LE(crowd.most(), 2);
  EXPECT_TRUE(map().tuned);
  it.reserve_cores(0);
  while (map().threads < 6) numbers(it, 50);
  EXPECT_THROW(it.reserve_cores(-1), InvalidArgumentError);
}

TEST(Autotune, SavesAndRestoresWithWhateverThreads) {
  const auto make = [](std::int64_t threads) {
    return range(100)
        .map([](const Tensor& x) { return plus(x, 1); }, kTuned)
        .prefetch(kAutotune)
        .with_options(budget(threads));
  };
  auto it = make(4).iterator();
  EXPECT_EQ(numbers(it, 10), numbers(range(1, 11)));
  auto other = make(1).iterator();
  other.restore(it.save());
  EXPECT_EQ(numbers(other), numbers(range(11, 101)));
  EXPECT_EQ(numbers(it), numbers(range(11, 101)));
}

// Elements below a millisecond are made by the consumer here, those from 3,000 to 3,099 by threads.
class ShortAndLong : public ::testing::Test {
 protected:
  static constexpr std::int64_t kCount = 6'000;

  // The function wants values, so that it is called, not traced.
  static Dataset make(std::int64_t bad = -1, std::optional<bool> deterministic = {}) {
    return range(kCount)
        .map(
            [bad](Tensor x) {
              const auto number = x.item<std::int64_t>();
              if (number == bad) throw InvalidArgumentError("a bad one");
              if (number / 100 == 30) std::this_thread::sleep_for(std::chrono::milliseconds(5));
              return plus(x, 1);
            },
            {.num_parallel_calls = kAutotune, .deterministic = deterministic})
        .with_options(short_below_a_millisecond());
  }
  static Options short_below_a_millisecond() {
    Options options;
    options.autotune.handoff_ns = 1'000'000;
    options.autotune.cpu_budget = 4;
    return options;
  }
  static std::vector<std::int64_t> all() { return numbers(range(1, kCount + 1), kCount); }
};

TEST_F(ShortAndLong, ChangeHands) {
  auto it = make().iterator({.observe = true});
  const auto map = [&] { return it.stats().stages[0]; };
  numbers(it, 1);
  EXPECT_GT(map().threads, 0);
  numbers(it, 2'500);
  EXPECT_EQ(map().threads, 0);
  EXPECT_TRUE(map().tuned);
  numbers(it, 590);
  EXPECT_GT(map().threads, 0);
  numbers(it, 2'500);
  EXPECT_EQ(map().threads, 0);
  Options never;
  never.autotune.handoff_ns = 0;
  auto apart = make().with_options(never).iterator({.observe = true});
  numbers(apart, 2'500);
  EXPECT_GT(apart.stats().stages[0].threads, 0);
}

TEST_F(ShortAndLong, KeepTheirOrder) {
  const auto ds = make();
  EXPECT_EQ(numbers(ds, kCount), all());
  EXPECT_EQ(numbers(ds.repeat(2).skip(kCount), kCount), all());
  std::vector<std::int64_t> any = numbers(make(-1, false), kCount);
  std::sort(any.begin(), any.end());
  EXPECT_EQ(any, all());
}

TEST_F(ShortAndLong, FailAtTheirPlace) {
  for (const std::int64_t bad : {0, 2'500, 3'050, 5'999}) {
    auto it = make(bad).iterator();
    EXPECT_EQ(numbers(it, static_cast<std::size_t>(bad)).size(), static_cast<std::size_t>(bad));
    Element element;
    EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { it.next(element); }),
                HasSubstr("in map, element " + std::to_string(bad)));
    EXPECT_EQ(numbers(it, kCount).size(), static_cast<std::size_t>(kCount - bad - 1));
  }
}

TEST_F(ShortAndLong, FailWithTheirInput) {
  const auto ds = make(2'500)
                      .map([](const Tensor& x) { return plus(x, 1); }, kTuned)
                      .with_options(short_below_a_millisecond());
  auto it = ds.iterator();
  EXPECT_EQ(numbers(it, 2'500).back(), 2'501);
  Element element;
  EXPECT_THROW(it.next(element), InvalidArgumentError);
  EXPECT_EQ(numbers(it, 1).front(), 2'503);
}

TEST_F(ShortAndLong, AreSavedAndRestoredAnywhere) {
  const auto ds = make();
  auto it = ds.iterator();
  for (std::int64_t at = 0; at < kCount; at += 1'500) {
    auto other = ds.iterator();
    other.restore(it.save());
    const std::int64_t end = std::min(at + 2'500, kCount);
    EXPECT_EQ(numbers(other, 2'500), numbers(range(at + 1, end + 1), 2'500)) << at;
    EXPECT_EQ(numbers(it, 1'500), numbers(range(at + 1, at + 1'501), 1'500));
  }
}

// On any thread the function runs under the context in which the iteration began.
TEST_F(ShortAndLong, RunUnderTheContextThatBeganTheIteration) {
  Runtime runtime;
  std::set<std::uint64_t> seen;
  std::mutex mutex;
  const auto ds = range(3'000)
                      .map(
                          [&](Tensor x) {
                            std::lock_guard lock(mutex);
                            seen.insert(Runtime::current().id());
                            return plus(x, 1);
                          },
                          kTuned)
                      .with_options(short_below_a_millisecond());
  std::optional<Iterator> it;
  {
    const RuntimeScope scope(runtime);
    it = ds.iterator();
  }
  EXPECT_EQ(numbers(*it, 3'000).size(), 3'000u);
  EXPECT_EQ(seen, std::set<std::uint64_t>{runtime.id()});
}

// In a function that waits, on any thread, the element asked for never comes.
TEST_F(ShortAndLong, StopWhereverTheyAre) {
  for (const std::int64_t at : {0, 500, 2'000, 3'500}) {
    auto stop = std::make_shared<Cancellation>();
    const CancellationScope scope(stop);
    const auto ds = range(kCount)
                        .map(
                            [&](Tensor x) {
                              if (x.item<std::int64_t>() == at) stop->cancel();
                              return plus(x, 1);
                            },
                            kTuned)
                        .with_options(short_below_a_millisecond());
    auto it = ds.iterator();
    Element element;
    const auto draw_all = [&] {
      while (it.next(element)) {
      }
    };
    EXPECT_THROW(draw_all(), CancelledError) << at;
  }
}

TEST(Autotune, RefusesOptionsThatCannotBe) {
  for (const FileShard shard : {FileShard{0, 0}, {2, 2}, {2, -1}, {-2, 0}}) {
    Options options;
    options.file_shard = shard;
    EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { range(1).with_options(options); }),
                HasSubstr("file_shard: index must be >= 0 and < num_shards"));
  }
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] { range(1).with_options(budget(-1)); }),
              HasSubstr("autotune.cpu_budget must be >= 0"));
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] { range(1).with_options(budget(0, -1)); }),
              HasSubstr("autotune.ram_budget must be >= 0"));
}

TEST(Autotune, StopsWhereverItIs) {
  for (int i = 0; i < 30; ++i) {
    auto it = range(1000)
                  .map([](Tensor x) { return x; }, kTuned)
                  .interleave([](const Tensor&) { return range(3); },
                              {.cycle_length = 2, .num_parallel_calls = kAutotune})
                  .prefetch(kAutotune)
                  .with_options(budget(1 + i % 5))
                  .iterator();
    numbers(it, static_cast<std::size_t>(i % 4));
    it.reserve_cores(i % 3);
    numbers(it, static_cast<std::size_t>(i % 4));
  }
}

}  // namespace
}  // namespace tandem::data
