#pragma once

#include "tandem/core/internal/sanitizers.h"
#include "tandem/distribute/internal/rpc/poller.h"

#if TANDEM_THREAD_SANITIZER
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace tandem::distribute {

// What a thread has written before it gives gRPC an operation comes before what the thread that
// gets the operation's event reads. ThreadSanitizer does not see that in gRPC's libraries, which
// are compiled without it, so the two functions say it.

/// The tag of an operation that ends with `event`.
inline void* tag_of(PollerEvent& event) {
#if TANDEM_THREAD_SANITIZER
  __tsan_release(&event);
#endif
  return &event;
}

/// The event of a tag that a completion queue has returned.
inline PollerEvent& event_of(void* tag) {
#if TANDEM_THREAD_SANITIZER
  __tsan_acquire(tag);
#endif
  return *static_cast<PollerEvent*>(tag);
}

}  // namespace tandem::distribute
