#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "tandem/core/export.h"

namespace tandem::data {

/// What the stages of an iteration did so far. Taken from an iterator that was made with `observe`:
///
///     auto it = dataset.iterator({.observe = true});
///     while (it.next(batch)) step(batch);
///     std::cout << it.stats();
///
/// `td::data::explain` says what follows from it. An iteration without `observe` pays nothing;
/// an observed one pays two looks at the clock for each element of each stage, some 50 ns.
///
/// Times are seconds of the wall clock. A stage's own time leaves out what its inputs took and what
/// it waited for, on whatever thread; so the own times of all stages add up to the work done.
struct TANDEM_EXPORT PipelineStats {
  struct Stage {
    std::string name;         ///< as tf.data names the dataset: "ParallelMap"
    int consumer = -1;        ///< the stage that draws from it; -1: the consumer
    std::vector<int> inputs;  ///< in the order of the dataset's
    /// Made by a function of its consumer, as the datasets of interleave are: all such of one kind
    /// are counted together.
    bool nested = false;

    std::int64_t elements = 0;
    std::int64_t bytes = 0;  ///< of its elements; 0 where they went by as numbers of rows
    double work = 0;         ///< its own time on all threads, idle included
    double idle = 0;  ///< of `work`: slept, or waited for files, the network, a device or a lock.
                      ///< An estimate from looks at a thread about every 4 ms; 0 if unknown

    /// How long the consumer stood still since its threads had none ready.
    double waited_for = 0;

    /// For how long the longest of its calls that go on now has worked without asking an input: a
    /// function that does not return, or a read. Part of its own time.
    double in_call = 0;

    /// That it reads, at least; 0 if it reads none, or unknown.
    std::int64_t files = 0;

    // ---- Of stages with threads of their own; else 0. ----
    int threads = 0;     ///< those that may work now; 0 of a tuned map whose elements are too short
    bool tuned = false;  ///< number of threads, or size of buffer, found while running
    double input = 0;    ///< its threads were at work in stages before it
    double input_waited = 0;        ///< its threads waited for other threads before it
    std::int64_t buffer_size = 0;   ///< elements that it makes ahead at most
    double buffer_fill = 0;         ///< mean share of these that an element found ready, 0 to 1
    std::int64_t cycle_length = 0;  ///< of interleave: the datasets that it takes from at a time

    double work_per_element() const;
    /// More than half of its own time is not spent computing, so that more threads than there are
    /// cores make it faster.
    bool waits() const { return idle > 0.5 * work; }
    double bytes_per_element() const;
  };

  std::vector<Stage>
      stages;  ///< consumers before their inputs; the first is the last of the dataset
  std::int64_t elements = 0;  ///< given to the consumer
  bool ended = false;         ///< and no more came
  double seconds = 0;         ///< from the first request to the end, or until now
  double in_next = 0;  ///< of these, spent in Iterator::next: the consumer waits for input. Without
                       ///< the time in which accelerators still ran its eager calls

  /// in_next / seconds: the share of its time that the consumer waits for input.
  double waiting_share() const;
  double elements_per_second() const;
  /// The rate of the last stage's elements.
  double bytes_per_second() const;
};

/// A table with a line for each stage.
TANDEM_EXPORT std::ostream& operator<<(std::ostream& out, const PipelineStats& stats);

}  // namespace tandem::data
