#include <algorithm>
#include <map>

#include "tandem/runtime/explain/explainer.h"

namespace tandem {

void explain_memory(const ExplainedGraph& g, const TaskGraph& tasks, const Simulation& simulation,
                    Explanation& out) {
  std::vector<double> begin(tasks.tasks.size(), 0), end(tasks.tasks.size(), 0);
  for (const Simulation::Span& span : simulation.spans) {
    begin[static_cast<std::size_t>(span.task)] = span.begin;
    end[static_cast<std::size_t>(span.task)] = span.end;
  }
  std::vector<std::map<double, double>> changes(out.devices.size());
  for (const Allocation& held : tasks.allocations) {
    const auto from = static_cast<std::size_t>(held.from);
    std::map<double, double>& there = changes[static_cast<std::size_t>(held.memory)];
    there[held.from < 0 ? 0 : begin[from]] += held.bytes;
    if (held.permanent) continue;
    double last = held.from < 0 ? 0 : end[from];
    for (const int user : held.until) last = std::max(last, end[static_cast<std::size_t>(user)]);
    there[last] -= held.bytes;
  }
  for (std::size_t d = 0; d < out.devices.size(); ++d) {
    double now = 0;
    for (const auto& [time, change] : changes[d]) {
      now += change;
      out.devices[d].memory.emplace_back(time, std::max(now, 0.0));
    }
    // The simulation counts what is taken and released at one moment in its order.
    const int space = g.placement.devices.memory_of(static_cast<int>(d));
    if (space == static_cast<int>(d) && d < simulation.peak_memory.size())
      out.devices[d].memory_peak = simulation.peak_memory[d];
  }
}

}  // namespace tandem
