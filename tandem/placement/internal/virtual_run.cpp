#include "tandem/placement/internal/virtual_run.h"

#include <algorithm>

namespace tandem::placement {

void VirtualRun::begin_task(int task, double now, const FlatTasks& tasks) {
  const auto t = static_cast<std::size_t>(task);
  LaneRun& lane = lanes_[static_cast<std::size_t>(tasks.lane[t])];
  ++lane.running;
  begin_[t] = now;
  end_[t] = now + tasks.seconds[t];
  // A task that began in the very moment in which another of its lane ended may have waited for it.
  const bool waited = lane.last >= 0 && end_[static_cast<std::size_t>(lane.last)] == now;
  behind_[t] = waited ? lane.last : -1;
  order_.push_back(task);
  over_.push_back({end_[t], task});
  std::push_heap(over_.begin(), over_.end(), [](const Over& a, const Over& b) {
    return a.time != b.time ? a.time > b.time : a.task > b.task;
  });
}

void VirtualRun::advance(int lane, double now, const FlatTasks& tasks) {
  LaneRun& state = lanes_[static_cast<std::size_t>(lane)];
  for (;;) {
    while (state.head < state.issued.size() &&
           state.running < tasks.lanes[static_cast<std::size_t>(lane)].width) {
      begin_task(state.issued[state.head++], now, tasks);
    }
    if (state.head == state.issued.size()) {
      state.issued.clear();
      state.head = 0;
    }
    const int task = lists_.issue(lane);
    if (task < 0) return;
    state.issued.push_back(task);
  }
}

double VirtualRun::run(const FlatTasks& tasks, const std::vector<double>& priority, double limit) {
  const std::size_t n = tasks.lane.size();
  lists_.reset(tasks, priority);
  begin_.assign(n, 0.0);
  end_.assign(n, 0.0);
  behind_.assign(n, -1);
  order_.clear();
  order_.reserve(n);
  over_.clear();
  lanes_.resize(tasks.lanes.size());
  for (LaneRun& lane : lanes_) {
    lane.issued.clear();
    lane.head = 0;
    lane.running = 0;
    lane.last = -1;
    lane.asked = false;
  }
  double now = 0;
  for (int lane = 0; lane < static_cast<int>(lanes_.size()); ++lane) advance(lane, now, tasks);
  // What began at a time ends no sooner than its remaining path is long.
  std::size_t checked = 0;
  const auto too_late = [&] {
    for (; checked < order_.size(); ++checked) {
      const auto t = static_cast<std::size_t>(order_[checked]);
      if (begin_[t] + priority[t] >= limit) return true;
    }
    return false;
  };
  while (!over_.empty()) {
    if (limit < std::numeric_limits<double>::infinity() && too_late()) {
      return std::numeric_limits<double>::infinity();
    }
    // All that ends in one moment ends before anything is issued.
    now = over_.front().time;
    active_.clear();
    while (!over_.empty() && over_.front().time == now) {
      const int task = over_.front().task;
      std::pop_heap(over_.begin(), over_.end(), [](const Over& a, const Over& b) {
        return a.time != b.time ? a.time > b.time : a.task > b.task;
      });
      over_.pop_back();
      LaneRun& lane = lanes_[static_cast<std::size_t>(tasks.lane[static_cast<std::size_t>(task)])];
      --lane.running;
      lane.last = task;
      lists_.finish(task, active_);
    }
    for (const int lane : active_) {
      LaneRun& state = lanes_[static_cast<std::size_t>(lane)];
      if (state.asked) continue;
      state.asked = true;
      advance(lane, now, tasks);
    }
    for (const int lane : active_) lanes_[static_cast<std::size_t>(lane)].asked = false;
  }
  return now;
}

}  // namespace tandem::placement
