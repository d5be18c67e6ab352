#pragma once

#include <vector>

#include "tandem/core/export.h"
#include "tandem/placement/task_graph.h"

namespace tandem {

/// What a run of a TaskGraph would be like, on a virtual clock.
struct Simulation {
  struct Span {
    int task = 0;
    double begin = 0;  ///< seconds
    double end = 0;
  };
  double makespan = 0;
  std::vector<Span> spans;          ///< in order of their beginning
  std::vector<double> busy;         ///< by lane: share of the makespan, 0 to 1
  std::vector<double> peak_memory;  ///< by memory space, bytes: values alive at a time
};

/// Runs the tasks as a ListScheduler would, each taking its expected seconds. Deterministic.
TANDEM_EXPORT Simulation simulate(const TaskGraph& tasks);

}  // namespace tandem
