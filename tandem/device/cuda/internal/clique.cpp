#include "tandem/device/cuda/internal/clique.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "tandem/core/dtype.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/device/cuda/internal/nccl.h"

namespace tandem::cuda {
namespace {

// How long a GPU may wait for one that is lost before somebody looks.
constexpr std::chrono::milliseconds kLook{10};

struct Cliques {
  Mutex mutex;
  std::map<std::vector<Gpu*>, std::shared_ptr<Clique>> made TANDEM_GUARDED_BY(mutex);
};
Cliques& cliques() {
  static NeverDestroyed<Cliques> all;
  return *all;
}

std::string name_of(const Gpu& gpu) { return "GPU " + std::to_string(gpu.device()); }

}  // namespace

std::shared_ptr<Clique> Clique::of(const std::vector<Gpu*>& gpus) {
  Cliques& all = cliques();
  const MutexLock lock(all.mutex);
  std::shared_ptr<Clique>& found = all.made[gpus];
  if (!found || found->is_aborted()) {
    found = std::make_shared<Clique>(gpus);
    std::thread(watch, found).detach();
  }
  return found;
}

Clique::Clique(const std::vector<Gpu*>& gpus) : gpus_(gpus) {
  const Nccl& nccl = Nccl::get();
  const ContextScope context(*gpus_.front());  // NCCL makes others the thread's
  std::vector<int> ordinals;
  for (const Gpu* gpu : gpus_) ordinals.push_back(gpu->device());
  std::vector<ncclComm_t> made(gpus_.size());
  nccl.check(nccl.p_ncclCommInitAll(made.data(), static_cast<int>(made.size()), ordinals.data()),
             "ncclCommInitAll");
  const MutexLock lock(calls_);
  communicators_ = std::move(made);
}

Clique::~Clique() = default;  // once aborted: those that work stay as long as the process

void Clique::call(const TandemCollective& work, const CollectivePart& part,
                  ncclComm_t communicator) const {
  const Nccl& nccl = Nccl::get();
  const ncclDataType_t type = nccl_type(work.dtype).value_or(ncclUint8);  // bools are bytes
  const ncclRedOp_t reduction = nccl_reduction(work.reduction).value_or(ncclSum);
  const auto count = static_cast<std::size_t>(work.count);
  switch (work.kind) {
    case TANDEM_ALL_GATHER:
      return nccl.check(
          nccl.p_ncclAllGather(part.from, part.to, count, type, communicator, part.stream),
          "ncclAllGather");
    case TANDEM_BROADCAST:
      return nccl.check(nccl.p_ncclBroadcast(part.from ? part.from : part.to, part.to, count, type,
                                             work.root, communicator, part.stream),
                        "ncclBroadcast");
    case TANDEM_REDUCE_SCATTER:
      return nccl.check(nccl.p_ncclReduceScatter(part.from, part.to, count, type, reduction,
                                                 communicator, part.stream),
                        "ncclReduceScatter");
    default:
      return nccl.check(nccl.p_ncclAllReduce(part.from, part.to, count, type, reduction,
                                             communicator, part.stream),
                        "ncclAllReduce");
  }
}

void Clique::issue(const TandemCollective& work, const std::vector<CollectivePart>& parts) {
  const Nccl& nccl = Nccl::get();
  const MutexLock calls(calls_);
  check();
  for (const Gpu* gpu : gpus_) {
    if (gpu->is_lost()) throw Failure(TANDEM_UNAVAILABLE, name_of(*gpu) + ": " + gpu->lost());
  }
  const ContextScope context(*gpus_.front());
  {
    const MutexLock lock(mutex_);
    ++on_its_way_;
    changed_.notify_one();
  }
  const std::vector<ncclComm_t> communicators = communicators_;
  Reason failed;
  const auto attempt = [&](auto body) {
    try {
      body();
    } catch (const Failure& failure) {
      if (failed.code == TANDEM_OK) failed = {failure.code(), failure.what()};
    }
  };
  attempt([&] {
    nccl.check(nccl.p_ncclGroupStart(), "ncclGroupStart");
    for (std::size_t i = 0; i < parts.size() && failed.code == TANDEM_OK; ++i) {
      attempt([&] { call(work, parts[i], communicators[i]); });
    }
    // A group that has begun is ended, come what may.
    attempt([&] { nccl.check(nccl.p_ncclGroupEnd(), "ncclGroupEnd"); });
  });
  if (failed.code == TANDEM_OK) return;
  abort_locked(failed);
  over();
  throw Failure(failed.code, failed.text);
}

void Clique::over() {
  const MutexLock lock(mutex_);
  --on_its_way_;
}

bool Clique::is_aborted() {
  const MutexLock lock(mutex_);
  return aborted_.code != TANDEM_OK;
}

void Clique::check() {
  const MutexLock lock(mutex_);
  if (aborted_.code != TANDEM_OK) throw Failure(aborted_.code, aborted_.text);
}

void Clique::abort_locked(const Reason& why) {
  {
    const MutexLock lock(mutex_);
    if (aborted_.code != TANDEM_OK) return;
    aborted_ = why;
    changed_.notify_one();
  }
  for (ncclComm_t communicator : std::exchange(communicators_, {}))
    Nccl::get().p_ncclCommAbort(communicator);
}

// Why work that is on its way cannot go on; TANDEM_OK if it can.
Clique::Reason Clique::trouble() {
  for (const Gpu* gpu : gpus_) {
    if (gpu->is_lost()) return {TANDEM_UNAVAILABLE, name_of(*gpu) + ": " + gpu->lost()};
  }
  const Nccl& nccl = Nccl::get();
  for (std::size_t i = 0; i < communicators_.size(); ++i) {
    ncclResult_t error = ncclSuccess;
    const ncclResult_t asked = nccl.p_ncclCommGetAsyncError(communicators_[i], &error);
    if (asked != ncclSuccess) error = asked;
    if (error == ncclSuccess || error == ncclInProgress) continue;
    return {TANDEM_INTERNAL, name_of(*gpus_[i]) + ": " + nccl.text_of(error, "work of NCCL")};
  }
  return {};
}

void Clique::watch(std::shared_ptr<Clique> clique) {
  for (;;) {
    {
      MutexLock lock(clique->mutex_);
      while (clique->on_its_way_ == 0 && clique->aborted_.code == TANDEM_OK)
        lock.wait(clique->changed_);
      const auto next = std::chrono::steady_clock::now() + kLook;
      while (clique->aborted_.code == TANDEM_OK &&
             lock.wait_until(clique->changed_, next) != std::cv_status::timeout) {
      }
      if (clique->aborted_.code != TANDEM_OK) return;
      if (clique->on_its_way_ == 0) continue;
    }
    const MutexLock calls(clique->calls_);
    const Reason why = clique->trouble();
    if (why.code == TANDEM_OK) continue;
    clique->abort_locked(why);
    return;
  }
}

}  // namespace tandem::cuda
