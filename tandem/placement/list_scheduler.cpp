#include "tandem/placement/list_scheduler.h"

#include "tandem/placement/internal/ready_lists.h"

namespace tandem {

struct ListScheduler::State {
  placement::FlatTasks tasks;
  std::vector<double> priority;
  placement::ReadyLists lists;
};

ListScheduler::ListScheduler(const TaskGraph& tasks, const std::vector<double>& priority)
    : state_(std::make_unique<State>()) {
  state_->tasks = placement::FlatTasks::of(tasks);
  state_->priority = priority;
  state_->priority.resize(tasks.tasks.size(), 0.0);
  reset();
}
ListScheduler::~ListScheduler() = default;
ListScheduler::ListScheduler(ListScheduler&&) noexcept = default;
ListScheduler& ListScheduler::operator=(ListScheduler&&) noexcept = default;

void ListScheduler::reset() { state_->lists.reset(state_->tasks, state_->priority); }
int ListScheduler::issue(int lane) { return state_->lists.issue(lane); }
void ListScheduler::finish(int task, std::vector<int>& lanes) { state_->lists.finish(task, lanes); }
bool ListScheduler::done() const { return state_->lists.done(); }

}  // namespace tandem
