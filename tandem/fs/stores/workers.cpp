#include "tandem/fs/stores/internal/workers.h"

#include <utility>

namespace tandem::fs {

Workers::~Workers() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(state_->mutex);
    state_->ending = true;
    state_->tasks.clear();
    threads.swap(state_->started);
    state_->changed.notify_all();
  }
  for (std::thread& thread : threads) {
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

void Workers::submit(std::function<void()> task) {
  const MutexLock lock(state_->mutex);
  state_->tasks.push_back(std::move(task));
  if (state_->idle < state_->tasks.size() && state_->started.size() < threads_) {
    state_->started.emplace_back([state = state_] { run(*state); });
  }
  state_->changed.notify_one();
}

void Workers::run(State& state) {
  MutexLock lock(state.mutex);
  for (;;) {
    ++state.idle;
    while (state.tasks.empty() && !state.ending) lock.wait(state.changed);
    --state.idle;
    if (state.ending) return;
    std::function<void()> task = std::move(state.tasks.front());
    state.tasks.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it holds is released before the next is awaited
    lock.lock();
  }
}

bool MemoryBudget::try_take(std::size_t bytes) {
  const MutexLock lock(mutex_);
  if (left_ < static_cast<std::ptrdiff_t>(bytes)) return false;
  left_ -= static_cast<std::ptrdiff_t>(bytes);
  return true;
}

void MemoryBudget::take(std::size_t bytes) {
  const MutexLock lock(mutex_);
  left_ -= static_cast<std::ptrdiff_t>(bytes);
}

void MemoryBudget::release(std::size_t bytes) {
  const MutexLock lock(mutex_);
  left_ += static_cast<std::ptrdiff_t>(bytes);
}

}  // namespace tandem::fs
