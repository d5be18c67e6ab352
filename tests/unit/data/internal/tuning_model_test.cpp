// The tuner's model against a simulation of pipelines, element by element, and against every other
// setting.
#include "tandem/data/autotune/tuning_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <random>
#include <vector>

#include <gmock/gmock.h>

namespace tandem::data {
namespace {

using ::testing::ElementsAre;

TEST(TuningModel, KnowsHowFastAPartIs) {
  EXPECT_DOUBLE_EQ(rate_of({.work = 0.5}, 1), 2);
  EXPECT_DOUBLE_EQ(rate_of({.work = 0.5}, 4), 8);
  EXPECT_DOUBLE_EQ(rate_of({.work = 0.5, .serial = 0.25}, 4), 4);
  EXPECT_DOUBLE_EQ(rate_of({.work = 0.5, .serial = 0.25, .passes = 2}, 1), 4);
  EXPECT_GT(rate_of({}, 1), 1e300);
}

TEST(TuningModel, GivesTheSlowestPartThreads) {
  EXPECT_THAT(choose_threads({{.work = 3}, {.work = 1}}, {.cpu_budget = 4}), ElementsAre(3, 1));
  EXPECT_THAT(choose_threads({{.work = 1}, {.work = 1}}, {.cpu_budget = 6}), ElementsAre(3, 3));
  EXPECT_THAT(choose_threads({{.work = 1, .passes = 4}, {.work = 1}}, {.cpu_budget = 8}),
              ElementsAre(1, 4));
  EXPECT_THAT(choose_threads({}, {.cpu_budget = 4}), ElementsAre());
}

TEST(TuningModel, GivesNoMoreThanHelps) {
  // The second part cannot be made faster: the first needs as much, and a little room.
  EXPECT_THAT(choose_threads({{.work = 4}, {.work = 1, .tunable = false}}, {.cpu_budget = 64}),
              ElementsAre(5, 1));
  // Half of the work is behind a lock.
  EXPECT_THAT(choose_threads({{.work = 1, .serial = 0.5}}, {.cpu_budget = 64}), ElementsAre(3));
  EXPECT_THAT(choose_threads({{.work = 1, .most = 3}}, {.cpu_budget = 64}), ElementsAre(3));
  EXPECT_THAT(choose_threads({{.work = 1}}, {.cpu_budget = 64, .wanted = 2.5}), ElementsAre(3));
  EXPECT_THAT(choose_threads({{.work = 0}}, {.cpu_budget = 64}), ElementsAre(1));
}

// With one thread each, the faster part's core would be idle for a part of the time.
TEST(TuningModel, LeavesNoCoreIdleWhereItCountsCores) {
  const auto chosen = [](const std::vector<TunedPart>& parts, int cores) {
    return choose_threads(parts, {.cpu_budget = cores, .counts_cores = true});
  };
  EXPECT_THAT(choose_threads({{.work = 3}, {.work = 1}}, {.cpu_budget = 2}), ElementsAre(1, 1));
  EXPECT_THAT(chosen({{.work = 3}, {.work = 1}}, 2), ElementsAre(2, 1));
  EXPECT_THAT(chosen({{.work = 1.1}, {.work = 0.9}}, 2), ElementsAre(2, 1));
  EXPECT_THAT(chosen({{.work = 1}, {.work = 1}}, 2), ElementsAre(1, 1));
  EXPECT_THAT(chosen({{.work = 3}, {.work = 1}}, 4), ElementsAre(3, 1));
  EXPECT_THAT(chosen({{.work = 5}, {.work = 5}, {.work = 5}}, 4), ElementsAre(2, 2, 2));
  // Nothing is gained behind a lock, or behind a part that stays as it is.
  EXPECT_THAT(chosen({{.work = 3, .serial = 3}, {.work = 1}}, 2), ElementsAre(1, 1));
  EXPECT_THAT(chosen({{.work = 3}, {.work = 3, .tunable = false}, {.work = 1}}, 2),
              ElementsAre(1, 1, 1));
}

// What waits is served between the threads that compute, and keeps none of them away.
TEST(TuningModel, CountsThreadsThatWaitApart) {
  const TunedPart waits{.work = 16, .cpu = 0.1}, computes{.work = 2};
  EXPECT_THAT(choose_threads({waits, computes}, {.cpu_budget = 2}), ElementsAre(20, 2));
  EXPECT_THAT(choose_threads({waits, waits}, {.cpu_budget = 2}), ElementsAre(10, 10));
}

TEST(TuningModel, KeepsToTheBudgets) {
  EXPECT_THAT(choose_threads({{.work = 9}, {.work = 1}}, {.cpu_budget = 1}), ElementsAre(1, 1));
  EXPECT_THAT(choose_threads({{.work = 9, .buffer = 10}}, {.cpu_budget = 8, .ram_budget = 35}),
              ElementsAre(3));
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<TunedPart> parts(1 + random() % 5);
    for (TunedPart& part : parts) {
      part.work = static_cast<double>(random() % 100);
      part.passes = 1 + static_cast<int>(random() % 3);
      part.most = 1 + static_cast<int>(random() % 9);
      part.buffer = static_cast<double>(random() % 5);
    }
    const TuningLimits limits{.cpu_budget = 1 + static_cast<int>(random() % 16),
                              .ram_budget = static_cast<double>(random() % 60)};
    const std::vector<int> threads = choose_threads(parts, limits);
    int cpu = 0, least_cpu = 0;
    double ram = 0, least_ram = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_GE(threads[i], 1);
      EXPECT_LE(threads[i], parts[i].most);
      cpu += threads[i] * parts[i].passes;
      least_cpu += parts[i].passes;
      ram += threads[i] * parts[i].passes * parts[i].buffer;
      least_ram += parts[i].passes * parts[i].buffer;
    }
    EXPECT_LE(cpu, std::max(limits.cpu_budget, least_cpu));
    EXPECT_LE(ram, std::max(limits.ram_budget, least_ram));
  }
}

