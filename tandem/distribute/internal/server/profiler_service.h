#pragma once

#include <condition_variable>
#include <string>
#include <thread>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/method_table.h"

namespace tandem::distribute {

/// TensorFlow's ProfilerService: records what the process does for a while, for
/// tf.profiler.experimental.client.trace and TensorBoard's "capture profile". One recording at a
/// time.
class ProfilerService {
 public:
  ProfilerService() = default;
  /// Ends a recording.
  ~ProfilerService() { close(); }
  ProfilerService(const ProfilerService&) = delete;
  ProfilerService& operator=(const ProfilerService&) = delete;

  /// This must outlive the table's calls.
  void add_to(MethodTable& methods);
  /// Ends a recording, and takes up no other one.
  void close();

 private:
  void profile(Bytes request, const CallContext& context, const ReplyDone& done);
  void terminate(Bytes request, const ReplyDone& done);

  Mutex mutex_;
  std::condition_variable changed_;
  std::string session_ TANDEM_GUARDED_BY(mutex_);  // of the recording
  bool recording_ TANDEM_GUARDED_BY(mutex_) = false;
  bool ends_ TANDEM_GUARDED_BY(mutex_) = false;  // the recording
  bool closed_ TANDEM_GUARDED_BY(mutex_) = false;
  std::thread thread_ TANDEM_GUARDED_BY(mutex_);  // the last recording's
};

}  // namespace tandem::distribute
