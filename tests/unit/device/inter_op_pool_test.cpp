#include "tandem/device/inter_op_pool.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "tests/unit/device/device_util.h"

namespace tandem {
namespace {

TEST(InterOpPool, RunsWhatIsScheduled) {
  Gate all(100);
  InterOpPool pool(3);
  for (int i = 0; i < 100; ++i) pool.schedule([&] { all.arrive(); });
  all.wait();
}

TEST(InterOpPool, RunsTasksSideBySide) {
  Gate both(2), done(2);
  InterOpPool pool(3);
  for (int i = 0; i < 2; ++i) {
    pool.schedule([&] {
      both.arrive_and_wait();
      done.arrive();
    });
  }
  done.wait();
}

TEST(InterOpPool, LetsTasksScheduleTasks) {
  Gate all(1 + 2 + 4 + 8 + 16);
  std::function<void(int)> split;
  InterOpPool pool(2);
  split = [&](int depth) {
    if (depth > 0) {
      pool.schedule([&, depth] { split(depth - 1); });
      pool.schedule([&, depth] { split(depth - 1); });
    }
    all.arrive();
  };
  pool.schedule([&] { split(4); });
  all.wait();
}

TEST(InterOpPool, HasNoWorkersWithOneThread) {
  const std::size_t before = thread_count();
  InterOpPool pool(1);
  EXPECT_EQ(thread_count(), before);
  int ran = 0;
  pool.schedule([&] { ++ran; });
  EXPECT_EQ(ran, 0);
  EXPECT_TRUE(pool.help());
  EXPECT_EQ(ran, 1);
  EXPECT_FALSE(pool.help());
  EXPECT_EQ(InterOpPool(0).threads(), 1);
}

TEST(InterOpPool, HasOneWorkerLessThanThreads) {
  const std::size_t before = thread_count();
  {
    InterOpPool pool(4);
    EXPECT_EQ(thread_count(), before + 3);
  }
  EXPECT_EQ(thread_count(), before);
}

TEST(InterOpPool, LetsCallersHelp) {
  Gate worker_busy, release;
  InterOpPool pool(2);
  pool.schedule([&] {
    worker_busy.arrive();
    release.wait();
  });
  worker_busy.wait();
  std::atomic<bool> ran{false};
  std::thread::id where;
  pool.schedule([&] {
    where = std::this_thread::get_id();
    ran = true;
  });
  EXPECT_TRUE(pool.help());
  EXPECT_TRUE(ran);
  EXPECT_EQ(where, std::this_thread::get_id());
  release.arrive();
}

TEST(InterOpPool, RunsEverythingBeforeItIsGone) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> ran{0};
    {
      InterOpPool pool(3);
      for (int i = 0; i < 50; ++i) pool.schedule([&] { ++ran; });
    }
    EXPECT_EQ(ran, 50);
  }
}

}  // namespace
}  // namespace tandem
