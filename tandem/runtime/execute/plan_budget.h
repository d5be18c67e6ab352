#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "tandem/runtime/plan_stats.h"

namespace tandem {

class PlanCache;

/// What the plans of one runtime's functions hold together, and which of them go when that is too
/// much. Thread-safe. Calls into caches with its own lock held, never the other way round.
class PlanBudget {
 public:
  PlanBudget();

  /// Counts plans made: a plan's last use is the count that it found. For every call: one load.
  std::uint64_t now() const { return clock_.load(std::memory_order_relaxed); }
  /// After a plan was made, without any lock held.
  void made(const std::shared_ptr<PlanCache>& cache, bool shared, double seconds);
  /// A call waited for so long. Takes no lock.
  void stalled(double seconds);
  PlanStats stats();

  void set_limit(std::size_t bytes) { limit_.store(bytes); }
  std::size_t limit() const { return limit_.load(); }

 private:
  std::vector<std::shared_ptr<PlanCache>> caches();  // with mutex_ held
  void enforce();

  std::atomic<std::uint64_t> clock_{1};
  std::atomic<std::size_t> limit_;
  std::atomic<double> longest_stall_{0};
  std::mutex mutex_;
  std::vector<std::weak_ptr<PlanCache>> caches_;  // guarded by mutex_, as what follows
  PlanStats totals_;
};

}  // namespace tandem
