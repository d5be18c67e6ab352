#include "tandem/device/intra_op_pool.h"

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/device/serial_kernel_scope.h"

#include "tests/unit/device/device_util.h"

namespace tandem {
namespace {

constexpr double kLarge = 1e6;  // ns an element: always worth another thread

TEST(IntraOpPool, CoversTheRangeOnce) {
  for (const int threads : {1, 2, 4}) {
    IntraOpPool pool(threads);
    for (const std::int64_t count : {0, 1, 2, 3, 7, 100, 1001}) {
      for (const double cost : {0.1, kLarge}) {
        std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
        pool.parallel_for(count, cost, [&](std::int64_t begin, std::int64_t end) {
          ASSERT_LT(begin, end);
          for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
        });
        for (const auto& n : seen) ASSERT_EQ(n, 1) << threads << ' ' << count;
      }
    }
  }
}

TEST(IntraOpPool, TakesNegativeCountsAsNothing) {
  IntraOpPool pool(2);
  int calls = 0;
  pool.parallel_for(-5, kLarge, [&](std::int64_t, std::int64_t) { ++calls; });
  pool.for_each_piece(0, [&](std::int64_t, std::int64_t) { ++calls; });
  pool.for_each_piece(-1, [&](std::int64_t, std::int64_t) { ++calls; });
  EXPECT_EQ(calls, 0);
}

TEST(IntraOpPool, LeavesSmallWorkWithTheCaller) {
  IntraOpPool pool(4);
  int calls = 0;
  const auto caller = std::this_thread::get_id();
  pool.parallel_for(100, 1.0, [&](std::int64_t begin, std::int64_t end) {
    ++calls;
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 100);
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
  EXPECT_EQ(calls, 1);
}

TEST(IntraOpPool, WorksOnAllItsThreads) {
  IntraOpPool pool(3);
  Gate all(3);
  pool.for_each_piece(3, [&](std::int64_t, std::int64_t) { all.arrive_and_wait(); });
}

TEST(IntraOpPool, GivesFixedPieces) {
  for (const int threads : {1, 3}) {
    IntraOpPool pool(threads);
    std::mutex mutex;
    std::set<std::pair<std::int64_t, std::int64_t>> pieces;
    pool.for_each_piece(5, [&](std::int64_t begin, std::int64_t end) {
      std::lock_guard lock(mutex);
      pieces.insert({begin, end});
    });
    EXPECT_EQ(pieces, (std::set<std::pair<std::int64_t, std::int64_t>>{
                          {0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}));
  }
}

TEST(IntraOpPool, RunsNestedCallsOnTheirOwnThread) {
  IntraOpPool pool(3);
  std::atomic<std::int64_t> sum{0};
  pool.for_each_piece(8, [&](std::int64_t, std::int64_t) {
    const auto outer = std::this_thread::get_id();
    pool.parallel_for(100, kLarge, [&](std::int64_t begin, std::int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      sum += end - begin;
    });
  });
  EXPECT_EQ(sum, 800);
}

TEST(IntraOpPool, ServesSeveralCallers) {
  IntraOpPool pool(2);
  std::atomic<std::int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        pool.parallel_for(64, kLarge,
                          [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 200 * 64);
}

TEST(IntraOpPool, HasNoMoreThreadsThanItsBudget) {
  const std::size_t before = thread_count();
  {
    IntraOpPool pool(3);
    pool.for_each_piece(100, [](std::int64_t, std::int64_t) {});
    EXPECT_EQ(thread_count(), before + 2);
    IntraOpPool single(1);
    single.for_each_piece(100, [](std::int64_t, std::int64_t) {});
    EXPECT_EQ(thread_count(), before + 2);
  }
  EXPECT_EQ(thread_count(), before);
  EXPECT_EQ(IntraOpPool(0).threads(), 1);
  EXPECT_EQ(IntraOpPool(-3).threads(), 1);
}

TEST(IntraOpPool, RunsNoMoreThreadsThanCallersAndWorkers) {
  IntraOpPool pool(2);
  std::atomic<int> running{0}, most{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        pool.for_each_piece(8, [&](std::int64_t, std::int64_t) {
          const int now = ++running;
          int seen = most.load();
          while (now > seen && !most.compare_exchange_weak(seen, now)) {
          }
          --running;
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_LE(most, 5);
}

TEST(IntraOpPool, ThrowsTheFirstExceptionAfterAllPieces) {
  for (const int threads : {1, 3}) {
    IntraOpPool pool(threads);
    std::atomic<int> pieces{0};
    try {
      pool.for_each_piece(10, [&](std::int64_t begin, std::int64_t) {
        ++pieces;
        if (begin == 3) throw std::runtime_error("piece 3");
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "piece 3");
    }
    EXPECT_EQ(pieces, threads == 1 ? 4 : 10);
    // The pool works on.
    pieces = 0;
    pool.for_each_piece(10, [&](std::int64_t, std::int64_t) { ++pieces; });
    EXPECT_EQ(pieces, 10);
  }
}

TEST(IntraOpPool, ThrowsFromNestedCallsToo) {
  IntraOpPool pool(2);
  EXPECT_THROW(pool.for_each_piece(4,
                                   [&](std::int64_t, std::int64_t) {
                                     pool.parallel_for(10, kLarge, [](std::int64_t, std::int64_t) {
                                       throw std::runtime_error("inner");
                                     });
                                   }),
               std::runtime_error);
}

TEST(IntraOpPool, WakesItsWorkersAfterTheySlept) {
  IntraOpPool pool(2);
  for (int round = 0; round < 3; ++round) {
    Gate both(2);
    pool.for_each_piece(2, [&](std::int64_t, std::int64_t) { both.arrive_and_wait(); });
    // Workers look out for 100 us before they sleep; whether this one does is no part of the test.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST(IntraOpPool, LeavesThreadsAloneThatAskForIt) {
  IntraOpPool pool(3);
  const std::uint64_t before = IntraOpPool::uses_by_this_thread();
  std::vector<std::pair<std::int64_t, std::int64_t>> pieces;  // no lock: one thread writes
  {
    const SerialKernelScope outer;
    { const SerialKernelScope inner; }
    pool.parallel_for(
        1000, 1e6, [&](std::int64_t begin, std::int64_t end) { pieces.emplace_back(begin, end); });
    pool.for_each_piece(
        2, [&](std::int64_t begin, std::int64_t end) { pieces.emplace_back(begin, end); });
  }
  EXPECT_EQ(pieces,
            (std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 1000}, {0, 1}, {1, 2}}));
  EXPECT_EQ(IntraOpPool::uses_by_this_thread(), before);
  pool.parallel_for(1000, 1e6, [](std::int64_t, std::int64_t) {});
  EXPECT_EQ(IntraOpPool::uses_by_this_thread(), before + 1);
}

}  // namespace
}  // namespace tandem
