#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "tandem/data/iteration_context.h"
#include "tandem/data/observe/stage_counters.h"
#include "tandem/data/stages/pause_scope.h"
#include "tandem/data/stages/threads.h"
#include "tandem/data/state_archive.h"

namespace tandem::data {

/// The queue of a stage whose own thread makes items ahead of its consumer. The last member of the
/// stage's iterator: its destructor stops the thread, which uses the others.
template <class Item>
class AheadQueue {
 public:
  struct Plan {
    const char* stage;  ///< for errors
    std::size_t limit;  ///< items that may lie there
    /// Puts the next item into its argument; false at the end. Called by the thread.
    std::function<bool(Item&)> make;
    /// The limit from now on, where a full queue has run empty; not set: as it was. Called with the
    /// queue locked.
    std::function<std::size_t(std::size_t limit)> grow = {};
    /// The thread goes on when half of a full queue is free, and has then more than one item to
    /// make; else at once.
    bool by_halves = false;
  };

  /// `context` is the stage's, made by `below`; the queue stops it.
  AheadQueue(Plan plan, const IterationContext& context, const StageMeter& meter)
      : plan_(std::move(plan)),
        limit_(plan_.limit),
        context_(context),
        meter_(meter),
        waker_(context_.stop_signal(), [this] { stop(); }) {
    meter_.buffer(limit_);
  }
  ~AheadQueue() {
    context_.stop_signal()->stop();
    if (thread_.joinable()) thread_.join();
  }
  AheadQueue(const AheadQueue&) = delete;
  AheadQueue& operator=(const AheadQueue&) = delete;

  /// Waits for the next item; false at the end. The first call starts the thread. `limit` replaces
  /// the queue's; 0: as it is.
  bool take(Item& out, std::size_t limit = 0) {
    if (failed_) return false;
    if (!thread_.joinable()) start();
    std::unique_lock lock(mutex_);
    if (limit != 0) change_limit(limit);
    meter_.found(items_.size(), limit_);
    if (items_.empty() && !ended_) wait_for_item(lock);
    context_.check();
    if (items_.empty()) return false;
    out = std::move(items_.front());
    items_.pop_front();
    if (producer_waits_ && items_.size() <= low()) room_.notify_one();
    return true;
  }

  /// Drops what is there: no more is to come.
  void end() {
    std::lock_guard lock(mutex_);
    ended_ = true;
    items_.clear();
    room_.notify_all();
  }

  /// Part of the stage's state: calls `visit` with the thread at rest. `visit` calls visit_items.
  template <class Visit>
  void paused(Visit visit) {
    std::unique_lock lock(mutex_);
    const PauseScope pause(pausing_, room_);
    quiet_.wait(lock, [this] { return !producing_; });
    visit();
  }
  void visit_ended(StateArchive& state) { state.value(ended_); }
  template <class VisitItem>
  void visit_items(StateArchive& state, VisitItem visit_item) {
    const std::int64_t count = state.length(items_.size());
    if (state.restoring()) items_.resize(static_cast<std::size_t>(count));
    for (Item& item : items_) visit_item(item);
  }

 private:
  void start() {
    failed_ = true;  // asking once more, as ignore_errors does, would not help
    thread_ = start_thread(plan_.stage, [this] { produce(); });
    failed_ = false;
  }

  // With the mutex held, as what follows.
  void change_limit(std::size_t limit) {
    if (limit == limit_) return;
    limit_ = limit;
    meter_.buffer(limit);
    room_.notify_one();
  }
  std::size_t low() const { return plan_.by_halves ? limit_ / 2 : limit_ - 1; }
  bool over() const { return ended_ || stopped_; }

  void wait_for_item(std::unique_lock<std::mutex>& lock) {
    // A queue that has been full and runs empty is too small for the swings of its two sides.
    if (was_full_ && plan_.grow) change_limit(plan_.grow(limit_));
    was_full_ = false;
    consumer_waits_ = true;
    const StageMeter::Waiting waiting(meter_);
    item_.wait(lock, [this] { return !items_.empty() || over(); });
    consumer_waits_ = false;
  }

  void produce() {
    ThreadContextScope scope(context_.thread_context());
    while (wait_for_room()) {
      Item item;
      const bool made = plan_.make(item);
      std::lock_guard lock(mutex_);
      producing_ = false;
      if (pausing_) quiet_.notify_one();
      if (!made) {
        ended_ = true;
      } else if (!ended_) {
        items_.push_back(std::move(item));
      }
      if (consumer_waits_) item_.notify_one();
    }
  }

  // False if nothing more is wanted.
  bool wait_for_room() {
    std::unique_lock lock(mutex_);
    const bool full = items_.size() >= limit_;
    was_full_ = was_full_ || full;
    producer_waits_ = true;
    room_.wait(lock, [&] {
      return over() || (!pausing_ && (full ? items_.size() <= low() : items_.size() < limit_));
    });
    producer_waits_ = false;
    producing_ = !over();
    return producing_;
  }

  void stop() {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    room_.notify_all();
    item_.notify_all();
  }

  const Plan plan_;
  std::size_t limit_;  // guarded by mutex_
  IterationContext context_;
  const StageMeter meter_;
  bool failed_ = false;  // there is no thread; the consumer's

  std::mutex mutex_;  // guards all below
  std::condition_variable room_;
  std::condition_variable item_;
  std::condition_variable quiet_;
  std::deque<Item> items_;
  bool pausing_ = false;    // the state is being saved
  bool producing_ = false;  // the thread is making an item
  bool ended_ = false;
  bool stopped_ = false;
  bool was_full_ = false;
  bool producer_waits_ = false;
  bool consumer_waits_ = false;

  StopSignal::Waker waker_;
  std::thread thread_;
};

}  // namespace tandem::data
