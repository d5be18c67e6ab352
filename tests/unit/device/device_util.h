#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace tandem {

/// Threads of this process, from /proc/self/task.
std::size_t thread_count();

/// Opens when `count` have arrived: waiting for an event, not for time.
class Gate {
 public:
  explicit Gate(int count = 1) : missing_(count) {}
  void arrive() {
    std::lock_guard lock(mutex_);
    if (--missing_ <= 0) changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return missing_ <= 0; });
  }
  void arrive_and_wait() {
    arrive();
    wait();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int missing_;
};

}  // namespace tandem
