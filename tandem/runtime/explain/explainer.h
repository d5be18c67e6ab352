#pragma once

#include <string>
#include <vector>

#include "tandem/graph/graph.h"
#include "tandem/placement/placement.h"
#include "tandem/placement/simulator.h"
#include "tandem/placement/task_graph.h"
#include "tandem/runtime/explain.h"

namespace tandem {

/// What the parts of an explanation are made from.
struct ExplainedGraph {
  const Graph& graph;
  const Placement& placement;
  const CostModel& costs;
  const KernelRegistry& kernels;
  const PlacementOptions& options;
  std::vector<const Node*> order;  ///< as Explanation::ops
  std::vector<int> op_of;          ///< by node id: index in `order`, or -1

  int op(const Node& node) const { return op_of[static_cast<std::size_t>(node.id())]; }
};

/// Bytes held by device over the simulated time. Values are held from the beginning of their maker
/// to the end of their last user; variables and results always.
void explain_memory(const ExplainedGraph& g, const TaskGraph& tasks, const Simulation& simulation,
                    Explanation& out);

/// Finds stays on a device that cost more on the way than is done there.
void explain_round_trips(const ExplainedGraph& g, Explanation& out);

/// Simulates what might be better. `step_seconds` is that of `out`.
void explain_advice(const ExplainedGraph& g, Explanation& out);

/// "GPU:0" of a full name, "/job:worker/task:1/GPU:0" where there are several tasks.
std::string short_device_name(const DeviceSet& devices, int device);
/// "/job:worker/task:1".
std::string short_task_name(const DeviceSpec& device);
/// Who needs a copy: "dense/MatMul and 2 more", "the result" or "on its way to GPU:1".
std::string readers_text(const Explanation& explanation, const Explanation::Copy& copy,
                         std::size_t most_named);

/// For people: "1.2 ms", "3.4 MiB".
std::string seconds_text(double seconds);
/// "oneDNN gemm 31.7 ms, BLAS 34.9 ms": the candidates of a choice, the fastest first.
std::string candidates_text(const KernelChoice& choice);
std::string bytes_text(double bytes);
/// "3.2 %".
std::string percent_text(double share);
/// "1 copy", "3 copies".
std::string counted(std::size_t count, const char* one, const char* many);
/// "mean of 9 calls after a first" for 10 of them.
std::string mean_of(int calls);

}  // namespace tandem
