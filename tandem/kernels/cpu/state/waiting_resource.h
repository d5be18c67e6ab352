#pragma once

#include "tandem/core/resource_handle.h"

namespace tandem::cpu {

/// A resource whose requests wait: one that cannot proceed leaves a callback; no thread waits.
/// Requests that may be cancelled are looked after by one thread for the whole process.
class WaitingResource : public Resource {
 public:
  /// Ends the requests that are cancelled; false if none is left that could be. Thread-safe.
  virtual bool drop_cancelled() = 0;

 protected:
  /// Has `drop_cancelled` called now and then until it returns false. May be called with the
  /// resource's own lock held.
  void watch_cancellation();
};

}  // namespace tandem::cpu
