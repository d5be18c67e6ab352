#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/state/waiting_resource.h"

namespace tandem::cpu {

/// Tuples of arrays on their way from one step to a later one, first in, first out: what Stage puts
/// in and Unstage takes out. A request that has to wait leaves a callback, and no thread waits.
/// Thread-safe.
class StagingArea final : public WaitingResource {
 public:
  using Tuple = std::vector<Array>;
  using PutDone = std::function<void(std::exception_ptr)>;
  using TakeDone = std::function<void(std::exception_ptr, Tuple)>;

  /// At most `capacity` tuples of `memory_limit` bytes together; 0: any number.
  StagingArea(std::int64_t capacity, std::int64_t memory_limit);
  std::string debug_string() const override;

  /// Each calls `done` once, perhaps before returning; with CancelledError when `cancellation` says
  /// so. `put` throws ResourceExhaustedError if the tuple alone is above the limit.
  void put(Tuple tuple, const Cancellation* cancellation, PutDone done);
  void take(const Cancellation* cancellation, TakeDone done);
  /// What `take` would give after `index` others, once it is there; it stays.
  void peek(std::int64_t index, const Cancellation* cancellation, TakeDone done);
  std::int64_t size() const;
  void clear();

  void cancel_request(std::uint64_t request) override;

 private:
  struct Put {
    Tuple tuple;
    std::int64_t bytes;
    PutDone done;
    std::uint64_t request = 0;
    RequestWatch watch = {};
  };
  struct Take {
    std::int64_t index;  // -1: takes the first out
    TakeDone done;
    std::uint64_t request = 0;
    RequestWatch watch = {};
  };
  using Callbacks = std::vector<std::function<void()>>;

  bool has_room(std::int64_t bytes) const;
  bool serve(Take& take, Callbacks& ready);
  void match(Callbacks& ready);
  void wait(Take take, const Cancellation* cancellation);
  void drop(std::uint64_t request, Callbacks& ready);

  const std::int64_t capacity_;
  const std::int64_t memory_limit_;
  mutable std::mutex mutex_;
  std::int64_t bytes_ = 0;
  std::deque<Tuple> tuples_;
  std::list<Put> puts_;
  std::list<Take> takes_;
  std::uint64_t requests_ = 0;
};

}  // namespace tandem::cpu
