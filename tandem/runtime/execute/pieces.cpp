#include "tandem/runtime/execute/pieces.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <utility>

namespace tandem {
namespace {

auto& at(auto& v, int i) { return v[static_cast<std::size_t>(i)]; }

// How many tasks the longest way from each one to the end has.
std::vector<int> heights(const TaskGraph& tasks) {
  std::vector<int> waits = tasks.before, order, height(waits.size(), 1);
  for (int t = 0; t < static_cast<int>(waits.size()); ++t) {
    if (at(waits, t) == 0) order.push_back(t);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const int next : at(tasks.after, order[i])) {
      if (--at(waits, next) == 0) order.push_back(next);
    }
  }
  for (auto t = order.rbegin(); t != order.rend(); ++t) {
    for (const int next : at(tasks.after, *t))
      at(height, *t) = std::max(at(height, *t), at(height, next) + 1);
  }
  return height;
}

bool writes_variables(const Task& task) {
  return task.node && task.node->op().traits.stateful && !task.node->op().traits.reads_only;
}

// Tasks that may come next. Of those that are of no kind the one added first; when there are none,
// one of the kind of the task before. What writes to variables is a kind, too, where it is of no
// other: a value that is still to be read would be copied first.
class Ready {
 public:
  Ready(const TaskGraph& tasks, std::span<const int> alike)
      : tasks_(tasks), alike_(alike), height_(heights(tasks)) {}
  bool empty() const { return others_.empty() && kinds_.empty(); }
  void add(int t) {
    int kind = alike_.empty() ? -1 : at(alike_, t);
    if (kind < 0 && writes_variables(at(tasks_.tasks, t))) kind = kWrites;
    if (kind < 0) return others_.push(t);
    kinds_[kind].push(t);
  }
  int take() {
    auto kind = kinds_.find(kind_);
    if (kind == kinds_.end()) {
      kind_ = -1;
      if (!others_.empty()) return pop(others_);
      kind = farthest();
      kind_ = kind->first;
    }
    const int t = pop(kind->second);
    if (kind->second.empty()) kinds_.erase(kind);
    return t;
  }

 private:
  using Queue = std::priority_queue<int, std::vector<int>, std::greater<>>;
  static constexpr int kWrites =
      std::numeric_limits<int>::max();  // after kinds as far from the end

  static int pop(Queue& queue) {
    const int t = queue.top();
    queue.pop();
    return t;
  }
  std::map<int, Queue>::iterator farthest() {
    return std::max_element(kinds_.begin(), kinds_.end(), [&](const auto& a, const auto& b) {
      return at(height_, a.second.top()) < at(height_, b.second.top());
    });
  }

  const TaskGraph& tasks_;
  const std::span<const int> alike_;
  const std::vector<int> height_;
  Queue others_;
  std::map<int, Queue> kinds_;
  int kind_ = -1;
};

// Each after those that it waits for.
std::vector<int> in_order(const TaskGraph& tasks, std::span<const int> alike) {
  std::vector<int> before = tasks.before;
  Ready ready(tasks, alike);
  for (int t = 0; t < static_cast<int>(before.size()); ++t) {
    if (at(before, t) == 0) ready.add(t);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int t = ready.take();
    order.push_back(t);
    for (const int next : at(tasks.after, t)) {
      if (--at(before, next) == 0) ready.add(next);
    }
  }
  return order;
}

// A segment waits for so much work of the host, and begins as one; where there is more, what can
// run meanwhile is a segment of its own.
constexpr double kMaxWaitSeconds = 20e-6;

// How many times a lane that has segments was left before each task, or what is quick to compute
// elsewhere, was waited for.
std::vector<int> levels(const TaskGraph& tasks, const std::vector<int>& order,
                        std::span<const int> joins) {
  std::vector<int> level(tasks.tasks.size(), 0);
  std::vector<double> elsewhere(tasks.tasks.size(), 0);  // seconds on the way, since the lane
  for (const int t : order) {
    const bool in_lane = at(joins, t) >= 0;
    if (!in_lane) at(elsewhere, t) += at(tasks.tasks, t).seconds;
    for (const int next : at(tasks.after, t)) {
      const bool crosses = at(joins, t) != at(joins, next);
      const bool counts = crosses && (in_lane || at(elsewhere, t) > kMaxWaitSeconds);
      const int before = at(level, t) + (counts ? 1 : 0);
      if (before > at(level, next)) at(elsewhere, next) = 0;
      at(level, next) = std::max(at(level, next), before);
      if (!in_lane && !crosses && before == at(level, next))
        at(elsewhere, next) = std::max(at(elsewhere, next), at(elsewhere, t));
    }
  }
  return level;
}

Pieces of_groups(const TaskGraph& tasks, std::vector<std::vector<int>> members,
                 std::vector<std::uint8_t> segment, const std::vector<int>& lanes) {
  TaskGraph pieces;
  pieces.lanes = tasks.lanes;
  std::vector<int> of(tasks.tasks.size(), 0);
  for (std::size_t p = 0; p < members.size(); ++p) {
    Task piece = at(tasks.tasks, members[p].front());
    piece.lane = lanes[p];
    piece.seconds = 0;
    for (const int t : members[p]) {
      piece.seconds += at(tasks.tasks, t).seconds;
      at(of, t) = static_cast<int>(p);
    }
    pieces.add(piece);
  }
  for (int t = 0; t < static_cast<int>(of.size()); ++t) {
    for (const int next : at(tasks.after, t)) {
      if (at(of, t) != at(of, next)) pieces.add_edge(at(of, t), at(of, next));
    }
  }
  ListScheduler scheduler(pieces, pieces.remaining_path());
  return {std::move(members), std::move(of), std::move(segment), std::move(scheduler)};
}

}  // namespace

Pieces Pieces::single(const TaskGraph& tasks) {
  Pieces pieces{{},
                {},
                std::vector<std::uint8_t>(tasks.tasks.size(), 0),
                ListScheduler(tasks, tasks.remaining_path())};
  for (int t = 0; t < static_cast<int>(tasks.tasks.size()); ++t) {
    pieces.members.push_back({t});
    pieces.of.push_back(t);
  }
  return pieces;
}

Pieces Pieces::joined(const TaskGraph& tasks, std::span<const int> joins,
                      std::span<const int> alike) {
  const std::vector<int> order = in_order(tasks, alike);
  const std::vector<int> level = levels(tasks, order, joins);
  std::vector<std::vector<int>> members;
  std::vector<std::uint8_t> segment;
  std::vector<int> lanes;
  std::map<std::pair<int, int>, std::size_t> segments;  // by lane and level
  const auto add = [&](int task, bool is_segment) {
    members.push_back({task});
    segment.push_back(is_segment ? 1 : 0);
    lanes.push_back(is_segment ? at(joins, task) : at(tasks.tasks, task).lane);
  };
  for (const int t : order) {
    if (at(joins, t) < 0) {
      add(t, false);
      continue;
    }
    const auto [known, fresh] =
        segments.emplace(std::pair(at(joins, t), at(level, t)), members.size());
    if (fresh) {
      add(t, true);
    } else {
      members[known->second].push_back(t);
    }
  }
  Pieces pieces = of_groups(tasks, std::move(members), std::move(segment), lanes);
  pieces.alike.assign(alike.begin(), alike.end());
  return pieces;
}

}  // namespace tandem
