#include "tandem/data/internal/parallel_map.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tandem/data/internal/hand_over.h"
#include "tandem/data/internal/origin.h"
#include "tandem/data/internal/pause_scope.h"
#include "tandem/data/internal/row_stage.h"
#include "tandem/data/internal/stage_counters.h"
#include "tandem/data/internal/stage_error.h"
#include "tandem/data/internal/threads.h"
#include "tandem/data/internal/tuner.h"

namespace tandem::data {
namespace {

// More threads would leave none for others on the machine.
constexpr std::int64_t kMostCalls = 4096;

class ParallelMapIterator final : public IteratorBase {
 public:
  ParallelMapIterator(const DatasetBase& input, const ElementFn& fn, std::int64_t calls,
                      bool deterministic, const IterationContext& context, DrawPass draws,
                      const char* stage)
      : fn_(fn),
        stage_(stage),
        draws_(std::move(draws)),
        limit_(static_cast<std::size_t>(std::clamp<std::int64_t>(calls, 0, kMostCalls))),
        deterministic_(deterministic),
        context_(context.below()),
        tuned_(
            tuned_pass(calls == kAutotune, context, {.kind = TunedStage::Kind::kMap, .key = &fn})),
        meter_(meter_of(context, tuned_)),
        input_(input.iterator(context_)),
        by_consumer_(tuned_ && tuned_->by_consumer.load(std::memory_order_relaxed)),
        waker_(context_.stop_signal(), [this] { wake_all(); }) {
    if (by_consumer_) meter_.threads(0, true);
  }

  ~ParallelMapIterator() override {
    context_.stop_signal()->stop();
    for (std::thread& thread : threads_) thread.join();
  }

  bool next(Element& out) override {
    if (alone_) {
      context_.check();
      return make_here(out);
    }
    tuned_.tick();
    std::unique_lock lock(mutex_);
    if (!by_consumer_) {
      if (!input_ended_ && (threads_.empty() || tuned_)) adjust_threads();
      if (meter_) meter_.found(count_ready(), 2 * limit_);
    }
    for (;;) {
      context_.check();
      const auto ready = find_ready();
      if (ready != slots_.end()) {
        const std::unique_ptr<Slot> slot = std::move(*ready);
        slots_.erase(ready);
        if (workers_waiting_ > 0) room_.notify_one();
        lock.unlock();
        if (slot->error) std::rethrow_exception(slot->error);
        origin_ = std::move(slot->before.empty() ? slot->names : slot->before);
        out.clear();
        std::swap(out, slot->element);
        return true;
      }
      if (input_ended_ && slots_.empty()) return false;
      if (by_consumer_ && slots_.empty() && working_ == 0) {
        lock.unlock();
        alone_ = true;
        return make_here(out);
      }
      const StageMeter::Waiting waiting(meter_);
      result_.wait(lock);
    }
  }

  const Element& origin() const override { return origin_; }

  void visit_state(StateArchive& state) override {
    std::unique_lock lock(mutex_);
    const PauseScope pause(pausing_, room_);
    quiet_.wait(lock, [this] { return working_ == 0; });
    visit_members(state);
  }

 private:
  void visit_members(StateArchive& state) {
    state.stage("ParallelMap");
    state.value(input_ended_);
    state.value(number_);
    draws_.visit_state(state);
    const std::int64_t count = state.length(slots_.size());
    for (std::int64_t i = 0; state.restoring() && i < count; ++i) {
      slots_.push_back(std::make_unique<Slot>());
      slots_.back()->done = true;
    }
    for (const auto& slot : slots_) {
      state.value(slot->error);
      state.value(slot->element);
      state.value(slot->names);
      state.value(slot->before);
    }
    input_->visit_state(state);
  }

  struct Slot {
    Element element;
    std::exception_ptr error;
    Element names;   // in what the function takes
    Element before;  // that this is made of
    std::int64_t number = 0;
    std::int64_t time = 0;  // that it took so far, if the stage is tuned; nanoseconds
    bool done = false;
  };

  // With the mutex held: what follows is made by the consumer, or by threads.
  void let_consumer_make(bool consumer) {
    by_consumer_ = consumer;
    tuned_->by_consumer.store(consumer, std::memory_order_relaxed);
    meter_.threads(consumer ? 0 : limit_, true);
    room_.notify_all();
  }

  // The next element, by the consumer: no thread is at work, and none begins.
  bool make_here(Element& out) {
    const bool timed = hand_over_.wants_time();
    const std::int64_t begin = timed ? clock_now() : 0;
    if (!next_counted(*input_, out, number_)) {
      std::lock_guard lock(mutex_);
      end_input();
      return alone_ = false;
    }
    const std::int64_t number = number_++;
    Element names;
    note_names(out, names);
    const Element& before = input_->origin();
    try {
      const DrawScope drawing(draws_, number);
      fn_.apply(out);
    } catch (...) {
      std::rethrow_exception(located(std::current_exception(), number, names, before));
    }
    origin_ = before.empty() ? std::move(names) : before;
    tuned_.made(out);
    if (!timed) return true;
    tuned_.tick();
    if (hand_over_.made_here(clock_now() - begin)) {
      std::lock_guard lock(mutex_);
      let_consumer_make(false);
      alone_ = false;
    }
    return true;
  }

  std::exception_ptr located(std::exception_ptr error, std::int64_t number, const Element& names,
                             const Element& before) const {
    if (!stage_) return error;
    return with_line(error, cat("in ", stage_, ", element ", number, told(names, before)));
  }

  std::deque<std::unique_ptr<Slot>>::iterator find_ready() {
    if (!deterministic_) {
      return std::find_if(slots_.begin(), slots_.end(),
                          [](const auto& slot) { return slot->done; });
    }
    return !slots_.empty() && slots_.front()->done ? slots_.begin() : slots_.end();
  }

