#pragma once

#include <cstdint>

namespace tandem::data {

/// How long the calling thread was idle within a scope: it slept, waited for a file, a network, a
/// device or a lock, but had not to wait for a core. Looking costs some microseconds, so that only
/// some scopes are looked at, drawn by chance: about one in 4 ms of a thread's time, and those that
/// take longer always. Scopes nest; those within one that is looked at are looked at too, so that
/// each has its own part. Where these are many it is given up: the scopes that are open are not
/// known then, and those within them are drawn one by one. A thread looks at no more than 16 scopes
/// and one for each 2 ms of its time. Where the system does not say (no
/// /proc/thread-self/schedstat) none are known.
class IdleTime {
 public:
  /// Nanoseconds of a steady clock.
  explicit IdleTime(std::int64_t now);
  IdleTime(const IdleTime&) = delete;
  IdleTime& operator=(const IdleTime&) = delete;

  /// Ends the scope, which took `time` nanoseconds. To be called once.
  void end(std::int64_t time);

  /// At the beginning: it is looked at. After the end: it is known.
  bool known() const { return begin_ >= 0; }
  // After the end.
  std::int64_t total() const { return total_; }
  /// Without scopes within it, and what was set apart.
  std::int64_t own() const { return own_; }

  /// The calling thread stood still for a reason that is not the innermost scope's.
  static void set_apart(std::int64_t time);

  /// Scopes that the calling thread has looked at.
  static std::int64_t looks();

 private:
  std::int64_t begin_ = -1;  // idle since the thread began; -1: not looked at
  std::int64_t outer_ = 0;   // set apart in the scope around it
  std::int64_t total_ = 0, own_ = 0;
};

}  // namespace tandem::data
