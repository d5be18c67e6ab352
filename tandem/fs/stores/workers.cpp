#include "tandem/fs/stores/internal/workers.h"

#include <utility>

namespace tandem::fs {

Workers::~Workers() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    tasks_.clear();
    threads.swap(started_);
    changed_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
}

void Workers::submit(std::function<void()> task) {
  const MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
  if (static_cast<std::size_t>(idle_) < tasks_.size() &&
      started_.size() < static_cast<std::size_t>(threads_)) {
    started_.emplace_back([this] { run(); });
  }
  changed_.notify_one();
}

void Workers::run() {
  MutexLock lock(mutex_);
  for (;;) {
    ++idle_;
    while (tasks_.empty() && !ending_) lock.wait(changed_);
    --idle_;
    if (ending_) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
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
