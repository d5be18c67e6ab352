#include "tandem/train/coordinator.h"

#include <condition_variable>
#include <mutex>

#include "tandem/core/error.h"

namespace tandem::train {

struct Coordinator::State {
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  bool stop = false;
  bool joined = false;
  std::exception_ptr error;
};

Coordinator::Coordinator() : state_(std::make_unique<State>()) {}
Coordinator::~Coordinator() = default;

void Coordinator::request_stop(std::exception_ptr error) {
  std::lock_guard lock(state_->mutex);
  if (error && code_of(error) == Code::kOutOfRange) error = nullptr;
  if (!state_->stop) state_->error = std::move(error);
  state_->stop = true;
  state_->changed.notify_all();
}

bool Coordinator::should_stop() const {
  std::lock_guard lock(state_->mutex);
  return state_->stop;
}

void Coordinator::clear_stop() {
  std::lock_guard lock(state_->mutex);
  state_->stop = false;
  state_->joined = false;
  state_->error = nullptr;
}

bool Coordinator::wait_for_stop(std::chrono::nanoseconds timeout) const {
  std::unique_lock lock(state_->mutex);
  const auto stopped = [&] { return state_->stop; };
  // Longer waits would overflow the clock.
  if (timeout > std::chrono::hours(24 * 365)) {
    state_->changed.wait(lock, stopped);
    return true;
  }
  return state_->changed.wait_for(lock, timeout, stopped);
}

void Coordinator::stop_on_exception(const std::function<void()>& body) {
  try {
    body();
  } catch (...) {
    request_stop(std::current_exception());
  }
}

void Coordinator::join(std::vector<std::thread>& threads) {
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
  {
    std::lock_guard lock(state_->mutex);
    state_->joined = true;
  }
  raise_requested_exception();
}

bool Coordinator::joined() const {
  std::lock_guard lock(state_->mutex);
  return state_->joined;
}

void Coordinator::raise_requested_exception() const {
  std::exception_ptr error;
  {
    std::lock_guard lock(state_->mutex);
    error = state_->error;
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace tandem::train
