#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tandem/placement/list_scheduler.h"
#include "tandem/placement/task_graph.h"

namespace tandem {

/// What a run gives to a lane at a time: a task, or a segment, a set of tasks that their device
/// runs as one piece of work, without the host in between.
struct Pieces {
  std::vector<std::vector<int>> members;  ///< tasks, by piece, each after those that it waits for
  std::vector<int> of;                    ///< by task: its piece
  std::vector<std::uint8_t> segment;      ///< by piece: 1 if it is one
  ListScheduler scheduler;                ///< of the pieces, at the beginning
  std::vector<int> alike = {};            ///< by task: its kind, as given to `joined`; or empty

  /// Each task is a piece.
  static Pieces single(const TaskGraph& tasks);
  /// `joins`: by task, the compute lane in whose segments it may be, or -1. As few segments as can
  /// be had such that a piece begins when all that its tasks wait for is over, and no two pieces
  /// wait for each other: tasks of a lane are in one segment if the lane was left equally often
  /// before them. A segment waits for what the host computes in some microseconds; coming from more
  /// than that counts too.
  /// `alike`: by task, a kind of tasks that had better stand side by side in a segment, or -1
  /// (alike_steps.h). Those come when nothing else can, one kind at a time: first the kind from
  /// which it is most tasks to the end. Other writes of variables are a kind of their own.
  static Pieces joined(const TaskGraph& tasks, std::span<const int> joins,
                       std::span<const int> alike = {});
};

}  // namespace tandem
