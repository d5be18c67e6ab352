#pragma once

#include <condition_variable>
#include <functional>
#include <thread>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/cluster_spec.h"

namespace tandem::distribute {

/// Asks twice a second which tasks a cluster has now, on a thread of its own, so that servers and
/// strategies learn of new members while they run. Thread-safe.
class MemberWatch {
 public:
  /// `members` may throw td::Error where it does not know: it is asked again. Without `members`
  /// this does nothing.
  MemberWatch(std::function<ClusterSpec()> members,
              std::function<void(const ClusterSpec&)> on_members);
  ~MemberWatch() { stop(); }
  MemberWatch(const MemberWatch&) = delete;
  MemberWatch& operator=(const MemberWatch&) = delete;
  /// Nothing is called once it has returned; waits for a call in progress.
  void stop();

 private:
  void watch();

  const std::function<ClusterSpec()> members_;
  const std::function<void(const ClusterSpec&)> on_members_;
  Mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ TANDEM_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tandem::distribute
