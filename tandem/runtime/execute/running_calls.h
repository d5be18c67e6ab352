#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "tandem/graph/kernel_context.h"

namespace tandem {

/// A runtime's calls in progress, so that its destructor can end them. Thread-safe.
class RunningCalls {
 public:
  /// One call, on the thread that waits for it.
  class Scope {
   public:
    explicit Scope(RunningCalls& calls);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    RunningCalls& calls_;
  };

  /// Cancelled with the runtime: what cancels calls, alone or joined with the caller's own.
  const std::shared_ptr<const Cancellation>& closing() const { return closing_; }
  /// Cancelled with the runtime or with `own`; the same for calls that follow each other.
  std::shared_ptr<const Cancellation> closing_or(const std::shared_ptr<const Cancellation>& own);
  /// Cancels and waits until all are over; from within one of them (a kernel that ends the program)
  /// does not wait.
  void end();

 private:
  const std::shared_ptr<Cancellation> closes_ = std::make_shared<Cancellation>();
  const std::shared_ptr<const Cancellation> closing_ = closes_;
  std::mutex mutex_;
  std::condition_variable over_;
  int running_ = 0;  // guarded by mutex_, as what follows
  std::shared_ptr<const Cancellation> own_, closing_or_own_;
};

}  // namespace tandem
