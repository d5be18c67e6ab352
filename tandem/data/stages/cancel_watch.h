#pragma once

#include <cstdint>
#include <memory>

#include "tandem/data/iteration_context.h"
#include "tandem/graph/kernel_context.h"

namespace tandem::data {

/// Stops a signal soon (5 ms) after a cancellation, which notifies no one: while there are
/// watches, one thread of the process looks after all of them, so that stages need to look at
/// nothing but their signal, and those that wait are woken. Ends when destroyed.
class CancelWatch {
 public:
  CancelWatch() = default;
  CancelWatch(std::shared_ptr<StopSignal> signal, std::shared_ptr<const Cancellation> cancellation);
  CancelWatch(CancelWatch&& other) noexcept;
  CancelWatch& operator=(CancelWatch&& other) noexcept;
  ~CancelWatch();

 private:
  std::uint64_t id_ = 0;  // 0: of nothing
};

}  // namespace tandem::data
