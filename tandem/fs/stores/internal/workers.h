#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tandem/core/thread_annotations.h"

namespace tandem::fs {

/// Threads that transfer parts, started when there is work. They mostly wait for the network.
/// Thread-safe.
class Workers {
 public:
  explicit Workers(int threads) : threads_(static_cast<std::size_t>(threads)) {}
  /// Ends after the tasks that were begun; drops the others.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// `task` must not throw.
  void submit(std::function<void()> task);

 private:
  // What the threads use: the last task may end their owner.
  struct State {
    Mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> tasks TANDEM_GUARDED_BY(mutex);
    std::vector<std::thread> started TANDEM_GUARDED_BY(mutex);
    std::size_t idle TANDEM_GUARDED_BY(mutex) = 0;
    bool ending TANDEM_GUARDED_BY(mutex) = false;
  };
  static void run(State& state);

  const std::size_t threads_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
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
