#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "tandem/data/dataset.h"
#include "tandem/data/internal/pause_scope.h"
#include "tandem/data/internal/row_stage.h"
#include "tandem/data/internal/stage_counters.h"
#include "tandem/data/internal/threads.h"
#include "tandem/data/internal/tuner.h"

namespace tandem::data {
namespace {

// Limits of a buffer whose size is found while running.
constexpr std::size_t kFirstLimit = 2;
constexpr std::size_t kLastLimit = 64;

class PrefetchIterator final : public IteratorBase {
 public:
  PrefetchIterator(const DatasetBase& input, std::int64_t buffer_size,
                   const IterationContext& context)
      : grows_(buffer_size == kAutotune),
        limit_(grows_ ? kFirstLimit : static_cast<std::size_t>(buffer_size)),
        context_(context.below()),
        tuned_(tuned_pass(grows_ && context.threads(kAutotune) == kAutotune, context,
                          {.kind = TunedStage::Kind::kPrefetch, .key = &input})),
        meter_(meter_of(context, tuned_)),
        input_(input.iterator(context_)),
        waker_(context_.stop_signal(), [this] { wake_all(); }) {
    meter_.threads(1, grows_);
    meter_.buffer(limit_);
  }

  ~PrefetchIterator() override {
    context_.stop_signal()->stop();
    if (thread_.joinable()) thread_.join();
  }

  bool next(Element& out) override {
    // The memory of the element that `out` held is free before the next one is waited for.
    out.clear();
    if (failed_) return false;
    if (!thread_.joinable()) start();
    tuned_.tick();
    std::unique_lock lock(mutex_);
    if (tuned_) adopt_limit();
    meter_.found(ready_.size(), limit_);
    if (ready_.empty() && !ended_) wait_for_element(lock);
    context_.check();
    if (ready_.empty()) return false;
    Item item = std::move(ready_.front());
    ready_.pop_front();
    // Woken when half the buffer is free, the producer has more than one element to make.
    if (producer_waits_ && ready_.size() <= limit_ / 2) room_.notify_one();
    lock.unlock();
    if (item.error) std::rethrow_exception(item.error);
    std::swap(out, item.element);
    return true;
  }

  void visit_state(StateArchive& state) override {
    std::unique_lock lock(mutex_);
    const PauseScope pause(pausing_, room_);
    quiet_.wait(lock, [this] { return !producing_; });
    visit_members(state);
  }

 private:
  void start() {
    failed_ = true;  // asking once more, as ignore_errors does, would not help
    thread_ = start_thread("prefetch", [this] { produce(); });
    failed_ = false;
  }

  void visit_members(StateArchive& state) {
    state.stage("Prefetch");
    state.value(ended_);
    const std::int64_t count = state.length(ready_.size());
    if (state.restoring()) ready_.resize(static_cast<std::size_t>(count));
    for (Item& item : ready_) {
      state.value(item.error);
      state.value(item.element);
    }
    input_->visit_state(state);
  }

  struct Item {
    Element element;
    std::exception_ptr error;
  };

  // With the mutex held: other stages may need the memory.
  void adopt_limit() {
    const auto limit = static_cast<std::size_t>(tuned_->buffer.load());
    if (limit == limit_) return;
    limit_ = limit;
    meter_.buffer(limit);
  }

  void wait_for_element(std::unique_lock<std::mutex>& lock) {
    // A buffer that has been full and runs empty is too small for the swings of its two sides.
    if (grows_ && was_full_ && limit_ < kLastLimit) {
      limit_ = tuned_ ? static_cast<std::size_t>(tuned_.larger_buffer()) : 2 * limit_;
      meter_.buffer(limit_);
    }
    was_full_ = false;
    if (producer_waits_) room_.notify_one();
    consumer_waits_ = true;
    const StageMeter::Waiting waiting(meter_);
    element_.wait(lock, [this] { return !ready_.empty() || ended_ || stopped(); });
    consumer_waits_ = false;
  }

  void produce() {
    ThreadContextScope scope(context_.thread_context());
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        room_.wait(lock, [this] { return !pausing_ || stopped(); });
        if (stopped()) return;
        producing_ = true;
      }
      Item item;
      bool ended = false;
      try {
        const StageMeter::Drawing drawing(meter_);
        ended = !input_->next(item.element);
      } catch (...) {
        item.error = std::current_exception();
      }
      tuned_.made(item.element);
      std::unique_lock lock(mutex_);
      producing_ = false;
      if (pausing_) quiet_.notify_one();
      if (ended) {
        ended_ = true;
      } else {
        ready_.push_back(std::move(item));
      }
      if (consumer_waits_) element_.notify_one();
      if (ended) return;
      if (ready_.size() >= limit_) {
        was_full_ = true;
        producer_waits_ = true;
        room_.wait(lock, [this] { return ready_.size() <= limit_ / 2 || stopped(); });
        producer_waits_ = false;
      }
      if (stopped()) return;
    }
  }

  bool stopped() const { return context_.stop_signal()->stopped(); }

  void wake_all() {
    std::lock_guard lock(mutex_);
    room_.notify_all();
    element_.notify_all();
  }

  const bool grows_;
  std::size_t limit_;  // guarded by mutex_
  IterationContext context_;
  const TunedPass tuned_;
  const StageMeter meter_;
  std::unique_ptr<IteratorBase> input_;  // used by the thread alone
  bool failed_ = false;                  // there is no thread

  std::mutex mutex_;  // guards all below
  std::condition_variable room_;
  std::condition_variable element_;
  std::condition_variable quiet_;
  bool pausing_ = false;    // the state is being saved
  bool producing_ = false;  // the thread is asking its input
  std::deque<Item> ready_;
  bool ended_ = false;
  bool was_full_ = false;
  bool producer_waits_ = false;
  bool consumer_waits_ = false;

  StopSignal::Waker waker_;
  std::thread thread_;
};

class PrefetchDataset final : public UnaryDataset {
 public:
  PrefetchDataset(DatasetRef input, std::int64_t buffer_size)
      : UnaryDataset(std::move(input)), buffer_size_(buffer_size) {}
  std::string name() const override { return "Prefetch"; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<PrefetchIterator>(input(), buffer_size_, context);
  }

 private:
  const std::int64_t buffer_size_;
};

}  // namespace

Dataset Dataset::prefetch(std::int64_t buffer_size) const {
  if (buffer_size < kAutotune) {
    throw InvalidArgumentError(
        cat("buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning, got ",
            buffer_size, "."));
  }
  base_of(*this);
  return buffer_size == 0 ? *this : make_dataset<PrefetchDataset>(base_, buffer_size);
}

}  // namespace tandem::data
