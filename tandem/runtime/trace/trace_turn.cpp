#include "tandem/runtime/trace/trace_turn.h"

#include <mutex>

#include "tandem/core/never_destroyed.h"

namespace tandem {

// Whom a thread waits for. A thread waits for one turn at a time, and a turn has one holder, so
// following them from a turn gives one way.
struct TraceTurn::Thread {
  const TraceTurn* waits_for = nullptr;  // guarded by the mutex
};

struct TraceTurn::Shared {
  static std::mutex& mutex() {
    static NeverDestroyed<std::mutex> all;
    return *all;
  }
  static Thread& this_thread() {
    thread_local Thread thread;
    return thread;
  }
  static bool would_wait_for_itself(const TraceTurn& turn, const Thread& thread) {
    for (const Thread* holder = turn.holder_; holder && holder->waits_for;) {
      holder = holder->waits_for->holder_;
      if (holder == &thread) return true;
    }
    return false;
  }
};

TraceTurn::Scope::Scope(TraceTurn& turn) : turn_(turn) {
  Thread& thread = Shared::this_thread();
  std::unique_lock lock(Shared::mutex());
  while (turn_.holder_ && turn_.holder_ != &thread) {
    if (Shared::would_wait_for_itself(turn_, thread)) return;
    thread.waits_for = &turn_;
    turn_.free_.wait(lock);
    thread.waits_for = nullptr;
  }
  turn_.holder_ = &thread;
  ++turn_.depth_;
  taken_ = true;
}

TraceTurn::Scope::~Scope() {
  if (!taken_) return;
  std::lock_guard lock(Shared::mutex());
  if (--turn_.depth_ != 0) return;
  turn_.holder_ = nullptr;
  turn_.free_.notify_all();
}

}  // namespace tandem
