#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "tandem/graph/optimizer_options.h"
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
  template <class Change>
  void change(Change change) {
    std::lock_guard lock(mutex_);
    change(options_);
  }
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
  std::mutex mutex_;
  Runtime::Options options_;
  std::atomic<bool> deterministic_{false};
  OptimizerOptions optimizer_;
  std::atomic<std::uint64_t> optimizer_version_{0};
};

DefaultOptions& default_options();

}  // namespace tandem
