#pragma once

#include <condition_variable>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/device/cuda/internal/clique.h"

namespace tandem::cuda {

class StreamState;

/// A collective that stands in the queues of several streams. Their launchers wait for each other
/// when they come to it; the last one issues it to all GPUs, or to none. Thread-safe.
class Collective {
 public:
  /// Keeps what `work` says, but for `done` of the members.
  Collective(std::shared_ptr<Clique> clique, const TandemCollective& work);

  /// By the launcher of the member's stream, which has issued all that was enqueued before. Throws
  /// Failure, for every member, if nothing was issued, or nothing of it runs on.
  void issue(std::size_t rank, CUstream stream) TANDEM_EXCLUDES(mutex_);
  /// By the completer, once the member's stream is past it, where `issue` has not thrown. Throws
  /// Failure if it was aborted.
  void over() TANDEM_EXCLUDES(mutex_);

 private:
  const std::shared_ptr<Clique> clique_;
  const TandemCollective work_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::vector<CollectivePart> parts_ TANDEM_GUARDED_BY(mutex_);
  std::size_t come_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::size_t left_ TANDEM_GUARDED_BY(mutex_);
  bool issued_ TANDEM_GUARDED_BY(mutex_) = false;
  std::int32_t code_ TANDEM_GUARDED_BY(mutex_) = TANDEM_OK;  // of what `issue` throws
  std::string text_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::cuda

/// Compute streams of different GPUs.
struct TandemCommunicator {
  std::vector<tandem::cuda::StreamState*> streams;
  std::vector<tandem::cuda::Gpu*> gpus;
};

namespace tandem::cuda {

// As the plugin interface asks for them. They throw Failure.
TandemCommunicator* create_communicator(TandemStream* const* streams, std::size_t num_streams);
void enqueue_collective(const TandemCommunicator& communicator, const TandemCollective& work);

}  // namespace tandem::cuda
