#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tandem/data/autotune/idle_time.h"
#include "tandem/data/element.h"
#include "tandem/runtime/profiler.h"

namespace tandem::data {

/// Nanoseconds of the steady clock.
inline std::int64_t nanoseconds(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}
inline std::int64_t clock_now() { return nanoseconds(std::chrono::steady_clock::now()); }

/// What the threads of an iteration add up for one stage. Stages with threads of their own get
/// theirs from `IterationContext::counters` and count what only they know of: see StageMeter.
struct StageCounters {
  using Count = std::atomic<std::int64_t>;
  /// What its work is called in profiles, as tf.data has it: "Iterator::Root::Prefetch::Batch".
  std::string traced_as;
  Count elements{0};
  Count bytes{0};
  Count work{0};          ///< nanoseconds, as the others
  Count looked_at{0};     ///< of its work, for how long it was looked whether threads were idle
  Count idle{0};          ///< how much of that they were
  Count waited_for{0};    ///< by consumers
  Count input{0};         ///< its threads, at work in inputs
  Count input_waited{0};  ///< its threads, for other threads
  Count input_looked_at{0}, input_idle{0};  ///< as those of work
  Count threads{0};
  Count tuned{0};
  Count buffer_size{0};
  Count cycle_length{0};
  Count fill{0};  ///< sum of buffer fills, each out of 1,000, at `looks` elements
  Count looks{0};
  Count files{0};

  static void add(Count& count, std::int64_t by) { count.fetch_add(by, std::memory_order_relaxed); }
  static void set(Count& count, std::int64_t to) { count.store(to, std::memory_order_relaxed); }
  static std::int64_t get(const Count& count) { return count.load(std::memory_order_relaxed); }
};

/// The clock of one thread: what is not the work of the stage it is in; and which count its time
/// goes to, when that is over. Only that may be looked at from other threads.
struct ThreadTimes {
  ThreadTimes();
  ~ThreadTimes();
  ThreadTimes(const ThreadTimes&) = delete;
  ThreadTimes& operator=(const ThreadTimes&) = delete;

  std::int64_t apart = 0;   ///< within the innermost observed `next`: in inputs, and waiting
  std::int64_t waited = 0;  ///< for other threads of pipelines, ever

  std::atomic<const StageCounters::Count*> growing{nullptr};
  std::atomic<std::int64_t> since{0};
  /// Returns where the time went until now.
  const StageCounters::Count* grow(const StageCounters::Count* count, std::int64_t now) {
    const StageCounters::Count* before = growing.load(std::memory_order_relaxed);
    since.store(now, std::memory_order_relaxed);
    growing.store(count, std::memory_order_release);
    return before;
  }
};
/// The calling thread's.
ThreadTimes& thread_times();

/// Calls `found(count, since)` for each thread that is at something now.
void visit_growing(const std::function<void(const StageCounters::Count*, std::int64_t)>& found);

/// How long the calling thread has waited for other threads of pipelines since this was made.
class Waited {
 public:
  Waited() : before_(thread_times().waited) {}
  std::int64_t operator()() const { return thread_times().waited - before_; }

 private:
  std::int64_t before_;
};

/// Bytes of an element's tensors.
std::int64_t bytes_of(const Element& element);

/// The time since this was made, and whether the thread was idle.
class StageTimer {
 public:
  /// The time will be added to `count`.
  explicit StageTimer(const StageCounters::Count& count)
      : made_(clock_now()),
        outer_(thread_times().grow(&count, made_)),
        idle_(made_),
        begin_(idle_.known() ? clock_now() : made_) {}
  /// To be called once.
  std::int64_t end() {
    const std::int64_t now = clock_now(), time = now - begin_;
    thread_times().grow(outer_, now);
    idle_.end(time);
    whole_ = idle_.known() ? clock_now() - made_ : time;
    return time;
  }
  /// After the end: with the time that looking took.
  std::int64_t whole() const { return whole_; }
  const IdleTime& idle() const { return idle_; }

 private:
  const std::int64_t made_;
  const StageCounters::Count* const outer_;
  IdleTime idle_;
  const std::int64_t begin_;
  std::int64_t whole_ = 0;
};

/// Counts `time` at work, of which a thread was idle for so long, if that is known.
inline void count_work(StageCounters& counters, std::int64_t time, const IdleTime& idle) {
  StageCounters::add(counters.work, time);
  if (!idle.known()) return;
  StageCounters::add(counters.looked_at, time);
  StageCounters::add(counters.idle, std::min(idle.own(), time));
}

/// What a stage reports of its threads; all of it costs one branch where statistics are not
/// enabled.
class StageMeter {
 public:
  StageMeter() = default;
  explicit StageMeter(StageCounters* counters) : counters_(counters) {}
  explicit operator bool() const { return counters_ != nullptr; }

  void threads(std::size_t count, bool tuned) const {
    if (!counters_) return;
    StageCounters::set(counters_->threads, static_cast<std::int64_t>(count));
    StageCounters::set(counters_->tuned, tuned ? 1 : 0);
  }
  void buffer(std::size_t size) const {
    if (counters_) StageCounters::set(counters_->buffer_size, static_cast<std::int64_t>(size));
  }
  /// An element was asked for while `ready` of `size` lay there.
  void found(std::size_t ready, std::size_t size) const {
    if (!counters_ || size == 0) return;
    StageCounters::add(counters_->fill, static_cast<std::int64_t>(1000 * ready / size));
    StageCounters::add(counters_->looks, 1);
  }

  /// Around the waiting of the consumer; ThreadTimes::waited is always counted.
  class Waiting {
   public:
    explicit Waiting(const StageMeter& meter) : counters_(meter.counters_), begin_(clock_now()) {
      if (counters_) outer_ = thread_times().grow(&counters_->waited_for, begin_);
    }
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    StageCounters* counters_;
    std::int64_t begin_;
    const StageCounters::Count* outer_ = nullptr;
  };
  /// Around what one of the stage's threads does for an element itself.
  class Working {
   public:
    explicit Working(const StageMeter& meter) : counters_(meter.counters_) {
      if (!counters_) return;
      scope_.emplace(counters_->traced_as);
      timer_.emplace(counters_->work);
    }
    ~Working();
    Working(const Working&) = delete;
    Working& operator=(const Working&) = delete;

   private:
    StageCounters* counters_;
    std::optional<profiler::Scope> scope_;
    std::optional<StageTimer> timer_;
  };
  /// Around what one of the stage's threads does in an input's `next`.
  class Drawing {
   public:
    explicit Drawing(const StageMeter& meter)
        : counters_(meter.counters_), waited_(counters_ ? thread_times().waited : 0) {
      if (counters_) timer_.emplace(counters_->input);
    }
    ~Drawing();
    Drawing(const Drawing&) = delete;
    Drawing& operator=(const Drawing&) = delete;

   private:
    StageCounters* counters_;
    std::int64_t waited_;
    std::optional<StageTimer> timer_;
  };

 private:
  StageCounters* counters_ = nullptr;
};

}  // namespace tandem::data
