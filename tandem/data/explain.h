#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/data/dataset.h"
#include "tandem/data/pipeline_stats.h"

namespace tandem::data {

/// Where an input pipeline's time goes, what holds it back, and what would make it faster:
///
///     std::cout << td::data::explain(dataset);             // runs it for two seconds
///     std::cout << td::data::explain(iterator.stats());    // or of an iteration that was observed
///
/// What would be comes from a model: stages that work on the same threads one after the other are a
/// section; the slowest section, or the cores, say how many elements a second there are. What it
/// takes to hand elements from thread to thread counts in what is advised.
struct TANDEM_EXPORT PipelineExplanation {
  struct Section {
    int stage = -1;  ///< whose threads these are; -1: the consumer's
    int threads = 1;
    std::vector<int> stages;  ///< that work on them
    double work = 0;          ///< seconds an element of the dataset; the consumer's own are `step`
    double serial = 0;        ///< of these, what one thread at a time may do
    double elements_per_second = 0;  ///< at most; 0: no limit is known
  };
  struct Advice {
    std::string text;
    int stage = -1;                  ///< that it is about
    double elements_per_second = 0;  ///< by the model
    double gain = 1;                 ///< how many times as many as now, by the model
  };

  PipelineStats stats;
  bool stopped = false;  ///< the time was over before the next element came, or the run was
                         ///< interrupted or cancelled
  int cores = 1;
  double step = 0;                 ///< seconds that the consumer has an element for itself
  std::vector<Section> sections;   ///< the consumer's first
  double elements_per_second = 0;  ///< by the model
  int bottleneck = -1;             ///< section; -1: the cores, which are all at work
  int slowest_stage = -1;          ///< in that section, or in all; -1: none. The consumer itself is
                                   ///< the bottleneck if it waits for input less than 5 %
  std::vector<Advice> advice;      ///< the largest gain first

  std::string to_text() const;
  std::string to_json() const;
};

TANDEM_EXPORT std::ostream& operator<<(std::ostream& out, const PipelineExplanation& explanation);

struct PipelineExplainOptions {
  double seconds = 2;         ///< after which the run ends; 0: no limit
  std::int64_t elements = 0;  ///< after which the run ends; 0: no limit
  double step = 0;            ///< seconds for which the run waits after each element, as if an
                              ///< accelerator worked on it
  /// Called, on another thread, with what is known and the error that ended the run, if one did
  /// (else null), when a function that does not return keeps the run from ending for a second more:
  /// it may end the process.
  std::function<void(const PipelineExplanation&, std::exception_ptr)> overdue = {};
  /// Where this becomes true the run ends as it does when the time is over. May be null.
  const std::atomic<bool>* interrupted = nullptr;
};

/// Runs the dataset for a while, or to its end. When the time is over what runs is cancelled, as by
/// a CancellationScope, so that a pipeline that gives no element ends too; a function that is being
/// called goes on to its end.
TANDEM_EXPORT PipelineExplanation explain(const Dataset& dataset,
                                          PipelineExplainOptions options = {});
/// What a library exports to be run by `td data-bench LIB.so`: puts its dataset into `out`.
///
///     extern "C" void tandem_dataset(td::data::Dataset* out) { *out = td::data::range(10); }
///
/// Errors are thrown, as anywhere. docs/data.md has an example.
using DatasetEntry = void(Dataset* out);

/// Explains what an iteration did. `cores` 0: the threads of the runtime's inter-op pool.
TANDEM_EXPORT PipelineExplanation explain(PipelineStats stats, int cores = 0);

}  // namespace tandem::data
