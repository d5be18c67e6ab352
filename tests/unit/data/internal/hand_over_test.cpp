#include "tandem/data/internal/hand_over.h"

#include <gtest/gtest.h>

namespace tandem::data {
namespace {

// How many elements of so many nanoseconds until they are given to the other side; -1: none of
// 10,000.
int made_apart(HandOver& hand_over, std::int64_t time) {
  for (int i = 1; i <= 10'000; ++i) {
    if (hand_over.made_apart(time)) return i;
  }
  return -1;
}
int made_here(HandOver& hand_over, std::int64_t time) {
  for (int i = 1; i <= 10'000; ++i) {
    if (hand_over.wants_time() && hand_over.made_here(time)) return i;
  }
  return -1;
}

TEST(HandOver, LeavesShortElementsToTheConsumer) {
  HandOver hand_over;
  EXPECT_GT(made_apart(hand_over, 1'000), 1);
  EXPECT_EQ(made_here(hand_over, 1'000), -1);
}

TEST(HandOver, GivesLongElementsToThreads) {
  HandOver hand_over;
  EXPECT_EQ(made_apart(hand_over, 50'000), -1);
  EXPECT_GT(made_here(hand_over, 10'000'000), 1);
  EXPECT_LE(made_here(hand_over, 10'000'000), 12);  // 120 ms of work
  EXPECT_LE(made_here(hand_over, 50'000), 40);      // 2 ms
}

TEST(HandOver, KeepsThingsAsTheyAreInBetween) {
  HandOver hand_over;
  EXPECT_EQ(made_apart(hand_over, 6'000), -1);
  EXPECT_EQ(made_here(hand_over, 6'000), -1);
}

// The mean counts: of elements of which one in a hundred takes long, too.
TEST(HandOver, CountsRareLongElements) {
  HandOver hand_over;
  int apart = 0;
  for (int i = 0; i < 10'000; ++i) apart += hand_over.made_apart(i % 32 == 0 ? 1'000'000 : 1'000);
  EXPECT_EQ(apart, 0);
}

TEST(HandOver, PassesOverWhatHappensOnce) {
  HandOver hand_over;
  for (int i = 0; i < 100'000; ++i) {
    if (!hand_over.wants_time()) continue;
    EXPECT_FALSE(hand_over.made_here(i % 10'000 == 0 ? 20'000'000 : 1'000)) << i;
  }
}

TEST(HandOver, BeginsAnewAfterEachChange) {
  HandOver hand_over;
  const int first = made_apart(hand_over, 1'000);
  EXPECT_GT(made_here(hand_over, 1'000'000), 1);
  EXPECT_EQ(made_apart(hand_over, 1'000), first);
  EXPECT_EQ(made_apart(hand_over, 50'000), -1);
}

}  // namespace
}  // namespace tandem::data
