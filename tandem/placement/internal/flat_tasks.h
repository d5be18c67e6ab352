#pragma once

#include <span>
#include <vector>

#include "tandem/placement/task_graph.h"

namespace tandem::placement {

/// A TaskGraph in few arrays, as the scheduler and the search for placements go through it.
struct FlatTasks {
  std::vector<Lane> lanes;
  std::vector<int> lane;         ///< by task
  std::vector<double> seconds;   ///< by task
  std::vector<int> before;       ///< by task: how many it waits for
  std::vector<int> after_begin;  ///< by task, and one more: where its part of `after` begins
  std::vector<int> after;

  int size() const { return static_cast<int>(lane.size()); }
  std::span<const int> after_of(int task) const {
    const auto t = static_cast<std::size_t>(task);
    return {after.data() + after_begin[t], after.data() + after_begin[t + 1]};
  }
  /// Throws InvalidArgumentError if a task names a lane or task that is not there.
  static FlatTasks of(const TaskGraph& tasks);
};

/// Like TaskGraph::remaining_path. Throws InvalidArgumentError if the tasks wait for each other.
std::vector<double> remaining_path(const FlatTasks& tasks);
/// Computes remaining_path where tasks wait only for those of lower number.
void remaining_path_in_order(const FlatTasks& tasks, std::vector<double>& longest);

}  // namespace tandem::placement
