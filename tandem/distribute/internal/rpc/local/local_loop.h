#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/local/shared_memory.h"
#include "tandem/distribute/internal/rpc/poller.h"

namespace tandem::distribute {

/// What a loop waits for: a socket.
class EventSource {
 public:
  virtual ~EventSource() = default;
  virtual int descriptor() const = 0;
  /// There is something to read or room to write, or the peer has gone. Must not block, and leaves
  /// to `LocalLoop::post` what takes time. Called again after `LocalLoop::arm` only.
  virtual void on_ready() = 0;
};

/// The threads that wait for the local connections of a network, and of the server beside it, and
/// run what their frames lead to. See Poller. Thread-safe.
class LocalLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Timer = std::uint64_t;

  /// Shares at most so much memory with peers. Throws UnavailableError if the system has no
  /// descriptors or threads for it.
  explicit LocalLoop(std::size_t memory_limit);
  /// Calls `stop`.
  ~LocalLoop();

  /// Waits for a source, until `remove`. False if the system has no room for it.
  bool add(const std::shared_ptr<EventSource>& source);
  /// Has the source called once more when it can be read, or written if it `wants_to_write`.
  void arm(const EventSource& source, bool wants_to_write);
  void remove(const EventSource& source);

  /// How long what answers to a method, or calls of one, lead to takes. As long as this lives.
  HandlingTime& time_of(std::string_view what);
  /// Has a thread run a function; `time` is that of its kind. It runs in any case: once `stop` has
  /// ended the threads, on the caller's.
  void post(HandlingTime& time, std::function<void()> run);
  /// Has a thread run a function that takes no time.
  void post(std::function<void()> run) { post(bookkeeping_, std::move(run)); }
  /// Runs the function, which takes no time, then, unless it is cancelled before.
  Timer at(Clock::time_point time, std::function<void()> run);
  void cancel(Timer timer);

  /// Runs what has been posted, and ends the threads. Timers that have not gone off are dropped;
  /// later, sources and timers are not taken.
  void stop();

  SharedMemoryLimit& memory() { return memory_; }
  /// Calls that the loop's server has taken.
  std::atomic<std::uint64_t>& num_calls() { return num_calls_; }
  /// Connections of clients that a server of the loop has.
  std::atomic<std::size_t>& num_connections() { return num_connections_; }

 private:
  class Queue;
  class QueueOfPoller;
  SharedMemoryLimit memory_;
  std::atomic<std::uint64_t> num_calls_{0};
  std::atomic<std::size_t> num_connections_{0};
  HandlingTime bookkeeping_;
  const std::shared_ptr<Queue> queue_;
  Mutex mutex_;
  std::map<std::string, HandlingTime, std::less<>> times_ TANDEM_GUARDED_BY(mutex_);
  std::unique_ptr<Poller> poller_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
