#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tandem/data/autotune/tuner.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/stage_counters.h"
#include "tandem/data/stages/interleave_lane.h"
#include "tandem/data/stages/pause_scope.h"
#include "tandem/data/stages/threads.h"

namespace tandem::data {
namespace {

// Threads make elements ahead; the consumer goes through the cycle as the serial stage does, so
// that the order is the same for any number of threads.
class ParallelInterleaveIterator final : public IteratorBase {
 public:
  ParallelInterleaveIterator(const DatasetBase& input, const DatasetFn& fn,
                             std::int64_t cycle_length, std::int64_t block_length,
                             std::int64_t calls, bool deterministic,
                             const IterationContext& context, DrawPass draws)
      : block_length_(block_length),
        limit_(static_cast<std::size_t>(std::clamp<std::int64_t>(block_length, 4, 32)) * 2),
        workers_(static_cast<std::size_t>(std::max<std::int64_t>(calls, 0))),
        deterministic_(deterministic),
        context_(context.below()),
        tuned_(tuned_pass(calls == kAutotune, context,
                          {.kind = TunedStage::Kind::kInterleave,
                           .key = &fn,
                           .most = static_cast<int>(cycle_length) + 1,
                           .buffer = cycle_length * static_cast<std::int64_t>(limit_),
                           .least_buffer = 2 * cycle_length})),
        meter_(meter_of(context, tuned_)),
        maker_{fn, "interleave", context_.repeating(), std::move(draws)},
        input_(input.iterator(context_)),
        cycle_(static_cast<std::size_t>(cycle_length)),
        waker_(context_.stop_signal(), [this] { wake_all(); }) {}

  ~ParallelInterleaveIterator() override {
    context_.stop_signal()->stop();
    for (std::thread& thread : threads_) thread.join();
  }

  bool next(Element& out) override {
    out.clear();
    tuned_.tick();
    std::unique_lock lock(mutex_);
    if (failed_) return false;
    if (threads_.empty() || tuned_) adjust();
    for (;;) {
      context_.check();
      look_ahead(lock);
      Lane* lane = cycle_[at_].get();
      if (!lane) {
        if (!upcoming_.empty()) {
          cycle_[at_] = std::move(upcoming_.front());
          upcoming_.pop_front();
          ++open_;
        } else if (open_ == 0) {
          return false;
        } else {
          advance();
        }
      } else if (!lane->ready.empty()) {
        return take(*lane, at_, lock, out);
      } else if (lane->ended) {
        close(at_);
        advance();
      } else if (const auto other = any_ready(); other != cycle_.size()) {
        return take(*cycle_[other], other, lock, out);
      } else {
        room_.notify_all();
        const StageMeter::Waiting waiting(meter_);
        result_.wait(lock);
      }
    }
  }

  Origin origin() const override { return origin_; }

  void visit_state(StateArchive& state) override {
    std::unique_lock lock(mutex_);
    const PauseScope pause(pausing_, room_);
    quiet_.wait(lock, [this] { return working_ == 0; });
    visit_members(state);
  }

 private:
  bool stopped() const { return context_.stop_signal()->stopped(); }

  // With the mutex held: threads above `workers_` finish what they do and pause.
  void adjust() {
    std::size_t workers = workers_, limit = limit_;
    if (tuned_) {
      workers = std::min(static_cast<std::size_t>(tuned_->threads.load()), most_);
      limit = std::max<std::size_t>(static_cast<std::size_t>(tuned_->buffer) / cycle_.size(), 2);
    }
    if (workers == workers_ && limit == limit_ && threads_.size() >= workers) return;
    workers_ = workers;
    limit_ = limit;
    failed_ = threads_.empty();  // without any, asking once more would not help
    if (start_threads(
            "interleave", workers, [this](std::size_t number) { work(number); }, threads_) <
        workers) {
      workers_ = most_ = threads_.size();
    }
    failed_ = false;
    meter_.threads(workers_, static_cast<bool>(tuned_));
    meter_.buffer(cycle_.size() * limit);
    room_.notify_all();
    above_limit_.notify_all();
  }

  void wake_all() {
    std::lock_guard lock(mutex_);
    room_.notify_all();
    above_limit_.notify_all();
    result_.notify_all();
  }

  void close(std::size_t at) {
    cycle_[at] = nullptr;
    --open_;
  }

  void advance() {
    in_block_ = 0;
    at_ = (at_ + 1) % cycle_.size();
  }

  // Keeps one dataset more in work than the cycle has.
  void look_ahead(std::unique_lock<std::mutex>& lock) {
    while (!input_ended_ && open_ + upcoming_.size() < cycle_.size() + 1) {
      auto lane = std::make_unique<Lane>();
      lock.unlock();
      bool ended = false;
      try {
        ended = !input_->next(lane->from);
      } catch (...) {
        lane->ready.push_back({{}, std::current_exception(), {}});
        lane->opened = lane->ended = lane->failed = true;
      }
      lock.lock();
      if (ended) {
        input_ended_ = true;
        return;
      }
      if (!lane->failed) lane->number = number_++;
      upcoming_.push_back(std::move(lane));
      room_.notify_one();
      context_.check();
    }
  }

