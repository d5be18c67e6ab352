#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "tandem/graph/optimizer_options.h"
#include "tandem/runtime/device_inventory.h"
#include "tandem/runtime/runtime.h"

namespace tandem {

/// What td::config has set, for the default runtime before it starts or for the process.
/// Thread-safe.
class DefaultOptions {
 public:
  Runtime::Options get() {
    std::lock_guard lock(mutex_);
    return options_;
  }
  /// What the default runtime is made with; from here on its configuration is closed.
  Runtime::Options start() {
    std::lock_guard lock(mutex_);
    started_.store(true, std::memory_order_release);
    inventory_.reset();  // the runtime has its own
    return options_;
  }
  void start_failed() { started_.store(false, std::memory_order_release); }
  bool started() const { return started_.load(std::memory_order_acquire); }
  /// Calls `change(options)` while nothing starts; what it throws leaves them as they were.
  template <class Change>
  void change(Change change) {
    std::lock_guard lock(mutex_);
    Runtime::Options changed = options_;
    change(changed);
    options_ = std::move(changed);
  }

  /// What the default runtime would be made with now, completed by the environment, and the
  /// devices that there are for it.
  struct Devices {
    DeviceConfig config;
    std::shared_ptr<const DeviceInventory> inventory;
  };
  Devices devices();
  /// Calls `change(program's configuration, devices())` while nothing starts; what it throws leaves
  /// all as it was. False, and no call, if the default runtime has started.
  bool change_devices(const std::function<void(DeviceConfig&, const Devices&)>& change);

  bool deterministic() const { return deterministic_.load(); }
  void set_deterministic(bool on) { deterministic_.store(on); }
  OptimizerOptions optimizer() {
    std::lock_guard lock(mutex_);
    return optimizer_;
  }
  void set_optimizer(const OptimizerOptions& options) {
    std::lock_guard lock(mutex_);
    if (options == optimizer_) return;
    optimizer_ = options;
    optimizer_version_.fetch_add(1);
  }
  /// Changes whenever the optimizer's options do.
  std::uint64_t optimizer_version() const { return optimizer_version_.load(); }

 private:
  Devices locked_devices();

  std::mutex mutex_;
  Runtime::Options options_;
  std::atomic<bool> started_{false};
  std::shared_ptr<const DeviceInventory> inventory_;  // kept while it fits inventory_config_
  DeviceConfig inventory_config_;
  std::atomic<bool> deterministic_{false};
  OptimizerOptions optimizer_;
  std::atomic<std::uint64_t> optimizer_version_{0};
};

DefaultOptions& default_options();

/// A pool that has more threads would take seconds to start and be slower in everything it does.
inline constexpr int kMaxThreads = 4096;
/// Throws InvalidArgumentError unless `threads` lies in [0, kMaxThreads]. `which`: "Intra op" or
/// "Inter op".
void check_threads(int threads, const char* which);

}  // namespace tandem
