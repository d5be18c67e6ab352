#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include <gmock/gmock.h>

#include "tandem/runtime/thread_context.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

// Something to wait for.
class Gate {
 public:
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

TEST(Prefetch, GivesTheSameElements) {
  for (const std::int64_t size : {std::int64_t{1}, std::int64_t{3}, std::int64_t{100}, kAutotune}) {
    const auto ds = range(200).prefetch(size);
    EXPECT_EQ(numbers(ds), upto(200));
    EXPECT_EQ(numbers(ds), upto(200));
  }
  EXPECT_EQ(numbers(range(3).prefetch(0)), upto(3));
  EXPECT_EQ(numbers(range(0).prefetch(2)), upto(0));
  EXPECT_EQ(numbers(range(9).prefetch(2).prefetch(1).batch(3).unbatch().prefetch(1)), upto(9));
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] { range(3).prefetch(-2); }),
              ::testing::HasSubstr("buffer_size must be >= 0"));
}

TEST(Prefetch, WorksAheadOnItsOwnThread) {
  Gate third;
  std::set<std::thread::id> threads;
  std::mutex mutex;
  const auto ds = range(5)
                      .map([&](Tensor x) {
                        {
                          std::lock_guard lock(mutex);
                          threads.insert(std::this_thread::get_id());
                        }
                        if (x.item<std::int64_t>() == 2) third.open();
                        return x;
                      })
                      .prefetch(2);
  auto it = ds.iterator();
  EXPECT_EQ(numbers(it, 1), upto(1));
  third.wait();  // although nothing has asked for more
  EXPECT_EQ(numbers(it), (std::vector<std::int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(threads.size(), 1u);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST(Prefetch, MakesNoMoreThanFit) {
  std::atomic<int> made{0};
  const auto ds = range(100)
                      .map([&](Tensor x) {
                        ++made;
                        return x;
                      })
                      .prefetch(3);
  {
    auto it = ds.iterator();
    it.next();
  }
  EXPECT_LE(made, 5);
}

TEST(Prefetch, PassesErrorsOnAtTheirPlace) {
  const auto ds = range(5)
                      .map([](Tensor x) {
                        if (x.item<std::int64_t>() == 2) throw std::runtime_error("user text");
                        return x;
                      })
                      .prefetch(2);
  auto it = ds.iterator();
  EXPECT_EQ(numbers(it, 2), upto(2));
  EXPECT_EQ(message_of_thrown<UnknownError>([&] { it.next(); }), "user text\n\tin map, element 2");
  EXPECT_EQ(numbers(it), (std::vector<std::int64_t>{3, 4}));
}

TEST(ParallelMap, KeepsTheOrder) {
  for (const std::int64_t calls : {std::int64_t{1}, std::int64_t{4}, kAutotune}) {
    const auto ds =
        range(300).map([](const Tensor& x) { return plus(x, 1); }, {.num_parallel_calls = calls});
    EXPECT_EQ(numbers(ds.batch(7).unbatch()), numbers(range(1, 301)));
  }
}

TEST(ParallelMap, MayGiveWhatIsReadyFirst) {
  Gate gate;
  const auto ds = range(4).map(
      [&](Tensor x) {
        if (x.item<std::int64_t>() == 0) gate.wait();
        return x;
      },
      {.num_parallel_calls = 2, .deterministic = false});
  auto it = ds.iterator();
  EXPECT_EQ(numbers(it, 3), (std::vector<std::int64_t>{1, 2, 3}));
  gate.open();
  EXPECT_EQ(numbers(it), upto(1));
}

TEST(ParallelMap, CallsAtTheSameTime) {
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  const auto ds = range(3).map(
      [&](Tensor x) {
        std::unique_lock lock(mutex);
        ++inside;
        changed.notify_all();
        changed.wait(lock, [&] { return inside >= 3; });  // all three calls are under way
        return x;
      },
      {.num_parallel_calls = 3});
  EXPECT_EQ(numbers(ds), upto(3));
}

TEST(Threads, AreGoneWithTheirIterator) {
  const std::size_t before = threads_at_rest();
  {
    auto it = range(1000)
                  .map([](Tensor x) { return x; }, {.num_parallel_calls = 3})
                  .prefetch(2)
                  .prefetch(2)
                  .iterator();
    it.next();
    EXPECT_EQ(thread_count(), before + 5);
  }
  EXPECT_EQ(threads_at_rest(), before);
}

TEST(Threads, NeverHangWhateverIsDestroyedFirst) {
  for (int i = 0; i < 50; ++i) {
    std::optional<Dataset> ds = range(1000)
                                    .shuffle(10)
                                    .repeat()
                                    .map([](Tensor x) { return x; }, {.num_parallel_calls = 2})
                                    .batch(3)
                                    .prefetch(kAutotune);
    std::optional<Iterator> first = ds->iterator(), second = ds->iterator();
    if (i % 3 > 0) first->next();
    if (i % 2 == 0) second->next();
    if (i % 5 < 2) ds.reset();
    first.reset();
    ds.reset();
    if (i % 7 == 0) second->next();
  }
}

TEST(Threads, AreStoppedInEndlessLoops) {
  Gate searching;
  const auto never = range(1).repeat().filter([&](const Tensor&) {
    searching.open();
    return false;
  });
  // The inner thread searches for ever, the outer one waits for it.
  auto it = range(2).concatenate(never.prefetch(1)).prefetch(4).iterator();
  EXPECT_EQ(numbers(it, 2), upto(2));
  searching.wait();
}

TEST(Threads, WorkUnderTheContextThatBeganTheIteration) {
  std::string seen;
  const auto ds = range(1)
                      .map([&](Tensor x) {
                        seen = tandem::thread_context().name_scope;
                        return x;
                      })
                      .prefetch(1);
  std::optional<Iterator> it;
  {
    NameScope scope("outer");
    it = ds.iterator();
  }
  it->next();
  it.reset();
  EXPECT_EQ(seen, "outer/");
}

TEST(Threads, SeveralMayIterateOneDataset) {
  const auto ds = range(200).shuffle(50, {.seed = 1}).cache().batch(10).prefetch(2);
  std::vector<std::thread> threads;
  std::atomic<std::int64_t> total{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (const auto& element : ds) {
        for (const std::int64_t n : element[0].data<std::int64_t>()) total += n;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(total, 4 * 199 * 100);
}

}  // namespace
}  // namespace tandem::data
