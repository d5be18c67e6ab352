#pragma once

#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/placement/placement.h"

namespace tandem {

/// Where tasks run: the compute streams of a device, or one of its two copy streams.
struct Lane {
  enum Kind { kCompute, kCopyIn, kCopyOut };
  int device = 0;
  Kind kind = kCompute;
  int width = 1;  ///< tasks that run side by side
  int depth = 1;  ///< tasks that may be issued before the first of them is over; at least `width`.
                  ///< A task may be issued behind those that it waits for on a lane of width 1.
};

/// A piece of work for one lane: a node of a graph, or a copy.
struct Task {
  int lane = 0;
  double seconds = 0;          ///< expected
  const Node* node = nullptr;  ///< null for a copy
  int copy = -1;               ///< index into `copies`, or -1
};

/// Memory that is taken when a task begins and released when the last of some others is over.
struct Allocation {
  int memory = 0;  ///< space
  double bytes = 0;
  const Node* node = nullptr;  ///< whose output it is, or a variable
  int from = -1;               ///< the task; -1: held from the beginning
  std::vector<int> until;      ///< tasks; none: released when `from` is over
  bool permanent = false;      ///< to the end of everything
};

/// Tasks, and which must be over before which begin. Acyclic.
struct TANDEM_EXPORT TaskGraph {
  std::vector<Lane> lanes;
  std::vector<Task> tasks;
  std::vector<PlannedCopy> copies;
  std::vector<std::vector<int>> after;  ///< by task: those that wait for it (each once)
  std::vector<int> before;              ///< by task: how many it waits for
  std::vector<Allocation> allocations;

  int add(Task task);
  /// `then` waits for `first`; said twice it counts once.
  void add_edge(int first, int then);
  /// For each task the longest way from its beginning to the end of everything, in seconds: who has
  /// most ahead goes first.
  std::vector<double> remaining_path() const;

  /// The three lanes of each device: lane 3 d computes, 3 d + 1 copies in, 3 d + 2 copies out. A
  /// copy between two accelerators takes the receiver's lane alone. Between tasks a value goes from
  /// host to host, with a copy of its own for each hop.
  static std::vector<Lane> lanes_of(const DeviceSet& devices);
  static int copy_lane(int from_memory, int to_memory) {
    return to_memory != 0 ? 3 * to_memory + 1 : 3 * from_memory + 2;
  }
  /// The lane of a copy where there are several tasks. A copy from host to host takes the
  /// receiver's lane.
  static int copy_lane(const DeviceSet& devices, int from_memory, int to_memory) {
    const bool to_own_host = devices.host_of(from_memory) == to_memory;
    return to_own_host ? 3 * from_memory + 2 : 3 * to_memory + 1;
  }
  /// The tasks of a placed graph: of loops one iteration. Each task stands after those that it
  /// waits for. Constants, arguments and results are no tasks (a constant that waits for something
  /// is): their values are there from the beginning, and a task that wants them elsewhere has them
  /// copied.
  static TaskGraph of(const Graph& graph, const Placement& placement, const CostModel& costs);
};

}  // namespace tandem
