// How many threads are tried for stages that wait, against made-up paces.
#include "tandem/data/autotune/thread_trial.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <gmock/gmock.h>

namespace tandem::data {
namespace {

// Looks each tenth of a second at a stage that gives so many elements a second with n threads, and
// always has as many threads as it may; returns the most and the last.
std::pair<int, int> looks(ThreadTrial& trial, int count, const std::function<double(int)>& pace) {
  int threads = 2, most = 2;
  double made = 0;
  for (int i = 0; i < count; ++i) {
    made += 0.1 * pace(threads);
    threads = std::min(trial.most(threads, static_cast<unsigned>(made), 0.1), 64);
    most = std::max(most, threads);
  }
  return {most, threads};
}

TEST(ThreadTrial, DoublesAsLongAsItPays) {
  ThreadTrial trial;
  EXPECT_EQ(looks(trial, 20, [](int n) { return 100.0 * n; }).second, 64);
}

TEST(ThreadTrial, GoesBackWhereItDoesNotPay) {
  ThreadTrial none;
  const auto [most, last] = looks(none, 12, [](int) { return 500.0; });
  EXPECT_EQ(most, 4);
  EXPECT_EQ(last, 2);
  ThreadTrial limited;
  EXPECT_NEAR(looks(limited, 14, [](int n) { return 100.0 * std::min(n, 10); }).second, 10, 2);
}

TEST(ThreadTrial, TriesAgainSoonAndThenMoreRarely) {
  // Nothing pays for three seconds, since another stage holds this one up: then everything does.
  ThreadTrial trial;
  int tries = 0;
  int threads = 2;
  double made = 0;
  const auto look = [&](double pace) {
    made += 0.1 * pace;
    const int before = threads;
    threads = std::min(trial.most(threads, static_cast<unsigned>(made), 0.1), 64);
    tries += threads > before ? 1 : 0;
  };
  for (int i = 0; i < 30; ++i) look(500);
  EXPECT_GE(tries, 3);
  EXPECT_LE(tries, 5);
  for (int i = 0; i < 40; ++i) look(250.0 * threads);
  EXPECT_EQ(threads, 64);
}

TEST(ThreadTrial, WaitsUntilItKnows) {
  ThreadTrial trial;
  int threads = 2;
  for (int i = 0; i < 20; ++i) threads = trial.most(threads, 3, 0.1);
  EXPECT_EQ(threads, 2);
}

}  // namespace
}  // namespace tandem::data