  bool take(Lane& lane, std::size_t at, std::unique_lock<std::mutex>& lock, Element& out) {
    meter_.found(lane.ready.size(), limit_);
    Lane::Item item = std::move(lane.ready.front());
    lane.ready.pop_front();
    if (lane.failed) {
      close(at);  // its place goes to the next one
    } else {
      if (!item.error && at == at_ && ++in_block_ == block_length_) advance();
      if (lane.ready.size() <= limit_ / 2) room_.notify_one();
    }
    lock.unlock();
    if (item.error) std::rethrow_exception(item.error);
    std::swap(out, item.element);
    std::swap(origin_, item.origin);
    return true;
  }

  // Where the order does not matter.
  std::size_t any_ready() const { return deterministic_ ? cycle_.size() : first_ready(cycle_); }

  Lane* find_work() const {
    return pausing_ ? nullptr : lane_with_work(cycle_, at_, upcoming_, limit_);
  }

  void work(std::size_t number) {
    ThreadContextScope scope(context_.thread_context());
    std::unique_lock lock(mutex_);
    for (;;) {
      Lane* lane = nullptr;
      above_limit_.wait(lock, [&] { return stopped() || number < workers_; });
      room_.wait(
          lock, [&] { return stopped() || number >= workers_ || (lane = find_work()) != nullptr; });
      if (stopped()) return;
      if (!lane) continue;
      lane->busy = true;
      ++working_;
      while (!lane->ended && lane->ready.size() < limit_ && !pausing_ && !stopped()) {
        fill(*lane, lock);
      }
      lane->busy = false;
      if (--working_ == 0) quiet_.notify_one();
    }
  }

  // Opens the lane, or makes an element of it. The consumer drops no lane before it has ended.
  void fill(Lane& lane, std::unique_lock<std::mutex>& lock) {
    const bool opened = lane.opened;
    Element from = std::move(lane.from);
    lane.from.clear();
    lock.unlock();
    Lane::Item item;
    bool gave = false;
    try {
      if (!opened) {
        const StageMeter::Working working(meter_);
        lane.source.open(maker_, std::move(from), lane.number);
      } else {
        const StageMeter::Drawing drawing(meter_);
        gave = lane.source.next(item.element);
        if (gave) item.origin = lane.source.origin();
      }
    } catch (...) {
      item.error = std::current_exception();
    }
    if (opened && !gave && !item.error) lane.source.close();
    if (gave) tuned_.made(item.element);
    lock.lock();
    lane.opened = true;
    lane.failed = !opened && item.error;
    lane.ended = lane.failed || (opened && !gave && !item.error);
    if (gave || item.error) lane.ready.push_back(std::move(item));
    result_.notify_one();
  }

  void visit_members(StateArchive& state) {
    state.stage("ParallelInterleave");
    maker_.draws.visit_state(state);
    const std::int64_t cycle = state.length(cycle_.size());
    state.require(cycle == static_cast<std::int64_t>(cycle_.size()), "its cycle is another");
    open_ = 0;
    for (auto& lane : cycle_) {
      visit(state, lane, maker_);
      open_ += lane ? 1 : 0;
    }
    const std::int64_t count = state.length(upcoming_.size());
    if (state.restoring()) upcoming_.resize(static_cast<std::size_t>(count));
    for (auto& lane : upcoming_) {
      visit(state, lane, maker_);
      state.require(lane != nullptr, "a dataset is missing");
    }
    state.value(at_);
    state.value(in_block_);
    state.value(number_);
    state.value(input_ended_);
    state.require(at_ < cycle_.size(), "its place is outside the cycle");
    input_->visit_state(state);
  }

  const std::int64_t block_length_;
  std::size_t limit_;    // elements made ahead in a lane; guarded by mutex_, as is the next
  std::size_t workers_;  // threads that may work
  std::size_t most_ = std::numeric_limits<std::size_t>::max();  // threads that there can be
  bool failed_ = false;                                         // there is none
  const bool deterministic_;
  IterationContext context_;
  const TunedPass tuned_;
  const StageMeter meter_;
  NestedSource::Maker maker_;
  std::unique_ptr<IteratorBase> input_;  // used by the consumer alone, as are the next five
  std::size_t at_ = 0;                   // but this is read by the threads: guarded by mutex_
  std::int64_t in_block_ = 0;
  Origin origin_;  // of the element last given
  std::int64_t number_ = 0;
  bool input_ended_ = false;

  std::mutex mutex_;  // guards all below
  std::condition_variable room_;
  std::condition_variable above_limit_;
  std::condition_variable result_;
  std::condition_variable quiet_;
  Cycle cycle_;
  std::deque<std::unique_ptr<Lane>> upcoming_;
  std::size_t open_ = 0;
  std::size_t working_ = 0;  // threads that are at a lane
  bool pausing_ = false;     // the state is being saved

  StopSignal::Waker waker_;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<IteratorBase> make_parallel_interleave(
    const DatasetBase& input, const DatasetFn& fn, std::int64_t cycle_length,
    std::int64_t block_length, std::int64_t calls, bool deterministic,
    const IterationContext& context, DrawPass draws) {
  return std::make_unique<ParallelInterleaveIterator>(input, fn, cycle_length, block_length, calls,
                                                      deterministic, context, std::move(draws));
}

}  // namespace tandem::data
