#include "tandem/distribute/internal/eager/eager_context.h"

#include <exception>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/eager/task_function.h"

namespace tandem::distribute {
namespace {

std::string session_name(std::uint64_t id) { return cat("eager_context_", id); }

}  // namespace

EagerContext::EagerContext(Worker& worker, Options options)
    : worker_(worker),
      options_(std::move(options)),
      session_(worker.create_session(session_name(options_.id), true)),
      step_(worker.steps().find_or_create(static_cast<std::int64_t>(options_.id))),
      functions_(worker.runtime().ops()),
      programs_(session_->runtime(), functions_),
      task_functions_(std::make_unique<TaskFunctions>()),
      view_(options_.view),
      peers_(options_.peers),
      devices_(options_.devices) {
  step_->outlives_failures = true;
  if (options_.peers) step_->rendezvous->add_peers(options_.peers);
}

EagerContext::~EagerContext() { close(); }

void EagerContext::update(std::uint64_t view, std::shared_ptr<const Peers> peers,
                          std::vector<proto::DeviceAttributes> devices) {
  if (peers) {
    step_->rendezvous->add_peers(peers);
    task_functions_->clear();
  }
  const MutexLock lock(mutex_);
  view_ = view;
  if (!peers) return;
  peers_ = std::move(peers);
  devices_ = std::move(devices);
}

std::uint64_t EagerContext::view() const {
  const MutexLock lock(mutex_);
  return view_;
}
std::shared_ptr<const Peers> EagerContext::peers() const {
  const MutexLock lock(mutex_);
  return peers_;
}
std::vector<proto::DeviceAttributes> EagerContext::devices() const {
  const MutexLock lock(mutex_);
  return devices_;
}

void EagerContext::put(std::int64_t operation, int output, Array value) {
  const MutexLock lock(mutex_);
  if (!closed_) values_[{operation, output}] = std::move(value);
}

Array EagerContext::get(std::int64_t operation, int output) const {
  const MutexLock lock(mutex_);
  if (const auto found = values_.find({operation, output}); found != values_.end())
    return found->second;
  throw InvalidArgumentError(
      cat("Unable to find the relevant tensor remote_handle: Op ID: ", operation,
          ", Output num: ", output,
          ". One possible cause is that the tensor was accessed after deletion in a distributed "
          "environment."));
}

bool EagerContext::has(std::int64_t operation, int output) const {
  const MutexLock lock(mutex_);
  return values_.contains({operation, output});
}

void EagerContext::remove(std::int64_t operation, int output) {
  Array removed;  // without the lock
  const MutexLock lock(mutex_);
  const auto found = values_.find({operation, output});
  if (found == values_.end()) return;
  removed = std::move(found->second);
  values_.erase(found);
}

std::shared_ptr<WorkerStep> EagerContext::function_step(std::int64_t id) const {
  std::shared_ptr<WorkerStep> step = worker_.steps().find_or_create(id);
  if (std::shared_ptr<const Peers> known = peers()) step->rendezvous->add_peers(std::move(known));
  return step;
}

void EagerContext::begin_call() {
  const MutexLock lock(mutex_);
  ++calls_;
}

void EagerContext::end_call() {
  std::vector<std::function<void()>> idle;
  {
    const MutexLock lock(mutex_);
    last_call_ = Clock::now();
    if (--calls_ == 0) idle.swap(awaiting_idle_);
  }
  for (const auto& callback : idle) callback();
}

void EagerContext::when_idle(std::function<void()> callback) {
  {
    const MutexLock lock(mutex_);
    last_call_ = Clock::now();
    if (calls_ > 0) {
      awaiting_idle_.push_back(std::move(callback));
      return;
    }
  }
  callback();
}

std::chrono::nanoseconds EagerContext::idle_time() const {
  const MutexLock lock(mutex_);
  return calls_ > 0 ? std::chrono::nanoseconds(0) : Clock::now() - last_call_;
}

void EagerContext::close() {
  decltype(values_) values;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(closed_, true)) return;
    values.swap(values_);
  }
  worker_.steps().clean_up(
      step_->id, std::make_exception_ptr(CancelledError("The eager context was closed.")));
  step_->cancellation->cancel();
  values.clear();  // while the session has its resources
  worker_.delete_session(session_->handle());
}

}  // namespace tandem::distribute
