#include "tandem/device/cuda/internal/collective.h"

#include <algorithm>
#include <utility>

#include "tandem/device/cuda/internal/nccl.h"
#include "tandem/device/cuda/internal/room.h"
#include "tandem/device/cuda/internal/stream.h"

namespace tandem::cuda {
namespace {

TandemCollective without_members(TandemCollective work) {
  work.members = nullptr;
  return work;
}

void refuse_lost(const std::vector<Gpu*>& gpus) {
  for (const Gpu* gpu : gpus) {
    if (gpu->is_lost()) throw Failure(TANDEM_UNAVAILABLE, gpu->lost());
  }
}

// NCCL takes memory of the GPUs beside Tandem's blocks, and does not say that it lacked some.
std::shared_ptr<Clique> clique_of(const TandemCommunicator& communicator) {
  try {
    return Clique::of(communicator.gpus);
  } catch (const Failure&) {
    bool released = false;
    for (const StreamState* stream : communicator.streams)
      released = release_unused_memory(stream->device()) || released;
    if (!released) throw;
  }
  return Clique::of(communicator.gpus);
}

}  // namespace

Collective::Collective(std::shared_ptr<Clique> clique, const TandemCollective& work)
    : clique_(std::move(clique)),
      work_(without_members(work)),
      parts_(work.num_members),
      left_(work.num_members) {
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < work.num_members; ++i)
    parts_[i] = {work.members[i]->input, work.members[i]->output, nullptr};
}

void Collective::issue(std::size_t rank, CUstream stream) {
  MutexLock lock(mutex_);
  parts_[rank].stream = stream;
  if (++come_ < parts_.size()) {
    while (!issued_) lock.wait(changed_);
  } else {
    try {
      clique_->issue(work_, parts_);
    } catch (const Failure& failure) {
      code_ = failure.code();
      text_ = failure.what();
    }
    issued_ = true;
    changed_.notify_all();
  }
  if (code_ != TANDEM_OK) throw Failure(code_, text_);
}

void Collective::over() {
  {
    const MutexLock lock(mutex_);
    if (--left_ == 0) clique_->over();
  }
  clique_->check();
}

TandemCommunicator* create_communicator(TandemStream* const* streams, std::size_t num_streams) {
  auto made = std::make_unique<TandemCommunicator>();
  for (std::size_t i = 0; i < num_streams; ++i) {
    StreamState& stream = streams[i]->state;
    if (std::find(made->gpus.begin(), made->gpus.end(), &stream.gpu()) != made->gpus.end())
      throw Failure(TANDEM_UNIMPLEMENTED, "two of the devices are cut from one GPU");
    made->streams.push_back(&stream);
    made->gpus.push_back(&stream.gpu());
  }
  refuse_lost(made->gpus);
  if (!Nccl::get().usable()) throw Failure(TANDEM_UNIMPLEMENTED, Nccl::get().report());
  clique_of(*made);
  return made.release();
}

// Clique::of makes another one if that of the last time was aborted.
void enqueue_collective(const TandemCommunicator& communicator, const TandemCollective& work) {
  refuse_lost(communicator.gpus);
  const auto collective = std::make_shared<Collective>(clique_of(communicator), work);
  StreamState::enqueue_together(communicator.streams, collective, work);
}

}  // namespace tandem::cuda
