#include "tandem/device/emulated/internal/emulated_event.h"

namespace tandem {

void EmulatedEvent::wait() {
  if (!done()) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done(); });
  }
  if (failure_) {
    failure_->reported = true;
    std::rethrow_exception(failure_->error);
  }
  reports_->raise();
}

void EmulatedEvent::finish(EmulatedTime at, std::shared_ptr<EmulatedFailure> failure) {
  std::vector<std::function<void()>> wakes;
  {
    std::lock_guard lock(mutex_);
    at_ = at;
    failure_ = std::move(failure);
    done_.store(true, std::memory_order_release);
    wakes.swap(wakes_);
    changed_.notify_all();
  }
  for (const auto& wake : wakes) wake();
}

void EmulatedEvent::notify(std::function<void()> wake) {
  {
    std::lock_guard lock(mutex_);
    if (!done()) {
      wakes_.push_back(std::move(wake));
      return;
    }
  }
  wake();
}

}  // namespace tandem
