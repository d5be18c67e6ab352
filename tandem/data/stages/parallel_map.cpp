#include "tandem/data/stages/parallel_map.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/data/autotune/tuner.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/observe/stage_counters.h"
#include "tandem/data/observe/stage_error.h"
#include "tandem/data/stages/handoff.h"
#include "tandem/data/stages/pause_scope.h"
#include "tandem/data/stages/threads.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::data {
namespace {

std::int64_t hand_over_time(const IterationContext& context) {
  constexpr std::int64_t kMax = 1'000'000'000'000;
  return std::min(context.options().autotune.handoff_ns.value_or(Handoff::kUsual), kMax);
}

// Nanoseconds since this was made, less those in which the thread waited for others.
class WorkTime {
 public:
  explicit WorkTime(bool wanted) : begin_(wanted ? clock_now() : 0) {}
  std::int64_t operator()() const { return clock_now() - begin_ - waited_(); }

 private:
  const Waited waited_;
  const std::int64_t begin_;
};

class ParallelMapIterator final : public IteratorBase {
 public:
  ParallelMapIterator(const DatasetBase& input, const ElementFn& fn, std::int64_t calls,
                      bool deterministic, const IterationContext& context, DrawPass draws,
                      const char* stage)
      : fn_(fn),
        stage_(stage),
        draws_(std::move(draws)),
        limit_(static_cast<std::size_t>(std::max<std::int64_t>(calls, 0))),
        deterministic_(deterministic),
        context_(context.below()),
        tuned_(
            tuned_pass(calls == kAutotune, context, {.kind = TunedStage::Kind::kMap, .key = &fn})),
        meter_(meter_of(context, tuned_)),
        input_(input.iterator(context_)),
        hand_over_(hand_over_time(context)),
        by_consumer_(tuned_ && tuned_->made_by_consumer()),
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
        names_.swap(slot->names);
        before_ = std::move(slot->before);
        before_is_inputs_ = false;
        out.clear();
        std::swap(out, slot->element);
        return true;
      }
      if (input_ended_ && slots_.empty()) return false;
      if (by_consumer_ && slots_.empty() && working_ == 0) {
        lock.unlock();
        alone_ = made_here_ = true;
        return make_here(out);
      }
      const StageMeter::Waiting waiting(meter_);
      const std::int64_t since = tuned_ ? clock_now() : 0;
      result_.wait(lock);
      if (tuned_) hand_over_.waited(clock_now() - since);
    }
  }

  Origin origin() const override {
    return joined(names_, before_is_inputs_ ? input_->origin() : before_);
  }

  void visit_state(StateArchive& state) override {
    std::unique_lock lock(mutex_);
    const PauseScope pause(pausing_, room_);
    quiet_.wait(lock, [this] { return working_ == 0; });
    visit_members(state);
  }

 private:
  void visit_members(StateArchive& state) {
    state.stage("ParallelMap");
    if (state.restoring()) alone_ = false;
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
      visit(state, slot->before);
    }
    input_->visit_state(state);
  }

  struct Slot {
    Element element;
    std::exception_ptr error;
    Element names;  // in what the function takes
    Origin before;  // of that
    std::int64_t number = 0;
    std::int64_t time = 0;  // that it took so far, if the stage is tuned; nanoseconds
    bool done = false;
  };

  // With the mutex held: what follows is made by the consumer, or by threads.
  void let_consumer_make(bool consumer) {
    by_consumer_ = consumer;
    tuned_.set_made_by_consumer(consumer);
    meter_.threads(consumer ? 0 : limit_, true);
    meter_.buffer(consumer ? 0 : 2 * limit_);
    room_.notify_all();
  }

  // The next element, by the consumer: no thread is at work, and none begins.
  bool make_here(Element& out) {
    const ThreadContext& mine = tandem::thread_context();
    if (mine.runtime == begun_.runtime && mine.name_scope == begun_.name_scope &&
        mine.draws == begun_.draws && (mine.cancellation || !begun_.cancellation)) {
      return make_timed(out);
    }
    // Makes the element as a thread would; but what stops the consumer, if anything does, stops it.
    ThreadContext context = begun_;
    if (mine.cancellation) context.cancellation = mine.cancellation;
    const ThreadContextScope scope(std::move(context));
    return make_timed(out);
  }

  bool make_timed(Element& out) {
    if (!hand_over_.wants_time()) return make(out);
    const WorkTime time(true);
    const auto count = [&] {
      const bool are_long = hand_over_.made_here(time());
      tuned_.tick();
      if (!are_long || refused_threads_) return;
      before_ = input_->origin();
      before_is_inputs_ = false;  // threads draw from it
      std::lock_guard lock(mutex_);
      let_consumer_make(false);
      alone_ = false;
    };
    bool made = false;
    try {
      made = make(out);
    } catch (...) {
      count();
      throw;
    }
    if (!made) return false;
    tuned_.made(out);
    count();
    return true;
  }

  bool make(Element& out) {
    if (!next_counted(*input_, out, number_)) {
      std::lock_guard lock(mutex_);
      end_input();
      return alone_ = false;
    }
    const std::int64_t number = number_++;
    note(out, names_);
    before_is_inputs_ = true;
    try {
      const DrawScope drawing(draws_, number);
      fn_.apply(out);
    } catch (...) {
      std::rethrow_exception(located(std::current_exception(), number, names_, input_->origin()));
    }
    return true;
  }

  // A stage that distinguishes no elements leaves it to its function to know what it takes.
  void note(const Element& element, Element& names) const {
    if (stage_) note_names(element, names);
  }

  std::exception_ptr located(std::exception_ptr error, std::int64_t number, const Element& names,
                             const Origin& before) const {
    if (!stage_) return error;
    return with_line(error, cat("in ", stage_, ", element ", number, origin_text(names, before)));
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
    if (by_consumer_) return;
    meter_.threads(limit_, static_cast<bool>(tuned_));
    meter_.buffer(2 * limit_);
    room_.notify_all();
    above_limit_.notify_all();
  }

  // Like start_threads. Without any thread the pass ends, since asking once more would not help;
  // but if the consumer made elements before, it goes on.
  std::size_t make_threads(std::size_t count) {
    input_ended_ = threads_.empty();
    try {
      start_threads(
          stage_ ? stage_ : "batch", count, [this](std::size_t number) { work(number); }, threads_);
    } catch (const ResourceExhaustedError& error) {
      if (!made_here_) throw;
      log(LogLevel::kWarning, cat(error.what(), " It goes on without."));
      refused_threads_ = true;
      let_consumer_make(true);
    }
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
      const WorkTime time(static_cast<bool>(tuned_));
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
      if (tuned_) slot->time += time();
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
    const WorkTime time(static_cast<bool>(tuned_));
    try {
      const StageMeter::Drawing drawing(meter_);
      ended = !input_->next(slot->element);
      note(slot->element, slot->names);
      slot->before = input_->origin();
    } catch (...) {
      slot->error = std::current_exception();
    }
    if (tuned_) slot->time = time();
    std::lock_guard lock(mutex_);
    if (ended) {
      if (tuned_ && !by_consumer_ && hand_over_.short_so_far()) tuned_.set_made_by_consumer(true);
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
  const ThreadContext begun_ = context_.thread_context();
  const TunedPass tuned_;
  const StageMeter meter_;

  // Threads take it before mutex_, to draw from input_. While by_consumer_ and none is at work,
  // input_ and number_ are the consumer's, and so is hand_over_, without any lock.
  std::mutex input_mutex_;
  std::unique_ptr<IteratorBase> input_;

  std::mutex mutex_;  // else guards all below
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
  Handoff hand_over_;
  bool by_consumer_ = false;  // elements are short: threads begin none

  StopSignal::Waker waker_;
  std::vector<std::thread> threads_;

  // The consumer's.
  bool alone_ = false;      // by_consumer_, and no thread is at work any more
  bool made_here_ = false;  // it has been alone
  bool refused_threads_ = false;
  Element names_;                  // in what the function took for the element last given
  Origin before_;                  // of that
  bool before_is_inputs_ = false;  // that is the input's, which the consumer alone draws from
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
