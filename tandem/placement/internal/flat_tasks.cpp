#include "tandem/placement/internal/flat_tasks.h"

#include <algorithm>

#include "tandem/core/error.h"

namespace tandem::placement {

FlatTasks FlatTasks::of(const TaskGraph& tasks) {
  FlatTasks flat;
  flat.lanes = tasks.lanes;
  flat.before = tasks.before;
  const std::size_t n = tasks.tasks.size();
  flat.lane.reserve(n);
  flat.seconds.reserve(n);
  flat.after_begin.reserve(n + 1);
  flat.after_begin.push_back(0);
  std::size_t edges = 0;
  for (const auto& list : tasks.after) edges += list.size();
  flat.after.reserve(edges);
  for (std::size_t t = 0; t < n; ++t) {
    const Task& task = tasks.tasks[t];
    if (task.lane < 0 || static_cast<std::size_t>(task.lane) >= flat.lanes.size()) {
      throw InvalidArgumentError(
          cat("task ", t, " is for lane ", task.lane, " of ", flat.lanes.size()));
    }
    flat.lane.push_back(task.lane);
    flat.seconds.push_back(task.seconds);
    flat.after.insert(flat.after.end(), tasks.after[t].begin(), tasks.after[t].end());
    flat.after_begin.push_back(static_cast<int>(flat.after.size()));
  }
  return flat;
}

void remaining_path_in_order(const FlatTasks& tasks, std::vector<double>& longest) {
  longest.resize(tasks.lane.size());
  for (int t = tasks.size() - 1; t >= 0; --t) {
    double most = 0;
    for (const int then : tasks.after_of(t)) {
      most = std::max(most, longest[static_cast<std::size_t>(then)]);
    }
    longest[static_cast<std::size_t>(t)] = most + tasks.seconds[static_cast<std::size_t>(t)];
  }
}

std::vector<double> remaining_path(const FlatTasks& tasks) {
  std::vector<int> waiting = tasks.before;
  std::vector<int> order;
  order.reserve(waiting.size());
  for (int t = 0; t < tasks.size(); ++t) {
    if (waiting[static_cast<std::size_t>(t)] == 0) order.push_back(t);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const int then : tasks.after_of(order[i])) {
      if (--waiting[static_cast<std::size_t>(then)] == 0) order.push_back(then);
    }
  }
  if (order.size() != waiting.size()) {
    throw InvalidArgumentError("tasks wait for each other in a circle");
  }
  std::vector<double> longest(waiting.size(), 0);
  for (auto t = order.rbegin(); t != order.rend(); ++t) {
    double most = 0;
    for (const int then : tasks.after_of(*t)) {
      most = std::max(most, longest[static_cast<std::size_t>(then)]);
    }
    longest[static_cast<std::size_t>(*t)] = most + tasks.seconds[static_cast<std::size_t>(*t)];
  }
  return longest;
}

}  // namespace tandem::placement
