#pragma once

#include <condition_variable>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/device/cuda/internal/gpu.h"
#include "tandem/device/cuda/internal/nccl_api.h"
#include "tandem/device/plugin.h"

namespace tandem::cuda {

/// What a member of a collective has.
struct CollectivePart {
  const void* from = nullptr;
  void* to = nullptr;
  CUstream stream = nullptr;
};

/// GPUs that exchange values by NCCL, by a communicator each, in the order of their ranks.
///
/// While work of theirs is on its way a thread looks after it: where NCCL reports an error, or one
/// of the GPUs is lost, the communicators are aborted, so that the kernels of the others, which
/// wait for it, end. The clique is of no use then, and the next that is asked for is a new one.
/// Thread-safe.
class Clique : public std::enable_shared_from_this<Clique> {
 public:
  /// That of these GPUs, of which none comes twice: made at the first call, which may take long,
  /// and kept as long as the process. Throws Failure.
  static std::shared_ptr<Clique> of(const std::vector<Gpu*>& gpus);

  explicit Clique(const std::vector<Gpu*>& gpus);
  ~Clique();
  Clique(const Clique&) = delete;
  Clique& operator=(const Clique&) = delete;

  /// Issues the work to all streams by one call of NCCL's. The parts are those of `work`. Throws
  /// Failure: if a GPU is lost before anything is issued, else once nothing of the work runs on.
  void issue(const TandemCollective& work, const std::vector<CollectivePart>& parts)
      TANDEM_EXCLUDES(calls_, mutex_);
  /// To be called once for each `issue` that has not thrown, when all its parts are over.
  void over() TANDEM_EXCLUDES(mutex_);
  /// Throws Failure if the clique has been aborted: what it worked on is not there.
  void check() TANDEM_EXCLUDES(mutex_);

 private:
  struct Reason {
    std::int32_t code = TANDEM_OK;
    std::string text;
  };

  bool is_aborted() TANDEM_EXCLUDES(mutex_);
  Reason trouble() TANDEM_REQUIRES(calls_);
  void abort_locked(const Reason& why) TANDEM_REQUIRES(calls_) TANDEM_EXCLUDES(mutex_);
  void call(const TandemCollective& work, const CollectivePart& part,
            ncclComm_t communicator) const;
  static void watch(std::shared_ptr<Clique> clique);

  const std::vector<Gpu*> gpus_;
  Mutex calls_;  // of NCCL on the communicators; taken before mutex_
  std::vector<ncclComm_t> communicators_ TANDEM_GUARDED_BY(calls_);  // none once aborted
  Mutex mutex_;
  std::condition_variable changed_;
  int on_its_way_ TANDEM_GUARDED_BY(mutex_) = 0;
  Reason aborted_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::cuda
