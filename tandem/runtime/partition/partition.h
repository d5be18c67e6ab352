#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/core/export.h"
#include "tandem/graph/passes.h"

namespace tandem {

class OpRegistry;

/// A device that nodes of a graph are assigned to, of any task.
struct PartitionDevice {
  std::string name;               ///< full: "/job:worker/replica:0/task:1/device:CPU:0"
  std::uint64_t incarnation = 0;  ///< Device::incarnation
};

/// A graph, and for each node the device that runs it.
struct AssignedGraph {
  MutableFunction function;
  std::vector<PartitionDevice> devices;
  std::vector<int> device_of;  ///< by node id: an index into `devices`
  /// Part of the names of sends and receives, "x_S2_1" with "2_". TensorFlow's workers keep one
  /// kernel for each name of a stateful node in a session, so its graphs must not share names.
  std::string name_tag = {};
};

enum class PartitionBy : std::uint8_t {
  kTask,    ///< one part for each task: it has all devices of the task
  kDevice,  ///< one part for each device
};

/// What one task, or one device, runs of a graph: a function of its own whose sends and receives
/// (`_Send`, `_Recv`) take the place of the edges that are cut.
struct GraphPart {
  std::string name;  ///< of the task, "/job:worker/replica:0/task:1", or the device
  FunctionRef function;
  std::vector<int> args;     ///< which arguments of the whole it takes, in its order
  std::vector<int> results;  ///< which results of the whole it gives, in its order
};

/// Splits a graph where its edges lead from one task (or device) to another. A value is sent once
/// to each part that reads it, under a name of its own; a control edge sends an empty constant.
/// Constants that wait for nothing are there once in each part instead. Nodes ask for the device
/// that they are assigned to.
///
/// Loops of TensorFlow 1 may span parts: each part that takes part in a loop gets a control loop
/// (Enter, Merge, Switch, NextIteration) which runs as often as the loop's condition, received in
/// each iteration, says; Switch and Exit go where their input is, Enter and NextIteration where
/// their reader is.
///
/// Throws InvalidArgumentError that names the nodes: for a cycle, for a reference or a resource's
/// handle that leads to another part, and for a loop over several parts without a LoopCond.
TANDEM_EXPORT std::vector<GraphPart> partition(AssignedGraph graph, const OpRegistry& ops,
                                               PartitionBy by = PartitionBy::kTask,
                                               bool may_optimize = true);

/// Throws InvalidArgumentError if the parts do not fit together, so that a step of them would wait
/// for ever or leave values behind: a name that is sent or received twice, a receive that no part
/// answers (naming who should), a send that no part receives, a pair of different dtypes, and
/// parts that wait for each other in a cycle. Sends and receives that a client answers
/// (`client_terminated`) are left out.
TANDEM_EXPORT void check_parts(std::span<const GraphPart> parts);

}  // namespace tandem
