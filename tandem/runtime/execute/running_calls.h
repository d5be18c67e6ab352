#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "tandem/graph/kernel_context.h"

namespace tandem {

/// A runtime's function calls in progress, so that its destructor can end them. Thread-safe.
class RunningCalls {
 public:
  /// One call, on the thread that waits for it. Does not keep the RunningCalls: the thread's
  /// context shares the runtime.
  class Scope {
   public:
    explicit Scope(RunningCalls& calls) : calls_(calls), outer_(t_innermost) {
      calls_.running_.fetch_add(1, std::memory_order_seq_cst);
      t_innermost = this;
    }
    ~Scope() {
      t_innermost = outer_;
      if (calls_.running_.fetch_sub(1, std::memory_order_seq_cst) == 1) calls_.last_over();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class RunningCalls;
    static constinit thread_local const Scope* t_innermost;
    RunningCalls& calls_;
    const Scope* const outer_;
  };

  /// Cancelled with the runtime: what cancels calls, alone or joined with the caller's own.
  const std::shared_ptr<const Cancellation>& closing() const { return closing_; }
  /// Cancelled with the runtime or with `own`; the same for calls that follow each other.
  std::shared_ptr<const Cancellation> closing_or(const std::shared_ptr<const Cancellation>& own);
  /// Whether the calling thread is in one of these calls.
  bool inside() const;
  /// Cancels and waits until all are over; from within one of them (a kernel that ends the program)
  /// does not wait.
  void end();

 private:
  void last_over() {
    if (closing_->cancelled()) notify();
  }
  void notify();

  const std::shared_ptr<Cancellation> closes_ = std::make_shared<Cancellation>();
  const std::shared_ptr<const Cancellation> closing_ = closes_;
  std::atomic<int> running_{0};
  std::mutex mutex_;
  std::condition_variable over_;
  std::shared_ptr<const Cancellation> own_, closing_or_own_;  // guarded by mutex_
};

}  // namespace tandem
