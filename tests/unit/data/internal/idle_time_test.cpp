// How often a thread is asked whether it was idle: counted, on a clock of the test's.
#include "tandem/data/autotune/idle_time.h"

#include <cstdint>
#include <thread>

#include <gtest/gtest.h>

namespace tandem::data {
namespace {

constexpr std::int64_t kMicro = 1000, kMilli = 1000 * kMicro;

// On a thread of its own, of which nothing is known yet.
template <class Work>
std::int64_t looks_of(Work work) {
  std::int64_t looks = 0;
  std::thread([&] {
    work();
    looks = IdleTime::looks();
  }).join();
  return looks;
}

// One call of a filter that asks its input for `count` elements and lets none through.
std::int64_t filter(std::int64_t now, int count, std::int64_t element) {
  const std::int64_t begin = now;
  IdleTime outer(now);
  for (int i = 0; i < count; ++i, now += element) {
    IdleTime input(now);
    input.end(element);
  }
  outer.end(now - begin);
  return now;
}

TEST(IdleTime, LooksSeldomBeforeTheFirstScopeEnds) {
  // 20 ms: 16 looks, and one for each 2 ms at most.
  EXPECT_LE(looks_of([] { filter(kMilli, 20000, kMicro); }), 26);
  // What takes longer is looked at as often as it comes.
  EXPECT_EQ(looks_of([] { filter(kMilli, 100, 10 * kMilli); }), 101);
}

TEST(IdleTime, LooksSeldomAtManyScopes) {
  const std::int64_t looks = looks_of([] {
    std::int64_t now = kMilli;
    for (int i = 0; i < 100; ++i) now = filter(now, 1000, kMicro);
  });
  EXPECT_LE(looks, 16 + 50);  // 100 ms
  EXPECT_GE(looks, 16);
}

TEST(IdleTime, IsNotWhatTheClocksDifferBy) {
  int idle = 0;
  looks_of([&] {
    for (int i = 0; i < 16; ++i) {
      IdleTime input(kMilli);
      input.end(kMicro);
      if (input.total() != 0) ++idle;
    }
  });
  EXPECT_LE(idle, 4);  // the clocks always differ; a busy machine may stop the thread now and then
}

TEST(IdleTime, OfOpenScopesIsLostWhereItGivesUp) {
  looks_of([] {
    IdleTime outer(kMilli);
    if (!outer.known()) return outer.end(0);  // the system does not say
    std::int64_t now = kMilli;
    for (int i = 0; i < 1000; ++i, now += kMicro) {
      IdleTime input(now);
      input.end(kMicro);
      EXPECT_EQ(input.known(), i < 15) << i;
    }
    outer.end(kMilli);
    EXPECT_FALSE(outer.known());
    // Where scopes take long, all are known again.
    bool known = false;
    for (int i = 0; i < 50; ++i) {
      IdleTime slow(now += 500 * kMilli);
      slow.end(500 * kMilli);
      known = slow.known();
    }
    EXPECT_TRUE(known);
  });
}

}  // namespace
}  // namespace tandem::data
