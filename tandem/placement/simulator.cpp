#include "tandem/placement/simulator.h"

#include <algorithm>

#include "tandem/placement/internal/memory_peak.h"
#include "tandem/placement/internal/virtual_run.h"

namespace tandem {
namespace {

std::vector<double> peaks(const TaskGraph& tasks, const placement::VirtualRun& run) {
  std::size_t spaces = 1;
  for (const Lane& lane : tasks.lanes) {
    spaces = std::max(spaces, static_cast<std::size_t>(lane.device) + 1);
  }
  for (const Allocation& held : tasks.allocations) {
    spaces = std::max(spaces, static_cast<std::size_t>(held.memory) + 1);
  }
  std::vector<std::vector<placement::MemoryChange>> changes(spaces);
  for (const Allocation& held : tasks.allocations) {
    if (held.bytes <= 0) continue;
    auto& list = changes[static_cast<std::size_t>(held.memory)];
    const double from = held.from < 0 ? -1.0 : run.begin()[static_cast<std::size_t>(held.from)];
    list.push_back({from, held.bytes});
    if (held.permanent) continue;
    double until = held.from < 0 ? -1.0 : run.end()[static_cast<std::size_t>(held.from)];
    for (const int task : held.until) {
      until = std::max(until, run.end()[static_cast<std::size_t>(task)]);
    }
    // Something that takes no time holds its memory for a moment all the same.
    if (until > from) list.push_back({until, -held.bytes});
  }
  std::vector<double> result;
  for (auto& list : changes) result.push_back(placement::peak_of(list));
  return result;
}

}  // namespace

Simulation simulate(const TaskGraph& tasks) {
  const placement::FlatTasks flat = placement::FlatTasks::of(tasks);
  placement::VirtualRun run;
  Simulation result;
  result.makespan = run.run(flat, placement::remaining_path(flat));
  std::vector<double> worked(tasks.lanes.size(), 0.0);
  result.spans.reserve(tasks.tasks.size());
  for (const int task : run.order()) {
    const auto t = static_cast<std::size_t>(task);
    result.spans.push_back({task, run.begin()[t], run.end()[t]});
    worked[static_cast<std::size_t>(flat.lane[t])] += flat.seconds[t];
  }
  for (std::size_t lane = 0; lane < worked.size(); ++lane) {
    const double room = result.makespan * tasks.lanes[lane].width;
    result.busy.push_back(room > 0 ? worked[lane] / room : 0);
  }
  result.peak_memory = peaks(tasks, run);
  return result;
}

}  // namespace tandem
