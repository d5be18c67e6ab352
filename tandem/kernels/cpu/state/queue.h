#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/state/waiting_resource.h"

namespace tandem::cpu {

/// One element of a queue: an array for each component.
using Tuple = std::vector<Array>;

/// How a queue keeps its elements and which one it gives out next. Used with the queue's lock held.
class QueueStore {
 public:
  virtual ~QueueStore();
  virtual void put(Tuple element) = 0;
  virtual Tuple take() = 0;
  /// Puts back elements that were taken, the first one taken last.
  virtual void put_back(Tuple element) = 0;
  virtual std::int64_t size() const = 0;
};

/// A queue of tuples: a request that cannot proceed leaves a callback, in order, and
/// no thread waits. Thread-safe.
class Queue final : public WaitingResource {
 public:
  struct Kind {
    std::string type;  ///< the op that makes it
    std::vector<DType> dtypes;
    std::vector<PartialShape> shapes;  ///< empty, or one a component
    std::int64_t capacity = -1;        ///< -1: any number
    std::int64_t stays = 0;            ///< so many elements remain while the queue is open
    bool gives_fewer = true;           ///< of what is left to `take` with `fewer`
    bool pads = false;                 ///< batches are filled up where shapes differ
    bool operator==(const Kind&) const = default;
  };
  Queue(Kind kind, std::unique_ptr<QueueStore> store);

  const Kind& kind() const { return kind_; }
  std::string debug_string() const override;

  using PutDone = std::function<void(std::exception_ptr)>;
  using TakeDone = std::function<void(std::exception_ptr, std::vector<Tuple>)>;

  /// Puts all elements, as room comes; calls `done` once, perhaps before returning. A waiting
  /// request ends with CancelledError when `cancellation` says so or the queue is closed so.
  void put(std::vector<Tuple> elements, const Cancellation* cancellation, PutDone done);
  /// Takes `count` elements as they come; if the queue is closed before, fails with
  /// OutOfRangeError, or, with `fewer`, gives what there is if the kind does.
  void take(std::int64_t count, bool fewer, const Cancellation* cancellation, TakeDone done);
  /// Nothing can be put any more; what is in can be taken. Requests to put that wait go on, or are
  /// cancelled.
  void close(bool cancel_waiting_puts);
  std::int64_t size() const;
  bool closed() const;

  void cancel_request(std::uint64_t request) override;

 private:
  struct Put {
    std::uint64_t request;
    std::vector<Tuple> elements;
    std::size_t next = 0;
    PutDone done;
    RequestWatch watch = {};
  };
  struct Take {
    std::uint64_t request;
    std::int64_t count;
    bool fewer;
    std::vector<Tuple> got;
    TakeDone done;
    RequestWatch watch = {};
  };
  using Callbacks = std::vector<std::function<void()>>;

  void match(Callbacks& ready);
  bool serve(Put& put, Callbacks& ready);
  bool serve(Take& take, Callbacks& ready);
  void undo(Take& take);
  void drop(std::uint64_t request, Callbacks& ready);

  const Kind kind_;
  mutable std::mutex mutex_;
  std::unique_ptr<QueueStore> store_;
  std::list<Put> puts_;
  std::list<Take> takes_;
  bool closed_ = false;
  std::uint64_t requests_ = 0;
};

/// Stores: in order; at random by the two seeds; by the first component, smallest first.
std::unique_ptr<QueueStore> fifo_store();
std::unique_ptr<QueueStore> shuffled_store(std::uint64_t seed, std::uint64_t seed2);
std::unique_ptr<QueueStore> priority_store();

}  // namespace tandem::cpu
