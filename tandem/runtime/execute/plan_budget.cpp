#include "tandem/runtime/execute/plan_budget.h"

#include <algorithm>

#include "tandem/core/machine.h"
#include "tandem/runtime/execute/plan_cache.h"

namespace tandem {

PlanBudget::PlanBudget() : limit_(static_cast<std::size_t>(machine_limits().memory / 4)) {}

void PlanBudget::made(const std::shared_ptr<PlanCache>& cache, bool shared, double seconds) {
  clock_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  ++totals_.made;
  totals_.shared += shared ? 1 : 0;
  totals_.seconds += seconds;
  const auto known = std::find_if(caches_.begin(), caches_.end(),
                                  [&](const auto& c) { return c.lock() == cache; });
  if (known == caches_.end()) caches_.push_back(cache);
  enforce();
}

void PlanBudget::stalled(double seconds) {
  double longest = longest_stall_.load(std::memory_order_relaxed);
  while (longest < seconds &&
         !longest_stall_.compare_exchange_weak(longest, seconds, std::memory_order_relaxed)) {
  }
}

PlanStats PlanBudget::stats() {
  std::lock_guard lock(mutex_);
  PlanStats stats = totals_;
  stats.longest_stall = longest_stall_.load(std::memory_order_relaxed);
  for (const auto& cache : caches()) {
    for (const PlanUse& use : cache->uses()) {
      ++stats.kept;
      stats.bytes += use.bytes();
    }
  }
  return stats;
}

std::vector<std::shared_ptr<PlanCache>> PlanBudget::caches() {
  std::vector<std::shared_ptr<PlanCache>> alive;
  for (const auto& cache : caches_) {
    if (auto there = cache.lock()) alive.push_back(std::move(there));
  }
  caches_.assign(alive.begin(), alive.end());
  return alive;
}

void PlanBudget::enforce() {
  struct Candidate {
    PlanCache* cache;
    PlanUse use;
  };
  const auto alive = caches();
  std::vector<Candidate> candidates;
  std::size_t total = 0;
  for (const auto& cache : alive) {
    for (const PlanUse& use : cache->uses()) {
      total += use.bytes();
      if (!use.latest) candidates.push_back({cache.get(), use});
    }
  }
  const std::size_t limit = this->limit();
  if (total <= limit) return;
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.use.last_use < b.use.last_use; });
  // Memory of values is soon there again; what was planned takes as long as before.
  for (Candidate& c : candidates) {
    if (total <= limit) return;
    c.use.plan->free_idle_memory();
    total -= c.use.idle_bytes;
  }
  for (const Candidate& c : candidates) {
    if (total <= limit) return;
    if (c.cache->evict(*c.use.plan)) ++totals_.evicted;
    total -= c.use.plan_bytes;
  }
}

}  // namespace tandem
