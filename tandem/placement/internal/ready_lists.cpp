#include "tandem/placement/internal/ready_lists.h"

#include <algorithm>

namespace tandem::placement {

void ReadyLists::reset(const FlatTasks& tasks, const std::vector<double>& priority) {
  tasks_ = &tasks;
  priority_ = priority.data();
  left_ = tasks.size();
  waiting_ = tasks.before;
  ready_.resize(tasks.lane.size());
  lanes_.assign(tasks.lanes.size(), LaneState());
  for (const int lane : tasks.lane) ++lanes_[static_cast<std::size_t>(lane)].begin;
  int begin = 0;
  for (LaneState& lane : lanes_) {
    const int tasks_of_lane = lane.begin;
    lane.begin = begin;
    begin += tasks_of_lane;
  }
  for (int t = 0; t < tasks.size(); ++t) {
    if (waiting_[static_cast<std::size_t>(t)] == 0) make_ready(t);
  }
}

void ReadyLists::make_ready(int task) {
  const auto t = static_cast<std::size_t>(task);
  LaneState& lane = lanes_[static_cast<std::size_t>(tasks_->lane[t])];
  Ready* heap = ready_.data() + lane.begin;
  heap[lane.ready++] = {priority_[t], task};
  std::push_heap(heap, heap + lane.ready, later);
}

int ReadyLists::issue(int lane) {
  LaneState& state = lanes_[static_cast<std::size_t>(lane)];
  const Lane& kind = tasks_->lanes[static_cast<std::size_t>(lane)];
  if (state.ready == 0 || state.issued >= std::max(kind.depth, kind.width)) return -1;
  Ready* heap = ready_.data() + state.begin;
  std::pop_heap(heap, heap + state.ready, later);
  const int task = heap[--state.ready].task;
  ++state.issued;
  if (kind.width == 1) {
    for (const int then : tasks_->after_of(task)) {
      const auto next = static_cast<std::size_t>(then);
      if (tasks_->lane[next] == lane && --waiting_[next] == 0) make_ready(then);
    }
  }
  return task;
}

void ReadyLists::name(int lane, std::vector<int>& lanes) {
  LaneState& state = lanes_[static_cast<std::size_t>(lane)];
  if (state.named) return;
  state.named = true;
  lanes.push_back(lane);
}

void ReadyLists::finish(int task, std::vector<int>& lanes) {
  const std::size_t first = lanes.size();
  const int own = tasks_->lane[static_cast<std::size_t>(task)];
  --left_;
  --lanes_[static_cast<std::size_t>(own)].issued;
  name(own, lanes);
  const bool in_order = tasks_->lanes[static_cast<std::size_t>(own)].width == 1;
  for (const int then : tasks_->after_of(task)) {
    const auto next = static_cast<std::size_t>(then);
    const int lane = tasks_->lane[next];
    if (in_order && lane == own) continue;  // reported when the task was issued
    if (--waiting_[next] == 0) {
      make_ready(then);
      name(lane, lanes);
    }
  }
  for (std::size_t i = first; i < lanes.size(); ++i) {
    lanes_[static_cast<std::size_t>(lanes[i])].named = false;
  }
}

}  // namespace tandem::placement
