#pragma once

#include <memory>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/placement/task_graph.h"

namespace tandem {

/// Decides what runs next: on each lane, of the tasks that may be issued, the one with the longest
/// remaining path (of equal ones the one added first). A task may be issued when each task that it
/// waits for is over, or was issued before it on the same lane of width 1; on each lane at most
/// `depth` tasks are issued and not over. Drives both runs on devices and the simulator; knows no
/// clock and no thread. Not thread-safe: its user locks. All memory is taken when it is made.
class TANDEM_EXPORT ListScheduler {
 public:
  /// `priority`: TaskGraph::remaining_path(). Both are copied. Throws InvalidArgumentError if a
  /// task names a lane that is not there.
  ListScheduler(const TaskGraph& tasks, const std::vector<double>& priority);
  ~ListScheduler();
  /// At the same point. Copies share the tasks and priorities, so that a run that begins with a
  /// copy of a scheduler which stands at the beginning costs little.
  ListScheduler(const ListScheduler& other);
  ListScheduler(ListScheduler&&) noexcept;
  ListScheduler& operator=(ListScheduler&&) noexcept;
  /// Back to the beginning.
  void reset();

  /// The task to issue on a lane now, or -1 if none may be or the lane is full.
  int issue(int lane);
  /// A task that was issued is over. Lanes that may have something new to issue are appended to
  /// `lanes`, each once (its own among them).
  void finish(int task, std::vector<int>& lanes);
  /// Every task is over.
  bool done() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
