#include "tandem/distribute/internal/rpc/grpc/poller.h"

#include <system_error>
#include <thread>
#include <utility>

namespace tandem::distribute {

GrpcPoller::GrpcPoller(std::unique_ptr<grpc::CompletionQueue> queue) : queue_(std::move(queue)) {
  const MutexLock lock(mutex_);
  add_thread();
}

GrpcPoller::~GrpcPoller() {
  {
    const MutexLock lock(mutex_);
    closing_ = true;
  }
  queue_->Shutdown();
  MutexLock lock(mutex_);
  while (threads_ > 0) lock.wait(ended_);
}

void GrpcPoller::add_thread() {
  ++threads_;
  ++waiting_;
  try {
    std::thread([this] { poll(); }).detach();
  } catch (const std::system_error&) {  // the others go on
    --threads_;
    --waiting_;
    if (threads_ == 0) throw;
  }
}

void GrpcPoller::poll() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    {
      const MutexLock lock(mutex_);
      if (--waiting_ == 0 && threads_ < kMaxThreads && !closing_) add_thread();
    }
    static_cast<GrpcEvent*>(tag)->complete(ok);
    const MutexLock lock(mutex_);
    if (waiting_ >= kSpareThreads && !closing_) {
      --threads_;
      return;
    }
    ++waiting_;
  }
  const MutexLock lock(mutex_);
  --waiting_;
  if (--threads_ == 0) ended_.notify_all();
}

}  // namespace tandem::distribute
