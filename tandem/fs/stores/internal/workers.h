#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "tandem/core/thread_annotations.h"

namespace tandem::fs {

/// Threads that transfer parts, started when there is work. They mostly wait for the network.
/// Thread-safe.
class Workers {
 public:
  explicit Workers(int threads) : threads_(threads) {}
  /// Ends after the tasks that were begun; drops the others.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// `task` must not throw.
  void submit(std::function<void()> task);

 private:
  void run();

  const int threads_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_ TANDEM_GUARDED_BY(mutex_);
  std::vector<std::thread> started_ TANDEM_GUARDED_BY(mutex_);
  int idle_ TANDEM_GUARDED_BY(mutex_) = 0;
  bool ending_ TANDEM_GUARDED_BY(mutex_) = false;
};

/// How much memory the buffers of a store may take together. Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t bytes) : left_(static_cast<std::ptrdiff_t>(bytes)) {}
  /// Whether there was so much left, which is then taken.
  bool try_take(std::size_t bytes);
  /// Also where nothing is left: for what the work cannot go on without.
  void take(std::size_t bytes);
  void release(std::size_t bytes);

 private:
  Mutex mutex_;
  std::ptrdiff_t left_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::fs
