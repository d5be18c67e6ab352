#include "tandem/placement/list_scheduler.h"

#include <utility>

#include "tandem/placement/internal/ready_lists.h"

namespace tandem {

struct ListScheduler::State {
  struct Fixed {
    placement::FlatTasks tasks;
    std::vector<double> priority;
  };
  std::shared_ptr<const Fixed> fixed;
  placement::ReadyLists lists;  // refers to `fixed`
};

ListScheduler::ListScheduler(const TaskGraph& tasks, const std::vector<double>& priority)
    : state_(std::make_unique<State>()) {
  auto fixed = std::make_shared<State::Fixed>();
  fixed->tasks = placement::FlatTasks::of(tasks);
  fixed->priority = priority;
  fixed->priority.resize(tasks.tasks.size(), 0.0);
  state_->fixed = std::move(fixed);
  reset();
}
ListScheduler::ListScheduler(const ListScheduler& other)
    : state_(std::make_unique<State>(*other.state_)) {}
ListScheduler::~ListScheduler() = default;
ListScheduler::ListScheduler(ListScheduler&&) noexcept = default;
ListScheduler& ListScheduler::operator=(ListScheduler&&) noexcept = default;

void ListScheduler::reset() { state_->lists.reset(state_->fixed->tasks, state_->fixed->priority); }
int ListScheduler::issue(int lane) { return state_->lists.issue(lane); }
void ListScheduler::finish(int task, std::vector<int>& lanes) { state_->lists.finish(task, lanes); }
bool ListScheduler::done() const { return state_->lists.done(); }

}  // namespace tandem
