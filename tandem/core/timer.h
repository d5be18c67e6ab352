#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "tandem/core/export.h"

namespace tandem {

/// Calls back once at a time of the steady clock, unless it is destroyed before. One thread of the
/// process serves all timers; it runs only while there are any, and sleeps until the first is due.
/// A callback must not wait for long: it holds up the other timers.
class TANDEM_EXPORT Timer {
 public:
  Timer() = default;
  /// Throws ResourceExhaustedError if no thread can be started.
  Timer(std::chrono::steady_clock::time_point due, std::function<void()> callback);
  Timer(Timer&& other) noexcept;
  Timer& operator=(Timer&& other) noexcept;
  /// Does not wait for a callback that runs already.
  ~Timer();

 private:
  std::uint64_t id_ = 0;  // 0: none
};

}  // namespace tandem
