#pragma once

#include <limits>
#include <vector>

namespace tandem::data {

/// A model of pipelines whose parts work at the same time, each with threads of its own: a part
/// with p threads and w seconds of work an element gives p / w elements a second, at most 1 / s if
/// s of these seconds are behind a lock; the pipeline gives as many as its slowest part.
struct TunedPart {
  double work = 0;    ///< seconds an element of the pipeline, in any unit common to all parts
  double serial = 0;  ///< of these, what one thread at a time may do
  int threads = 1;    ///< as they are
  bool tunable = true;
  int most = std::numeric_limits<int>::max();  ///< threads that could find something to do
  int passes = 1;                              ///< at a time, each with so many threads
  double buffer = 0;                           ///< bytes that each thread keeps in buffers
  double cpu = 1;  ///< share of a core that each thread takes; less where it waits
};

struct TuningLimits {
  int cpu_budget = 1;  ///< cores for tunable parts together; each pass has a thread at least
  double ram_budget = std::numeric_limits<double>::infinity();  ///< bytes in their buffers
  /// The budget is of cores at work, not of threads: where a part's threads would leave cores idle
  /// that another part waits for, there may be a thread more for each part but one.
  bool counts_cores = false;
  /// No more elements a second are wanted.
  double wanted = std::numeric_limits<double>::infinity();
};

/// What threads take of the cores. Those that wait get theirs between the others: they are counted
/// apart, so that a few of them do not keep a core's thread from a part that computes.
class CoresTaken {
 public:
  void add(const TunedPart& part, int threads) {
    (part.cpu < 1 ? waiting_ : computing_) += threads * part.passes * part.cpu;
  }
  bool within(int budget) const {
    constexpr double kRounding = 1e-9;
    return computing_ <= budget + kRounding && waiting_ <= budget + kRounding;
  }
  bool leave_room_for(const TunedPart& part, int budget) const;

 private:
  double computing_ = 0, waiting_ = 0;
};

/// Elements a second of one part, with so many threads for each pass.
double rate_of(const TunedPart& part, int threads);

/// The threads for each part that give the most elements a second, and no more than that takes with
/// some room for swings. Parts that are not tunable keep theirs.
std::vector<int> choose_threads(const std::vector<TunedPart>& parts, const TuningLimits& limits);

}  // namespace tandem::data
