#include "tandem/placement/internal/evaluator.h"

#include <algorithm>

namespace tandem::placement {

Evaluator::Evaluator(const Problem& problem) : problem_(problem) {
  tasks_.lanes = TaskGraph::lanes_of(problem.costs.devices());
  task_of_.resize(problem.nodes.size());
  copies_of_value_.resize(problem.value_node.size());
}

void Evaluator::add_task(int lane, double seconds, int what) {
  tasks_.lane.push_back(lane);
  tasks_.seconds.push_back(seconds);
  what_.push_back(what);
}

// The task after which a value is in a memory; -1 if it is there from the beginning.
int Evaluator::arrival(int value, int to, const Assignment& assignment) {
  const auto v = static_cast<std::size_t>(value);
  const int made_by = task_of_[static_cast<std::size_t>(problem_.value_node[v])];
  const int from = problem_.memory_of_value(value, assignment);
  if (from == to) return made_by;
  for (int i = copies_of_value_[v]; i >= 0; i = arrived_[static_cast<std::size_t>(i)].next) {
    const Arrived& a = arrived_[static_cast<std::size_t>(i)];
    if (a.memory == to) return a.task;
  }
  int task = made_by;
  if (!problem_.value_everywhere[v]) {
    const DeviceSet& devices = problem_.costs.devices();
    const int before = devices.hop_before(to, from);
    const int after = arrival(value, before, assignment);
    task = tasks_.size();
    add_task(TaskGraph::copy_lane(devices, before, to),
             devices.copy_seconds(before, to, problem_.value_bytes[v]), -1 - value);
    if (after >= 0) edges_.emplace_back(after, task);
  }
  arrived_.push_back({to, task, copies_of_value_[v], -1});
  copies_of_value_[v] = static_cast<int>(arrived_.size()) - 1;
  return task;
}

void Evaluator::build(const Assignment& assignment) {
  tasks_.lane.clear();
  tasks_.seconds.clear();
  what_.clear();
  edges_.clear();
  arrived_.clear();
  std::fill(copies_of_value_.begin(), copies_of_value_.end(), -1);
  const auto copy_results = [&](int node) {
    const int device =
        assignment[static_cast<std::size_t>(problem_.group[static_cast<std::size_t>(node)])];
    for (const Problem::Use& use : problem_.uses(node)) {
      arrival(use.value, problem_.memory_of_use(use, device), assignment);
    }
  };
  for (int node = 0; node < problem_.size(); ++node) {
    const auto n = static_cast<std::size_t>(node);
    const int device = assignment[static_cast<std::size_t>(problem_.group[n])];
    if (!problem_.is_task[n]) {
      task_of_[n] = -1;
      copy_results(node);
      continue;
    }
    const std::size_t first_edge = edges_.size();
    for (const Problem::Use& use : problem_.uses(node)) {
      const int after = arrival(use.value, problem_.memory_of_use(use, device), assignment);
      if (after >= 0) edges_.emplace_back(after, -1);
    }
    for (const int before : problem_.controls(node)) {
      const int after = task_of_[static_cast<std::size_t>(before)];
      if (after >= 0) edges_.emplace_back(after, -1);
    }
    // The copies' own edges are complete; ours wait for our number.
    task_of_[n] = tasks_.size();
    for (std::size_t e = first_edge; e < edges_.size(); ++e) {
      if (edges_[e].second < 0) edges_[e].second = tasks_.size();
    }
    add_task(3 * device, problem_.seconds(node, device), node);
  }

  const std::size_t n = tasks_.lane.size();
  tasks_.before.assign(n, 0);
  tasks_.after_begin.assign(n + 1, 0);
  for (const auto& [first, then] : edges_)
    ++tasks_.after_begin[static_cast<std::size_t>(first) + 1];
  for (std::size_t t = 0; t < n; ++t) tasks_.after_begin[t + 1] += tasks_.after_begin[t];
  next_.assign(tasks_.after_begin.begin(), tasks_.after_begin.end() - 1);
  tasks_.after.resize(edges_.size());
  for (const auto& [first, then] : edges_) {
    ++tasks_.before[static_cast<std::size_t>(then)];
    tasks_.after[static_cast<std::size_t>(next_[static_cast<std::size_t>(first)]++)] = then;
  }
}

Score Evaluator::score(const Assignment& assignment, const Score& limit) {
  build(assignment);
  remaining_path_in_order(tasks_, remaining_);
  const double stop = problem_.limited && limit.excess > 0 ? std::numeric_limits<double>::infinity()
                                                           : limit.makespan;
  Score score;
  score.makespan = run_.run(tasks_, remaining_, stop);
  spent_ += static_cast<double>(run_.order().size()) + 0.3 * tasks_.size() +
            0.2 * static_cast<double>(tasks_.lanes.size());
  if (problem_.limited && score.makespan < std::numeric_limits<double>::infinity()) {
    score.excess = excess(assignment);
  }
  return score;
}

int Evaluator::last_input(int task, const Assignment& assignment) const {
  const int what = what_[static_cast<std::size_t>(task)];
  if (what < 0)
    return task_of_[static_cast<std::size_t>(
        problem_.value_node[static_cast<std::size_t>(-1 - what)])];
  int last = -1;
  const auto take = [&](int t) {
    if (t < 0) return;
    const double end = run_.end()[static_cast<std::size_t>(t)];
    if (last < 0 || end > run_.end()[static_cast<std::size_t>(last)]) last = t;
  };
  const int device =
      assignment[static_cast<std::size_t>(problem_.group[static_cast<std::size_t>(what)])];
  for (const Problem::Use& use : problem_.uses(what)) {
    const int to = problem_.memory_of_use(use, device);
    const auto v = static_cast<std::size_t>(use.value);
    if (problem_.memory_of_value(use.value, assignment) == to) {
      take(task_of_[static_cast<std::size_t>(problem_.value_node[v])]);
      continue;
    }
    for (int i = copies_of_value_[v]; i >= 0; i = arrived_[static_cast<std::size_t>(i)].next) {
      if (arrived_[static_cast<std::size_t>(i)].memory == to) {
        take(arrived_[static_cast<std::size_t>(i)].task);
      }
    }
  }
  for (const int before : problem_.controls(what)) take(task_of_[static_cast<std::size_t>(before)]);
  return last;
}

// Finds the peaks of memory like TaskGraph::of and the simulator.
double Evaluator::excess(const Assignment& assignment) {
  constexpr double kForever = std::numeric_limits<double>::infinity();
  const auto& begin = run_.begin();
  const auto& end = run_.end();
  held_.clear();
  held_of_value_.assign(problem_.value_node.size(), -1);
  const auto device_of = [&](int node) {
    return assignment[static_cast<std::size_t>(problem_.group[static_cast<std::size_t>(node)])];
  };
  const auto hold = [&](int memory, double bytes, int task) {
    const auto t = static_cast<std::size_t>(task);
    held_.push_back({memory, bytes, task < 0 ? -1.0 : begin[t], task < 0 ? kForever : end[t]});
    return static_cast<int>(held_.size()) - 1;
  };
  const auto keep = [&](int held, double until) {
    double& now = held_[static_cast<std::size_t>(held)].until;
    now = std::max(now, until);
  };
  for (int node = 0; node < problem_.size(); ++node) {
    const auto n = static_cast<std::size_t>(node);
    const int task = task_of_[n];
    for (int v = problem_.first_value(node); v < problem_.end_value(node); ++v) {
      const auto value = static_cast<std::size_t>(v);
      const int memory = problem_.memory_of_value(v, assignment);
      int held = -1;
      if (problem_.variable_bytes[n] > 0) {
        held = hold(problem_.memory(device_of(node)), problem_.variable_bytes[n], -1);
      } else if (problem_.shares[value] >= 0) {
        held = held_in(problem_.shares[value], memory, assignment);
        const bool stays = held >= 0 && held_[static_cast<std::size_t>(held)].from < 0;
        if (problem_.only_reuses[value] && stays) held = -1;
      }
      if (held < 0) held = hold(memory, problem_.value_bytes[value], task);
      held_of_value_[value] = held;
      for (int i = copies_of_value_[value]; i >= 0;) {
        Arrived& copy = arrived_[static_cast<std::size_t>(i)];
        if (copy.task >= 0) keep(held, end[static_cast<std::size_t>(copy.task)]);
        copy.held = hold(copy.memory, problem_.value_bytes[value], copy.task);
        i = copy.next;
      }
    }
    for (const Problem::Use& use : problem_.uses(node)) {
      const int held = held_in(use.value, problem_.memory_of_use(use, device_of(node)), assignment);
      if (problem_.is_result[n]) {
        keep(held, kForever);
      } else if (task >= 0) {
        keep(held, end[static_cast<std::size_t>(task)]);
      }
    }
  }
  changes_.resize(static_cast<std::size_t>(problem_.costs.devices().size()));
  for (auto& list : changes_) list.clear();
  for (const HeldBytes& held : held_) {
    if (held.bytes <= 0) continue;
    auto& list = changes_[static_cast<std::size_t>(held.memory)];
    list.push_back({held.from, held.bytes});
    if (held.until > held.from) list.push_back({held.until, -held.bytes});
  }
  double sum = 0;
  for (std::size_t d = 0; d < changes_.size(); ++d) {
    const auto room = static_cast<double>(problem_.costs.devices().devices[d].memory_bytes);
    if (room > 0) sum += std::max(0.0, peak_of(changes_[d]) - room);
  }
  return sum;
}

// What holds a value, or the copy of it, in a memory.
int Evaluator::held_in(int value, int memory, const Assignment& assignment) const {
  const auto v = static_cast<std::size_t>(value);
  if (problem_.memory_of_value(value, assignment) == memory) return held_of_value_[v];
  for (int i = copies_of_value_[v]; i >= 0; i = arrived_[static_cast<std::size_t>(i)].next) {
    const Arrived& copy = arrived_[static_cast<std::size_t>(i)];
    if (copy.memory == memory) return copy.held;
  }
  return -1;
}

}  // namespace tandem::placement
