#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <thread>

#include "tandem/core/thread_annotations.h"

namespace tandem::distribute {

/// How long what events of one kind lead to has taken of late.
class HandlingTime {
 public:
  void note(std::chrono::nanoseconds time);
  /// Whether others should not wait for it.
  bool is_long() const { return nanoseconds_.load(std::memory_order_relaxed) > kLong; }

 private:
  static constexpr std::int64_t kLong = 100'000;
  std::atomic<std::int64_t> nanoseconds_{0};
};

/// Something that has happened, such as an answer that has come, and what it leads to.
class PollerEvent {
 public:
  /// Is called once; without success where an operation has failed, or the queue has ended.
  virtual void complete(bool ok) = 0;
  HandlingTime& time() const { return time_; }

 protected:
  /// `time` is that of events of this kind, and outlives the queue.
  explicit PollerEvent(HandlingTime& time) : time_(time) {}
  ~PollerEvent() = default;

 private:
  HandlingTime& time_;
};

/// Events, for which threads wait. Thread-safe.
class EventQueue {
 public:
  virtual ~EventQueue() = default;
  /// Waits for the next event; false: there are no more. `ok` is what to complete it with.
  virtual bool next(PollerEvent*& event, bool& ok) = 0;
  /// From now on `next` returns what is left, and then false.
  virtual void shut_down() = 0;
};

/// Threads that wait for a queue's events and run what its events lead to, without handing it to
/// another thread. Waking a thread costs more than most events do, so as a rule there is one, which
/// waits again once it is done. Another one waits meanwhile
/// - where such events have taken long of late,
/// - where one takes long after all, which a thread that looks every millisecond sees,
/// - where the first one computes all the time.
/// A queue without events costs nothing.
class Poller {
 public:
  explicit Poller(std::unique_ptr<EventQueue> queue);
  /// Shuts the queue down and waits for the threads.
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

 private:
  static constexpr int kMaxThreads = 64;
  static constexpr int kSpareThreads = 2;

  struct Thread {
    /// When it began with an event, in nanoseconds; 0: it waits for one; kReplaced.
    std::atomic<std::int64_t> busy_since{0};
    pthread_t id = {};
    std::int64_t cpu_time = 0;  // of the watching thread
  };
  static constexpr std::int64_t kReplaced = -1;

  void poll(std::list<Thread>::iterator self);
  void watch();
  void look_at_threads();
  void begin_watching();
  void let_another_wait() TANDEM_REQUIRES(mutex_);
  void add_thread() TANDEM_REQUIRES(mutex_);
  bool wait_for_turn();

  const std::unique_ptr<EventQueue> queue_;
  std::atomic<bool> is_watched_{false};
  std::atomic<bool> is_busy_{false};
  std::atomic<std::uint64_t> num_events_{0};
  Mutex mutex_;
  std::condition_variable ended_, turn_, watched_;
  std::list<Thread> threads_ TANDEM_GUARDED_BY(mutex_);
  int waiting_ TANDEM_GUARDED_BY(mutex_) = 0;  // for the queue, or back there soon
  int parked_ TANDEM_GUARDED_BY(mutex_) = 0;   // for their turn
  int turns_ TANDEM_GUARDED_BY(mutex_) = 0;    // of parked ones that are to go on
  std::int64_t last_look_ TANDEM_GUARDED_BY(mutex_) = 0;
  int busy_looks_ TANDEM_GUARDED_BY(mutex_) = 0;
  bool closing_ TANDEM_GUARDED_BY(mutex_) = false;
  std::thread watcher_;
};

}  // namespace tandem::distribute
