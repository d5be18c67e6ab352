#include "tandem/distribute/internal/worker/step_table.h"

#include <utility>

#include "tandem/core/error.h"

namespace tandem::distribute {

void FailureReplies::begin_call() {
  const MutexLock lock(mutex_);
  ++calls_;
}

void FailureReplies::end_call() {
  std::vector<std::function<void()>> ready;
  {
    const MutexLock lock(mutex_);
    if (--calls_ == 0) ready = std::move(kept_);
  }
  for (const auto& reply : ready) reply();
}

void FailureReplies::send(std::function<void()> reply) {
  {
    const MutexLock lock(mutex_);
    if (calls_ > 0) return kept_.push_back(std::move(reply));
  }
  reply();
}

StepTable::Entry& StepTable::entry(std::int64_t id) {
  Entry& entry = steps_[id];
  if (!entry.step) entry.step = std::make_shared<WorkerStep>(id, task_, peers_);
  return entry;
}

std::shared_ptr<WorkerStep> StepTable::find_or_create(std::int64_t id) {
  const MutexLock lock(mutex_);
  Entry& found = entry(id);
  found.runs = true;
  return found.step;
}

std::shared_ptr<WorkerStep> StepTable::of_receive(std::int64_t id) {
  const MutexLock lock(mutex_);
  Entry& found = entry(id);
  ++found.receives;
  return found.step;
}

void StepTable::end_receive(std::int64_t id) {
  std::shared_ptr<WorkerStep> ended;  // without the lock
  const MutexLock lock(mutex_);
  const auto found = steps_.find(id);
  if (found == steps_.end() || found->second.receives == 0) return;
  if (--found->second.receives > 0 || found->second.runs) return;
  ended = std::move(found->second.step);
  steps_.erase(found);
}

void StepTable::clean_up(std::int64_t id, std::exception_ptr error) {
  std::shared_ptr<WorkerStep> ended;
  {
    const MutexLock lock(mutex_);
    const auto found = steps_.find(id);
    if (found == steps_.end()) return;
    ended = std::move(found->second.step);
    steps_.erase(found);
  }
  if (!error) error = std::make_exception_ptr(CancelledError(cat("Step ", id, " has ended.")));
  ended->rendezvous->start_abort(std::move(error));
}

void StepTable::clean_up_all(const std::exception_ptr& error) {
  for (const std::int64_t id : ids()) clean_up(id, error);
}

std::vector<std::int64_t> StepTable::ids() const {
  const MutexLock lock(mutex_);
  std::vector<std::int64_t> ids;
  for (const auto& [id, entry] : steps_) ids.push_back(id);
  return ids;
}

}  // namespace tandem::distribute
