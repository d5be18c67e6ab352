#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "tandem/distribute/internal/rpc/local/descriptor.h"

namespace tandem::distribute {

/// Wakes threads that wait in the kernel, by poll or epoll: its descriptor is readable from
/// `signal` until `clear`. Threads that wait for the edge alone need no `clear`: each signal wakes
/// one of them. Thread-safe.
class WakeEvent {
 public:
  WakeEvent() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  /// False where the system had no descriptor left: there is nothing to wait for then.
  bool is_open() const { return descriptor_.is_open(); }
  int number() const { return descriptor_.number(); }

  void signal() const {
    const std::uint64_t one = 1;
    static_cast<void>(::write(number(), &one, sizeof(one)) + 0);
  }
  void clear() const {
    std::uint64_t signals = 0;
    static_cast<void>(::read(number(), &signals, sizeof(signals)) + 0);
  }

 private:
  const Descriptor descriptor_;
};

}  // namespace tandem::distribute
