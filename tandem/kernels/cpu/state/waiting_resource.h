#pragma once

#include <cstdint>

#include "tandem/core/cancellation.h"
#include "tandem/core/resource_handle.h"

namespace tandem::cpu {

/// What may cancel one waiting request: a callback of its step's Cancellation.
struct RequestWatch {
  const Cancellation* cancellation = nullptr;
  Cancellation::Token token = 0;
  /// Before the request's own callback, which may end the step; without the resource's lock.
  void end() const {
    if (token != 0) cancellation->deregister_callback(token);
  }
};

/// A resource that requests wait for: a request that cannot be served leaves a callback, and no
/// thread waits. A cancellation ends the requests of its step on the thread that cancels.
class WaitingResource : public Resource {
 public:
  /// Ends the request with CancelledError if it still waits. Thread-safe.
  virtual void cancel_request(std::uint64_t request) = 0;

 protected:
  /// Has `cancel_request` called when `cancellation`, which may be null, says so; false if it has
  /// said so already. May be called with the resource's own lock held.
  bool watch(std::uint64_t request, const Cancellation* cancellation, RequestWatch& watch);
};

}  // namespace tandem::cpu
