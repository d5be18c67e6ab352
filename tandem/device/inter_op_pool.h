#pragma once

#include <functional>
#include <memory>

#include "tandem/core/export.h"

namespace tandem {

/// Threads that run independent ops of a graph side by side: `threads - 1` workers beside the
/// callers.
///
/// Thread-safe. Each worker has a queue of its own and takes from the others' when that is empty.
/// Tasks may schedule further tasks; they must not throw and must not block on other tasks.
class TANDEM_EXPORT InterOpPool {
 public:
  explicit InterOpPool(int threads);
  ~InterOpPool();
  InterOpPool(const InterOpPool&) = delete;
  InterOpPool& operator=(const InterOpPool&) = delete;

  int threads() const { return threads_; }
  /// Queues `task` for a worker. With one thread there are no workers: then only `help` runs tasks.
  void schedule(std::function<void()> task);
  /// Runs one queued task on the calling thread, if there is any. Callers that wait for their graph
  /// do this meanwhile.
  bool help();
  /// Whether the calling thread is a worker of a pool: such a thread must not wait.
  static bool on_worker();
  /// Ends the workers once they have run what is queued; does nothing the second time. Tasks
  /// scheduled afterwards run on threads of their own. May be called by a worker, which then ends
  /// by itself.
  void stop();

 private:
  struct State;
  int threads_;
  std::shared_ptr<State> state_;
};

}  // namespace tandem
