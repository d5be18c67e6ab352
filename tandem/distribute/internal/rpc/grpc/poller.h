#pragma once

#include <condition_variable>
#include <memory>

#include <grpcpp/completion_queue.h>

#include "tandem/core/thread_annotations.h"

namespace tandem::distribute {

/// What a completion queue's tags point to.
class GrpcEvent {
 public:
  /// The operation is over, with success or without.
  virtual void complete(bool ok) = 0;

 protected:
  ~GrpcEvent() = default;
};

/// Threads that wait for a completion queue and run what its events lead to, without handing it to
/// another thread. One thread always waits: where the last one that did has got work, another
/// begins, up to `kMaxThreads`; those that are not needed end.
class GrpcPoller {
 public:
  explicit GrpcPoller(std::unique_ptr<grpc::CompletionQueue> queue);
  /// Ends the queue and waits for the threads; operations still there complete without success.
  ~GrpcPoller();
  GrpcPoller(const GrpcPoller&) = delete;
  GrpcPoller& operator=(const GrpcPoller&) = delete;

  grpc::CompletionQueue& queue() { return *queue_; }

 private:
  static constexpr int kMaxThreads = 64;
  static constexpr int kSpareThreads = 2;
  void add_thread() TANDEM_REQUIRES(mutex_);
  void poll();

  const std::unique_ptr<grpc::CompletionQueue> queue_;
  Mutex mutex_;
  std::condition_variable ended_;
  int threads_ TANDEM_GUARDED_BY(mutex_) = 0;
  int waiting_ TANDEM_GUARDED_BY(mutex_) = 0;
  bool closing_ TANDEM_GUARDED_BY(mutex_) = false;
};

}  // namespace tandem::distribute