// Elements a second of a pipeline in which each part has threads, a lock for the serial part of its
// work, and a buffer of twice as many elements as threads, which leave it in order; how long an
// element takes swings between half and one and a half times the mean.
double simulate(const std::vector<TunedPart>& parts, const std::vector<int>& threads,
                unsigned seed) {
  constexpr std::size_t kElements = 600;
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> swing(0.5, 1.5);
  struct Part {
    std::priority_queue<double, std::vector<double>, std::greater<>> free;  // when, of each thread
    double unlocked = 0;
    double left = 0;             // the last element
    std::vector<double> begins;  // of each element
  };
  std::vector<Part> state(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (int t = 0; t < threads[i]; ++t) state[i].free.push(0);
  }
  for (std::size_t k = 0; k < kElements; ++k) {
    double there = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Part& part = state[i];
      double begin = std::max({there, part.free.top(), part.unlocked});
      const auto buffer = 2 * static_cast<std::size_t>(threads[i]);
      if (i + 1 < parts.size() && k >= buffer) {
        begin = std::max(begin, state[i + 1].begins[k - buffer]);
      }
      const double factor = swing(random);
      part.unlocked = begin + factor * parts[i].serial;
      const double end = begin + factor * parts[i].work;
      part.free.pop();
      part.free.push(end);
      part.begins.push_back(begin);
      part.left = there = std::max(end, part.left);
    }
  }
  return kElements / state.back().left;
}

// The best of all settings within the budget.
double best_of(const std::vector<TunedPart>& parts, int budget, unsigned seed) {
  double best = 0;
  std::vector<int> threads;
  const std::function<void(std::size_t, int)> visit = [&](std::size_t i, int left) {
    if (i == parts.size()) {
      best = std::max(best, simulate(parts, threads, seed));
      return;
    }
    int later = 0;
    for (std::size_t j = i + 1; j < parts.size(); ++j) later += parts[j].tunable ? 1 : 0;
    const int most = parts[i].tunable ? left - later : parts[i].threads;
    for (int t = parts[i].tunable ? 1 : most; t <= most; ++t) {
      threads.push_back(t);
      visit(i + 1, left - (parts[i].tunable ? t : 0));
      threads.pop_back();
    }
  };
  visit(0, budget);
  return best;
}

TEST(TuningModel, ReachesNineTenthsOfTheBestSetting) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> magnitude(-1.5, 1.5), share(0, 1);
  double sum = 0;
  constexpr int kRounds = 150;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<TunedPart> parts(1 + random() % 4);
    int tunable = 0;
    for (TunedPart& part : parts) {
      part.work = std::pow(10, magnitude(random));
      if (random() % 2 == 0) part.serial = part.work * share(random) * share(random);
      part.tunable = random() % 4 != 0;
      if (!part.tunable) part.serial = part.work;  // a prefetch's thread
      tunable += part.tunable ? 1 : 0;
    }
    const int budget = std::max(tunable, 2 + static_cast<int>(random() % 7));
    const std::vector<int> chosen = choose_threads(parts, {.cpu_budget = budget});
    const double ours = simulate(parts, chosen, 5), best = best_of(parts, budget, 5);
    EXPECT_GE(ours, 0.9 * best) << "round " << round << ", threads "
                                << ::testing::PrintToString(chosen) << " of " << budget;
    sum += ours / best;
  }
  EXPECT_GE(sum / kRounds, 0.98);
}

}  // namespace
}  // namespace tandem::data
