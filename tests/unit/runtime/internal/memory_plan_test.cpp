#include "tandem/runtime/execute/memory_plan.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace tandem {
namespace {

std::size_t padded(std::size_t bytes) { return std::max<std::size_t>(64, (bytes + 63) / 64 * 64); }

TEST(PlanMemoryBySteps, ValuesThatAreAliveTogetherDoNotOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::size_t> bytes, offsets;
    std::vector<int> first, last;
    for (int i = 0; i < 300; ++i) {
      bytes.push_back(random() % 5000);
      first.push_back(static_cast<int>(random() % 400));
      last.push_back(first.back() + static_cast<int>(random() % 30));
    }
    const std::size_t arena = plan_memory_by_steps(bytes, first, last, offsets);
    std::vector<std::size_t> alive(500, 0);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_EQ(offsets[i] % 64, 0u);
      EXPECT_LE(offsets[i] + bytes[i], arena);
      for (int s = first[i]; s <= last[i]; ++s)
        alive[static_cast<std::size_t>(s)] += padded(bytes[i]);
      for (std::size_t j = 0; j < i; ++j) {
        if (last[j] < first[i] || last[i] < first[j]) continue;
        EXPECT_TRUE(offsets[i] + padded(bytes[i]) <= offsets[j] ||
                    offsets[j] + padded(bytes[j]) <= offsets[i])
            << i << " and " << j;
      }
    }
    const std::size_t least = *std::max_element(alive.begin(), alive.end());
    EXPECT_GE(arena, least);
    EXPECT_LT(arena, least + least / 2) << "places are used again";
  }
}

TEST(PlanMemoryBySteps, AChainTakesTwoPlaces) {
  constexpr int kSteps = 100'000;
  std::vector<std::size_t> bytes(kSteps, 4096), offsets;
  std::vector<int> first, last;
  for (int i = 0; i < kSteps; ++i) {
    first.push_back(i);
    last.push_back(i + 1);  // its reader
  }
  EXPECT_EQ(plan_memory_by_steps(bytes, first, last, offsets), std::size_t{2} * 4096);
}

TEST(PlanMemoryBySteps, NothingTakesNothing) {
  std::vector<std::size_t> offsets{1, 2};
  EXPECT_EQ(plan_memory_by_steps({}, {}, {}, offsets), 0u);
  EXPECT_TRUE(offsets.empty());
}

}  // namespace
}  // namespace tandem
