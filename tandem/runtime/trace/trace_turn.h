#pragma once

#include <condition_variable>

namespace tandem {

/// Lets one thread at a time trace a function: the user's callable need not be thread-safe for
/// that, and the work is not done twice. Unlike a lock it cannot lead to a deadlock: where waiting
/// would never end, since the thread that has the turn waits for one that this thread has (two
/// threads trace functions that call each other), this thread goes on without the turn.
class TraceTurn {
 public:
  TraceTurn() = default;
  TraceTurn(const TraceTurn&) = delete;
  TraceTurn& operator=(const TraceTurn&) = delete;

  /// For a block. A thread that has the turn already keeps it.
  class Scope {
   public:
    explicit Scope(TraceTurn& turn);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    TraceTurn& turn_;
    bool taken_ = false;
  };

 private:
  struct Thread;
  struct Shared;

  const Thread* holder_ = nullptr;  // guarded by one mutex for all turns
  int depth_ = 0;                   // likewise
  std::condition_variable free_;
};

}  // namespace tandem
