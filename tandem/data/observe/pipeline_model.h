#pragma once

#include <string>
#include <vector>

#include "tandem/data/explain.h"

namespace tandem::data {

/// A pipeline that can be changed and asked how fast it would be.
class PipelineModel {
 public:
  struct Stage {
    int consumer = -1;
    double work = 0;  ///< seconds an element of the dataset
    double cpu = 0;   ///< of these, on a core
    int threads = 0;  ///< 0: works where its elements are consumed
    /// Its threads each work at an input of their own, or there is one thread; else they take turns
    /// in the input.
    bool own_inputs = false;
    bool is_prefetch = false;  ///< its own work is its consumer's
    bool by_consumer = false;  ///< where its consumer has threads: not on these
    bool prefetched = false;   ///< a prefetch was put behind it
    double elements = 1;       ///< for each of the dataset
    /// They are handed to another thread, which those that were measured were not: of these the
    /// work has it.
    bool hands_over = false;
  };

  explicit PipelineModel(const PipelineStats& stats, double step, int cores);

  std::vector<Stage> stages;
  double step = 0;
  int cores = 1;

  /// The consumer's section first.
  std::vector<PipelineExplanation::Section> sections() const;
  /// Elements a second; 0 if nothing took time.
  double rate() const;
  /// All work of an element on cores.
  double cpu() const;
  /// Threads that a stage could use.
  int useful_threads(int stage) const;

  /// True if `stage` is `at` or comes before it.
  bool comes_before(int stage, int at) const;

 private:
  int section_of(int stage) const;
  /// What handing its elements over takes on either side, in seconds.
  double handing(const Stage& stage) const;
};

/// "Map"; "Map 2" where there are more such, by the order in which elements pass them.
std::string stage_label(const PipelineStats& stats, int stage);

/// What would make the pipeline faster.
std::vector<PipelineExplanation::Advice> advice_for(const PipelineStats& stats,
                                                    const PipelineModel& model);

}  // namespace tandem::data
