// The tuner on a clock of its own, with figures made up.
#include "tandem/data/autotune/tuner.h"

#include <vector>

#include <gmock/gmock.h>

namespace tandem::data {
namespace {

using Kind = TunedStage::Kind;

constexpr std::int64_t kSecond = 1'000'000'000;

class TunerTest : public ::testing::Test {
 protected:
  TunedStage& map(const void* key, AutotuneOptions options = {.cpu_budget = 8}) {
    return tuner_.join({.kind = Kind::kMap, .key = key}, options, nullptr);
  }

  // Two seconds pass in which stages were at work for so many, and the consumer waited for a share.
  void pass_time(std::vector<std::pair<TunedStage*, double>> work, double waiting) {
    for (const auto& [stage, seconds] : work) {
      stage->counters.work += static_cast<std::int64_t>(seconds * kSecond);
    }
    tuner_.consumed(now_ += 2 * kSecond, static_cast<std::int64_t>(2 * waiting * kSecond));
  }
  void begin() { tuner_.tick(now_ += kSecond); }

  Tuner tuner_;
  std::int64_t now_ = kSecond;
  int keys_[8] = {};
};

TEST_F(TunerTest, SharesTheBudgetAtFirst) {
  TunedStage& a = map(&keys_[0]);
  EXPECT_EQ(a.threads, 8);
  TunedStage& b = map(&keys_[1]);
  EXPECT_EQ(a.threads, 4);
  EXPECT_EQ(b.threads, 4);
  tuner_.reserve_cores(4);
  EXPECT_EQ(a.threads, 2);
  EXPECT_EQ(b.threads, 2);
}

TEST_F(TunerTest, MovesThreadsToWhereTheWorkIs) {
  TunedStage &a = map(&keys_[0]), &b = map(&keys_[1]);
  begin();
  for (int i = 0; i < 10; ++i) {
    pass_time({{&a, 6.0}, {&b, 1.0}}, 0.9);
    EXPECT_LE(a.threads + b.threads, 8);
  }
  EXPECT_GE(a.threads, 6);
  EXPECT_LE(b.threads, 2);
}

TEST_F(TunerTest, ReturnsWhatTheConsumerDoesNotNeed) {
  TunedStage& a = map(&keys_[0]);
  begin();
  pass_time({{&a, 2.0}}, 0);  // two seconds of work in two: one thread's
  EXPECT_EQ(a.threads, 8);    // once may be chance
  for (int i = 0; i < 10; ++i) {
    const int before = a.threads;
    pass_time({{&a, 2.0}}, 0);
    EXPECT_GE(a.threads, before - 1);
  }
  EXPECT_EQ(a.threads, 2);  // with some room
  // It waits again: the work has become more.
  pass_time({{&a, 4.0}}, 0.6);
  EXPECT_EQ(a.threads, 8);
}

TEST_F(TunerTest, LeavesCoresAtOnce) {
  TunedStage &a = map(&keys_[0]), &b = map(&keys_[1]);
  begin();
  tuner_.reserve_cores(6);
  EXPECT_EQ(tuner_.left_cores(), 6);
  pass_time({{&a, 2.0}, {&b, 2.0}}, 0.9);
  EXPECT_EQ(a.threads + b.threads, 2);
  tuner_.reserve_cores(100);
  pass_time({{&a, 2.0}, {&b, 2.0}}, 0.9);
  EXPECT_EQ(a.threads + b.threads, 2);  // each has one at least
  tuner_.reserve_cores(0);
  pass_time({{&a, 2.0}, {&b, 2.0}}, 0.9);
  EXPECT_EQ(a.threads + b.threads, 8);
}

TEST_F(TunerTest, DoesNotFeedMoreThanTheRestCanTake) {
  TunedStage& a = map(&keys_[0]);
  TunedStage& p =
      tuner_.join({.kind = Kind::kPrefetch, .key = &keys_[1]}, {.cpu_budget = 8}, nullptr);
  begin();
  for (int i = 0; i < 12; ++i) {
    p.counters.input += 2 * kSecond;  // its thread always works
    pass_time({{&a, 4.0}}, 0.9);
  }
  EXPECT_EQ(a.threads, 3);
  EXPECT_EQ(p.threads, 1);
}

TEST_F(TunerTest, KeepsBuffersWithinTheMemory) {
  const AutotuneOptions options{.cpu_budget = 8, .ram_budget = 1000};
  TunedStage& p = tuner_.join({.kind = Kind::kPrefetch, .key = &keys_[0]}, options, nullptr);
  EXPECT_EQ(tuner_.larger_buffer(p), 4);
  p.element_bytes = 100;
  EXPECT_EQ(tuner_.larger_buffer(p), 8);
  EXPECT_EQ(tuner_.larger_buffer(p), 8);  // 16 would be too much
  TunedStage& a = map(&keys_[1], options);
  a.element_bytes = 100;
  begin();
  pass_time({{&a, 16.0}}, 0.9);
  EXPECT_EQ(a.threads, 1);
  EXPECT_EQ(p.buffer, 8);
  // Elements become larger.
  a.element_bytes = p.element_bytes = 300;
  pass_time({{&a, 2.0}}, 0.9);
  pass_time({{&a, 2.0}}, 0.9);
  EXPECT_LE(p.buffer * 300, 1000);
  EXPECT_GE(p.buffer, 1);
}

TEST_F(TunerTest, KnowsStagesAgainInLaterPasses) {
  TunedStage &a = map(&keys_[0]), &b = map(&keys_[1]);
  begin();
  for (int i = 0; i < 5; ++i) pass_time({{&a, 12.0}, {&b, 1.0}}, 0.9);
  const int found = a.threads;
  EXPECT_GE(found, 6);
  tuner_.leave(a);
  EXPECT_EQ(&map(&keys_[0]), &a);
  EXPECT_EQ(a.threads, found);
}

TEST_F(TunerTest, CountsWhatFunctionsMakeAsOne) {
  map(&keys_[0]);
  begin();
  TunedStage& first = map(&keys_[1]);
  TunedStage& second = map(&keys_[2]);
  EXPECT_EQ(&first, &second);
  EXPECT_EQ(first.passes, 2);
  EXPECT_EQ(first.threads, 1);
  tuner_.leave(first);
  EXPECT_EQ(first.passes, 1);
}

TEST_F(TunerTest, LooksMoreRarelyWhenNothingChanges) {
  TunedStage& a = map(&keys_[0], {.cpu_budget = 1});
  begin();
  int looks = 0;
  std::int64_t reported = 0;
  for (int i = 0; i < 1000; ++i) {  // ten seconds
    a.counters.input += kSecond / 100;
    tuner_.consumed(now_ += kSecond / 100, 0);
    looks += a.input != reported;
    reported = a.input;
  }
  EXPECT_GE(looks, 9);
  EXPECT_LE(looks, 30);
}

}  // namespace
}  // namespace tandem::data
