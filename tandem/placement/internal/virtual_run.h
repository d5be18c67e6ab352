#pragma once

#include <limits>
#include <vector>

#include "tandem/placement/internal/flat_tasks.h"
#include "tandem/placement/internal/ready_lists.h"

namespace tandem::placement {

/// A run of tasks on a virtual clock, lane by lane as ReadyLists issues them. May be used again and
/// again; then it takes no more memory.
class VirtualRun {
 public:
  /// Returns when everything is over. Gives up, and returns infinity, when it is clear that this is
  /// not before `limit`; `priority` must then be the remaining paths.
  double run(const FlatTasks& tasks, const std::vector<double>& priority,
             double limit = std::numeric_limits<double>::infinity());

  const std::vector<double>& begin() const { return begin_; }  ///< by task
  const std::vector<double>& end() const { return end_; }
  /// By task: the task of its lane at whose end it could begin, or -1 if the lane was free.
  const std::vector<int>& behind() const { return behind_; }
  const std::vector<int>& order() const { return order_; }  ///< tasks as they began

 private:
  struct Over {
    double time;
    int task;
  };
  struct LaneRun {
    std::vector<int> issued;  ///< and not begun, from `head` on
    std::size_t head = 0;
    int running = 0;
    int last = -1;  ///< the task that was over last
    bool asked = false;
  };
  void begin_task(int task, double now, const FlatTasks& tasks);
  void advance(int lane, double now, const FlatTasks& tasks);

  ReadyLists lists_;
  std::vector<Over> over_;  ///< a heap, the earliest first
  std::vector<LaneRun> lanes_;
  std::vector<double> begin_, end_;
  std::vector<int> behind_, order_, active_;
};

}  // namespace tandem::placement
