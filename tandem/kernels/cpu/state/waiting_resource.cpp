#include "tandem/kernels/cpu/state/waiting_resource.h"

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem::cpu {
namespace {

// Cancellation has no callback, so while requests wait that may be cancelled, one
// thread looks after them.
class CancelWatch {
 public:
  static CancelWatch& instance() {
    static auto* watch = new CancelWatch;  // never destroyed: its thread may outlive static objects
    return *watch;
  }
  void add(WaitingResource& resource) {
    std::lock_guard lock(mutex_);
    for (const auto& known : watched_) {
      if (known.get() == &resource) return;
    }
    watched_.push_back(Ref<WaitingResource>(&resource));
    if (!running_) {
      running_ = true;
      std::thread([this] { run(); }).detach();
    }
  }

 private:
  void run() {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      std::vector<Ref<WaitingResource>> watched;
      {
        std::lock_guard lock(mutex_);
        watched.swap(watched_);
      }
      std::vector<Ref<WaitingResource>> still;
      for (auto& resource : watched) {
        if (resource->drop_cancelled()) still.push_back(resource);
      }
      std::lock_guard lock(mutex_);
      watched_.insert(watched_.end(), still.begin(), still.end());
      if (watched_.empty()) {
        running_ = false;
        return;
      }
    }
  }
  std::mutex mutex_;
  std::vector<Ref<WaitingResource>> watched_;
  bool running_ = false;
};

}  // namespace

void WaitingResource::watch_cancellation() { CancelWatch::instance().add(*this); }

}  // namespace tandem::cpu
