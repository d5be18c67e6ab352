#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tandem/device/device.h"
#include "tandem/device/emulated/internal/emulated_memory.h"

namespace tandem {

/// A failure, and whether it has been reported.
struct EmulatedFailure {
  explicit EmulatedFailure(std::exception_ptr e) : error(std::move(e)) {}
  const std::exception_ptr error;
  std::atomic<bool> reported{false};
};

class EmulatedEvent final : public Event {
 public:
  explicit EmulatedEvent(std::shared_ptr<EmulatedReports> reports, const void* owner)
      : reports_(std::move(reports)), owner_(owner) {}

  bool done() const override { return done_.load(std::memory_order_acquire); }
  void wait() override;

  /// Called once. `at` is when it happened by the device's clock, which may be earlier than now.
  void finish(EmulatedTime at, std::shared_ptr<EmulatedFailure> failure);
  /// When it happened; only once done.
  EmulatedTime at() const { return at_; }
  /// `wake` is called once it is done, at once if it is already.
  void notify(std::function<void()> wake);
  /// The device that recorded it.
  const void* owner() const { return owner_; }

 private:
  const std::shared_ptr<EmulatedReports> reports_;
  const void* const owner_;
  std::atomic<bool> done_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  EmulatedTime at_{};
  std::shared_ptr<EmulatedFailure> failure_;
  std::vector<std::function<void()>> wakes_;
};

}  // namespace tandem
