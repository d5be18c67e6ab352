#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

/// Calls to make once a lock is released.
using Actions = std::vector<std::function<void()>>;

/// Answers two calls that ask for one thing: a caller that has lost its first call and asks again,
/// or another one in its place, while a late message of the first may still arrive.
ReplyDone both(ReplyDone one, ReplyDone other);

/// Records that a parameter server has applied and that are not yet everywhere: in its log, and on
/// the replicas after it. What waits for a record is called when that and all before it are
/// everywhere. Not thread-safe; calls nothing itself.
class CommitQueue {
 public:
  using Done = std::function<void(const Status& status)>;
  struct Entry {
    std::uint64_t serial = 0;  ///< of this entry, and of no later one of the queue
    std::int64_t position = 0;
    Bytes record;                   ///< as replicas get it; empty for what is no update
    std::int64_t epoch_before = 0;  ///< of the update before the record
    bool logged = false;
    bool forwarded = false;
    Status status = {};
    std::vector<Done> done = {};
  };

  /// Positions rise. The reference is good until the queue changes.
  Entry& add(std::int64_t position, Bytes record, std::int64_t epoch_before, bool logged,
             bool forwarded);
  /// The updates after the one at a position, up to `last`, if they are all here and the one at
  /// that position is of that epoch.
  std::optional<std::vector<const Entry*>> updates_after(std::int64_t position, std::int64_t epoch,
                                                         std::int64_t last) const;
  bool empty() const { return entries_.empty(); }
  const std::deque<Entry>& entries() const { return entries_; }
  /// Once everything that was added so far is everywhere; at once if it is.
  void wait(Done done, Actions& actions);

  void mark_logged(std::uint64_t serial, const Status& status, Actions& actions);
  void mark_forwarded(std::uint64_t serial, Actions& actions);
  void mark_forwarded_until(std::int64_t position, Actions& actions);
  /// Nothing is called until `release`.
  void hold() { held_ = true; }
  void release(Actions& actions);
  /// Ends everything that waits, and a hold.
  void fail(const Status& status, Actions& actions);

 private:
  void mark(std::uint64_t serial, const std::function<void(Entry&)>& change, Actions& actions);
  void take_finished(Actions& actions);

  std::deque<Entry> entries_;
  std::uint64_t next_serial_ = 1;
  bool held_ = false;
};

}  // namespace tandem::distribute
