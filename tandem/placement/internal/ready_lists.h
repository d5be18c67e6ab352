#pragma once

#include <vector>

#include "tandem/placement/internal/flat_tasks.h"

namespace tandem::placement {

/// What ListScheduler does, on tasks and priorities that its user keeps. Refers to both from reset
/// on, and takes memory only where a graph is larger than those before it.
class ReadyLists {
 public:
  void reset(const FlatTasks& tasks, const std::vector<double>& priority);
  int issue(int lane);
  void finish(int task, std::vector<int>& lanes);
  bool done() const { return left_ == 0; }

 private:
  struct Ready {
    double priority;
    int task;
  };
  struct LaneState {
    int begin = 0;   ///< of its heap in ready_
    int ready = 0;   ///< size of the heap
    int issued = 0;  ///< and not over
    bool named = false;
  };
  static bool later(const Ready& a, const Ready& b) {
    return a.priority != b.priority ? a.priority < b.priority : a.task > b.task;
  }
  void make_ready(int task);
  void name(int lane, std::vector<int>& lanes);

  const FlatTasks* tasks_ = nullptr;
  const double* priority_ = nullptr;
  std::vector<LaneState> lanes_;
  std::vector<Ready> ready_;  ///< the heaps of all lanes, each with room for all of its tasks
  std::vector<int> waiting_;  ///< by task: predecessors neither over nor issued before it on its
                              ///< lane of width 1
  int left_ = 0;
};

}  // namespace tandem::placement
