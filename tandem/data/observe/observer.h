#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tandem/data/dataset_base.h"
#include "tandem/data/observe/stage_counters.h"
#include "tandem/data/pipeline_stats.h"

namespace tandem::data {

struct ObservedStage {
  std::string name;
  ObservedStage* consumer = nullptr;
  /// Which of the consumer's; kPart: begun with it, but none of its inputs; kMade: by its function.
  std::int64_t input = 0;
  static constexpr std::int64_t kPart = -2, kMade = -1;
  std::atomic<bool> passes_on{false};  ///< its elements are its input's, by that one's iterator
  StageCounters counters;
  std::vector<ObservedStage*> inputs;
};

/// The stages of one iteration, found as their passes begin. Thread-safe; a stage stays where it
/// is.
class Observer {
 public:
  /// The stage of a dataset that `from` (or null), a pass over `consumer`, draws from. Passes that
  /// follow each other, and the datasets that a function makes, share one.
  ObservedStage& stage(const DatasetBase& dataset, ObservedStage* from, const DatasetBase* consumer,
                       bool begun_with_consumer);

  /// The last stage's `next` begins, and has ended, from the consumer's side. `worked`: in how much
  /// of that time accelerators ran what the consumer had given them.
  void asked(std::int64_t begin) { asked_.store(begin, std::memory_order_relaxed); }
  void next(std::int64_t begin, std::int64_t end, std::int64_t worked, bool gave);
  void ended();
  PipelineStats stats() const;
  /// The last stage's name.
  std::string name() const;
  /// What work the stages had since this was last asked, the most first: "Map 71 %, Batch 29 %".
  std::string recent_shares();

 private:
  mutable std::mutex mutex_;  // guards the below, but for the counters
  std::deque<ObservedStage> stages_;
  std::atomic<std::int64_t> asked_{0};  // when `next` began; 0: no call is in it
  std::int64_t begin_ = 0;              // nanoseconds
  std::int64_t end_ = 0;
  std::int64_t in_next_ = 0;
  std::int64_t elements_ = 0;
  bool ended_ = false;
  std::map<const ObservedStage*, std::int64_t> reported_;  // of their work, by recent_shares
};

/// That of an iteration that is observed, else null. It may be asked while the iterator is being
/// destroyed.
std::shared_ptr<const Observer> observer_of(const Iterator& iterator);

}  // namespace tandem::data