  std::size_t count_ready() const {
    return static_cast<std::size_t>(
        std::count_if(slots_.begin(), slots_.end(), [](const auto& slot) { return slot->done; }));
  }

  // With the mutex held. Threads above the limit finish their element and pause.
  void adjust_threads() {
    const auto wanted = tuned_ ? static_cast<std::size_t>(tuned_->threads.load()) : limit_;
    const std::size_t limit = std::min(wanted, most_);
    if (limit == limit_ && threads_.size() >= limit) return;
    limit_ = limit;
    if (threads_.size() < limit && make_threads(limit) < limit) limit_ = most_ = threads_.size();
    meter_.threads(limit_, static_cast<bool>(tuned_));
    meter_.buffer(2 * limit_);
    room_.notify_all();
    above_limit_.notify_all();
  }

  // As start_threads. Without any the pass ends: asking once more would not help.
  std::size_t make_threads(std::size_t count) {
    input_ended_ = threads_.empty();
    start_threads(
        stage_ ? stage_ : "batch", count, [this](std::size_t number) { work(number); }, threads_);
    input_ended_ = false;
    return threads_.size();
  }

  void wake_all() {
    std::lock_guard lock(mutex_);
    room_.notify_all();
    result_.notify_all();
    above_limit_.notify_all();
  }

  void work(std::size_t number) {
    ThreadContextScope scope(context_.thread_context());
    while (Slot* slot = draw(number)) {
      const std::int64_t begin = tuned_ ? clock_now() : 0;
      if (!slot->error) {
        const StageMeter::Working working(meter_);
        try {
          const DrawScope drawing(draws_, slot->number);
          fn_.apply(slot->element);
        } catch (...) {
          slot->error = located(std::current_exception(), slot->number, slot->names, slot->before);
        }
      }
      tuned_.made(slot->element);
      if (tuned_) slot->time += clock_now() - begin;
      std::lock_guard lock(mutex_);
      slot->done = true;
      if (tuned_ && !by_consumer_ && hand_over_.made_apart(slot->time)) let_consumer_make(true);
      result_.notify_one();
      end_work();
    }
  }

  // With the mutex held.
  void end_work() {
    --working_;
    if (pausing_ && working_ == 0) quiet_.notify_one();
  }

  // The input's next element in a slot of the queue, or null when there is no more to do.
  Slot* draw(std::size_t number) {
    if (tuned_) {
      std::unique_lock lock(mutex_);
      above_limit_.wait(lock, [&] { return number < limit_ || over(); });
    }
    std::lock_guard input_lock(input_mutex_);
    {
      std::unique_lock lock(mutex_);
      ++workers_waiting_;
      room_.wait(lock, [this] {
        return over() || (slots_.size() < 2 * limit_ && !pausing_ && !by_consumer_);
      });
      --workers_waiting_;
      if (over()) return nullptr;
      ++working_;
    }
    auto slot = std::make_unique<Slot>();
    bool ended = false;
    const std::int64_t begin = tuned_ ? clock_now() : 0;
    try {
      const StageMeter::Drawing drawing(meter_);
      ended = !input_->next(slot->element);
      note_names(slot->element, slot->names);
      slot->before = input_->origin();
    } catch (...) {
      slot->error = std::current_exception();
    }
    if (tuned_) slot->time = clock_now() - begin;
    std::lock_guard lock(mutex_);
    if (ended) {
      end_input();
      end_work();
      result_.notify_one();
      return nullptr;
    }
    slot->number = number_++;
    slots_.push_back(std::move(slot));
    return slots_.back().get();
  }

  // With the mutex held.
  void end_input() {
    input_ended_ = true;
    room_.notify_all();
    above_limit_.notify_all();
  }

  // With the mutex held.
  bool over() const { return input_ended_ || context_.stop_signal()->stopped(); }

  const ElementFn& fn_;
  const char* const stage_;
  DrawPass draws_;
  std::size_t limit_;  // threads that may work; guarded by mutex_
  std::size_t most_ = std::numeric_limits<std::size_t>::max();  // threads that there can be
  const bool deterministic_;
  IterationContext context_;
  const TunedPass tuned_;
  const StageMeter meter_;

  // The mutex guards input_ and number_ among threads, which take it before mutex_; while
  // by_consumer_ and none is at work, they are the consumer's.
  std::mutex input_mutex_;
  std::unique_ptr<IteratorBase> input_;

  std::mutex mutex_;  // guards all below
  std::condition_variable room_;
  std::condition_variable above_limit_;
  std::condition_variable result_;
  std::deque<std::unique_ptr<Slot>> slots_;
  std::int64_t number_ = 0;
  std::condition_variable quiet_;
  bool pausing_ = false;     // the state is being saved
  std::size_t working_ = 0;  // threads that ask the input or call the function
  int workers_waiting_ = 0;
  bool input_ended_ = false;
  bool by_consumer_ = false;  // elements are short: threads begin none
  HandOver hand_over_;        // the consumer's while by_consumer_

  StopSignal::Waker waker_;
  std::vector<std::thread> threads_;

  // The consumer's.
  bool alone_ = false;  // by_consumer_, and no thread is at work any more
  Element origin_;      // of the element last given
};

}  // namespace

std::unique_ptr<IteratorBase> make_parallel_map(const DatasetBase& input, const ElementFn& fn,
                                                std::int64_t calls, bool deterministic,
                                                const IterationContext& context, DrawPass draws,
                                                const char* stage) {
  return std::make_unique<ParallelMapIterator>(input, fn, calls, deterministic, context,
                                               std::move(draws), stage);
}

}  // namespace tandem::data
