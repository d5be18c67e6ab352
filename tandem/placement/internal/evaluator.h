#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "tandem/placement/internal/flat_tasks.h"
#include "tandem/placement/internal/memory_peak.h"
#include "tandem/placement/internal/problem.h"
#include "tandem/placement/internal/virtual_run.h"

namespace tandem::placement {

/// How good an assignment is: one that fits into the memories is better than one that does not,
/// then the shorter one is.
struct Score {
  double excess = 0;  ///< bytes that the memories are too small by
  double makespan = std::numeric_limits<double>::infinity();
  bool operator<(const Score& other) const {
    return excess != other.excess ? excess < other.excess : makespan < other.makespan;
  }
};

/// Runs assignments of one problem on the virtual clock, as `simulate(TaskGraph::of(…))` would.
class Evaluator {
 public:
  explicit Evaluator(const Problem& problem);

  /// The score; or one that is no better than `limit`, found out sooner.
  Score score(const Assignment& assignment, const Score& limit = {});

  // Results of the assignment that was scored last, if it was run to its end.
  const FlatTasks& tasks() const { return tasks_; }
  const VirtualRun& run() const { return run_; }
  /// By task: its node, or of a copy the value, as -1 - value.
  const std::vector<int>& what() const { return what_; }

  /// The input (or the node that it waits for) that a task got last: a task, or -1.
  int last_input(int task, const Assignment& assignment) const;

  /// How many tasks were run so far, roughly: what has been spent.
  double spent() const { return spent_; }

 private:
  struct Arrived {
    int memory;
    int task;
    int next;
    int held;
  };
  struct HeldBytes {
    int memory;
    double bytes, from, until;
  };
  void build(const Assignment& assignment);
  int arrival(int value, int to, const Assignment& assignment);
  void add_task(int lane, double seconds, int what);
  double excess(const Assignment& assignment);
  int held_in(int value, int memory, const Assignment& assignment) const;

  const Problem& problem_;
  FlatTasks tasks_;
  VirtualRun run_;
  std::vector<int> what_;
  std::vector<std::pair<int, int>> edges_;
  std::vector<int> task_of_;          // by node
  std::vector<int> copies_of_value_;  // by value: index of the newest in arrived_
  std::vector<Arrived> arrived_;
  std::vector<double> remaining_;
  std::vector<int> next_;
  std::vector<std::vector<MemoryChange>> changes_;  // by memory
  std::vector<HeldBytes> held_;
  std::vector<int> held_of_value_;
  double spent_ = 0;
};

}  // namespace tandem::placement
