#pragma once

#include <memory>
#include <utility>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

/// The way to a task that may move to another address: calls that begin after `set` go there.
/// Thread-safe.
class RoutedChannel final : public Channel {
 public:
  explicit RoutedChannel(std::shared_ptr<Channel> to) : to_(std::move(to)) {}
  void set(std::shared_ptr<Channel> to) {
    const MutexLock lock(mutex_);
    to_ = std::move(to);
  }
  void call(const char* method, Bytes request, const CallOptions& options,
            ReplyDone done) override {
    now()->call(method, std::move(request), options, std::move(done));
  }
  std::pair<Status, Bytes> call_and_wait(const char* method, Bytes request,
                                         const CallOptions& options) override {
    return now()->call_and_wait(method, std::move(request), options);
  }

 private:
  std::shared_ptr<Channel> now() const {
    const MutexLock lock(mutex_);
    return to_;
  }
  mutable Mutex mutex_;
  std::shared_ptr<Channel> to_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
