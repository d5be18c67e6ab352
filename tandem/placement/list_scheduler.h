#pragma once

#include <vector>

#include "tandem/core/export.h"
#include "tandem/placement/task_graph.h"

namespace tandem {

/// Decides what runs next: on each lane, of the tasks that are ready, the one with the longest
/// remaining path. Drives both runs on devices and the simulator; knows no clock and no thread. Not
/// thread-safe: its user locks. All memory is taken when it is made or reset.
class TANDEM_EXPORT ListScheduler {
 public:
  /// `priority`: TaskGraph::remaining_path(); both outlive the scheduler.
  ListScheduler(const TaskGraph& tasks, const std::vector<double>& priority);
  void reset();

  /// The task to issue on a lane now, or -1 if none is ready or the lane is full.
  int issue(int lane);
  /// A task that was issued is over. Lanes that may have something new to issue are appended to
  /// `lanes` (its own among them).
  void finish(int task, std::vector<int>& lanes);
  bool done() const { return left_ == 0; }

 private:
  struct LaneState {
    std::vector<int> ready;  ///< a heap by priority
    int issued = 0;          ///< and not over
  };
  bool less(int a, int b) const;
  void make_ready(int task);

  const TaskGraph& tasks_;
  const std::vector<double>& priority_;
  std::vector<LaneState> lanes_;
  std::vector<int>
      waiting_;  ///< by task: predecessors neither over nor issued before it on its lane
  int left_ = 0;
};

}  // namespace tandem
