#include "tandem/data/stages/handoff.h"

#include <gtest/gtest.h>

namespace tandem::data {
namespace {

// How many elements of so many nanoseconds until they are given to the other side; -1: none of
// 100,000.
template <class Time>
int made_apart(Handoff& handoff, Time time) {
  for (int i = 1; i <= 100'000; ++i) {
    if (handoff.made_apart(time(i))) return i;
  }
  return -1;
}
// The same while the consumer waits so long for each.
int made_apart(Handoff& handoff, std::int64_t time, std::int64_t waited) {
  return made_apart(handoff, [&](int) {
    handoff.waited(waited);
    return time;
  });
}
template <class Time>
int made_here(Handoff& handoff, Time time) {
  for (int i = 1; i <= 100'000; ++i) {
    if (handoff.wants_time() && handoff.made_here(time(i))) return i;
  }
  return -1;
}
auto all(std::int64_t time) {
  return [time](int) { return time; };
}
auto one_in(int count, std::int64_t time) {
  return [count, time](int i) { return i % count == 0 ? time : 1'000; };
}

TEST(Handoff, LeavesShortElementsToTheConsumer) {
  Handoff handoff;
  EXPECT_GT(made_apart(handoff, all(1'000)), 100);
  EXPECT_EQ(made_here(handoff, all(1'000)), -1);
}

TEST(Handoff, GivesLongElementsToThreads) {
  Handoff apart, here;
  EXPECT_EQ(made_apart(apart, all(50'000)), -1);
  EXPECT_EQ(made_here(here, all(10'000'000)), 2);  // the first may have been chance
  const int found = made_here(here, all(50'000));
  EXPECT_GT(found, 0);
  EXPECT_LE(found, 40);  // 2 ms
}

TEST(Handoff, KeepsThingsAsTheyAreInBetween) {
  Handoff apart, here;
  EXPECT_EQ(made_apart(apart, all(6'000)), -1);
  EXPECT_EQ(made_here(here, all(6'000)), -1);
}

// On a slow or busy machine.
TEST(Handoff, GoesByWhatWaitingForThreadsTakes) {
  Handoff slow;
  EXPECT_GT(made_apart(slow, 10'000, 15'000), 0);
  EXPECT_EQ(made_here(slow, all(15'000)), -1);
  EXPECT_GT(made_here(slow, all(25'000)), 0);
  Handoff two_threads, one_thread, always_apart(0);
  EXPECT_EQ(made_apart(two_threads, 10'000, 7'000), -1);
  EXPECT_EQ(made_apart(one_thread, 10'000, 12'000), -1);
  EXPECT_EQ(made_apart(always_apart, 10'000, 15'000), -1);
}

// Their mean is 101 us.
TEST(Handoff, CountsRareLongElements) {
  Handoff apart;
  EXPECT_EQ(made_apart(apart, one_in(100, 10'000'000)), -1);
  for (const int period : {2, 8, 16, 32, 64, 100, 101, 128}) {
    Handoff here;
    const int found = made_here(here, one_in(period, 10'000'000));
    EXPECT_GT(found, 0) << period;
    EXPECT_LT(found, 20'000) << period;
  }
}

TEST(Handoff, PassesOverWhatHappensOnce) {
  for (const int period : {5'000, 5'001, 9'999}) {
    Handoff here;
    EXPECT_EQ(made_here(here, one_in(period, 20'000'000)), -1) << period;
  }
  Handoff apart;
  EXPECT_GT(made_apart(apart, one_in(10'000, 20'000'000)), 0);
}

TEST(Handoff, BeginsAgainAfterEachChange) {
  Handoff handoff;
  const int first = made_apart(handoff, all(1'000));
  EXPECT_GT(made_here(handoff, all(1'000'000)), 0);
  EXPECT_EQ(made_apart(handoff, all(1'000)), first);
  EXPECT_EQ(made_apart(handoff, all(50'000)), -1);
}

TEST(Handoff, MayBeReportedWhatIsShort) {
  Handoff never(0), always(std::int64_t{1} << 40);
  EXPECT_EQ(made_apart(never, all(1)), -1);
  EXPECT_GT(made_apart(always, all(10'000'000)), 0);
  EXPECT_EQ(made_here(always, all(10'000'000)), -1);
}

}  // namespace
}  // namespace tandem::data
