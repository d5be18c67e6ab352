// Pipelines whose threads and buffers are found while they run.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>

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
  it.leave_cores(4);
  numbers(it, 50);
  EXPECT_EQ(map().threads, 2);
  EXPECT_LE(crowd.most(), 2);
  EXPECT_TRUE(map().tuned);
  it.leave_cores(0);
  while (map().threads < 6) numbers(it, 50);
  EXPECT_THROW(it.leave_cores(-1), InvalidArgumentError);
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

// Short elements are made by the consumer, long ones by threads; a pipeline may have both.
class ShortAndLong : public ::testing::Test {
 protected:
  static constexpr std::int64_t kCount = 6'000;
  // Long from 3,000 to 3,100; the function wants values, so that it is called, not traced.
  static Dataset make(std::int64_t bad = -1) {
    return range(kCount).map(
        [bad](Tensor x) {
          const auto number = x.item<std::int64_t>();
          if (number == bad) throw InvalidArgumentError("a bad one");
          if (number / 100 == 30) std::this_thread::sleep_for(std::chrono::microseconds(300));
          return plus(x, 1);
        },
        kTuned);
  }
};

TEST_F(ShortAndLong, KeepTheirOrder) {
  const auto ds = make();
  for (int pass = 0; pass < 3; ++pass)
    EXPECT_EQ(numbers(ds, kCount), numbers(range(1, kCount + 1), kCount));
  EXPECT_EQ(numbers(ds.repeat(2).skip(kCount), kCount), numbers(range(1, kCount + 1), kCount));
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

TEST_F(ShortAndLong, AreSavedAndRestoredAnywhere) {
  const auto ds = make();
  auto it = ds.iterator();
  for (std::int64_t at = 0; at < kCount; at += 750) {
    auto other = ds.iterator();
    other.restore(it.save());
    const auto next = numbers(range(at + 1, at + 751));
    EXPECT_EQ(numbers(other, 750), next);
    EXPECT_EQ(numbers(it, 750), next);
  }
}

TEST(Autotune, RefusesNegativeBudgets) {
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
    it.leave_cores(i % 3);
    numbers(it, static_cast<std::size_t>(i % 4));
  }
}

}  // namespace
}  // namespace tandem::data
