#pragma once

#include <atomic>
#include <mutex>

#include "tandem/runtime/runtime.h"

namespace tandem {

/// What td::config has set for the default runtime before it starts. Thread-safe.
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

 private:
  std::mutex mutex_;
  Runtime::Options options_;
  std::atomic<bool> deterministic_{false};
};

DefaultOptions& default_options();

}  // namespace tandem
