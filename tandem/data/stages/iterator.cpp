#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/data/autotune/host_scope.h"
#include "tandem/data/autotune/tuner.h"
#include "tandem/data/dataset.h"
#include "tandem/data/dataset_base.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/graph_ops/task_dataset.h"
#include "tandem/data/observe/observer.h"
#include "tandem/runtime/eager/pending_call.h"
#include "tandem/runtime/profiler.h"
#include "tandem/runtime/runtime.h"

namespace tandem::data {
namespace {

// Nanoseconds of the steady clock; 0: nothing was given to any.
std::int64_t accelerators_worked_until() {
  if (!thread_context().runtime && !Runtime::default_exists()) return 0;
  return Runtime::current().pending_calls()->ahead_until();
}

// Ends the iteration with `cancellation`, which may be null or have come already.
CancellationCallback stop_with(const std::shared_ptr<const Cancellation>& cancellation,
                               std::shared_ptr<StopSignal> signal) {
  if (!cancellation) return {};
  CancellationCallback watch(cancellation, [signal] { signal->stop(); });
  if (!watch.registered()) signal->stop();
  return watch;
}

// What an iterator does from its beginning, or from a saved state.
struct Pass {
  DatasetRef dataset;
  std::shared_ptr<Observer> observer;  // or null
  IterationContext context;
  const std::shared_ptr<const Cancellation> begun_under;  // or null
  CancellationCallback watch;
  const Cancellation* consumers;         // cancellation, as of the last call
  CancellationCallback consumers_watch;  // where it is another one than that of the beginning
  std::unique_ptr<IteratorBase> iterator;
  bool ended = false;

  // Where the profiler records, it reports the stages.
  Pass(DatasetRef from, bool observe)
      : dataset(std::move(from)),
        observer(observe || profiler::running() ? std::make_shared<Observer>() : nullptr),
        context(observer),
        begun_under(context.thread_context().cancellation),
        consumers(begun_under.get()) {
    watch = stop_with(begun_under, context.stop_signal());
    const HostScope host;
    iterator = dataset->iterator(context);
  }
  ~Pass() { context.stop_signal()->stop(); }

  bool next(Element& out) {
    if (ended) return false;
    try {
      obey(thread_context().cancellation);
      const HostScope host;
      if (watched() ? watched_next(out) : iterator->next(out)) return true;
    } catch (const CancelledError& error) {
      if (!consumers || consumers->reason() != Code::kDeadlineExceeded) throw;
      throw DeadlineExceededError(
          cat("The deadline passed while the next element was made. ", error.what()));
    }
    ended = true;
    out.clear();
    if (observer) observer->ended();
    context.finish();
    return false;
  }

  // A cancellation, of the thread that began the iteration or of one that asks it for an element,
  // ends it for good: elements under way in its stages may be lost.
  void obey(const std::shared_ptr<const Cancellation>& cancellation) {
    if (cancellation.get() != consumers) {
      consumers = begun_under.get();
      consumers_watch.reset();
      if (cancellation != begun_under)
        consumers_watch = stop_with(cancellation, context.stop_signal());
      consumers = cancellation.get();
    }
    if (consumers && consumers->cancelled()) context.stop_signal()->stop();
    context.check();
  }

  bool watched() const { return observer || context.tuner_if_any() || profiler::running(); }

  bool watched_next(Element& out) {
    const Waited waited;
    const auto begin = std::chrono::steady_clock::now();
    if (observer) observer->asked(nanoseconds(begin));
    bool gave = false;
    try {
      gave = iterator->next(out);
    } catch (...) {
      record_call(begin, waited, false);
      throw;
    }
    record_call(begin, waited, gave);
    return gave;
  }

  void record_call(std::chrono::steady_clock::time_point begin, const Waited& waited, bool gave) {
    const auto end = std::chrono::steady_clock::now();
    // An accelerator that still worked on what it was given did not wait for input, though the
    // thread that feeds it did.
    const std::int64_t worked = std::clamp<std::int64_t>(
        accelerators_worked_until() - nanoseconds(begin), 0, nanoseconds(end) - nanoseconds(begin));
    if (observer) observer->next(nanoseconds(begin), nanoseconds(end), worked, gave);
    if (Tuner* tuner = context.tuner_if_any())
      tuner->consumed(nanoseconds(end), std::max<std::int64_t>(waited() - worked, 0));
    if (!profiler::running()) return;
    profiler::record_input(observer ? observer->name() : dataset->name(),
                           observer ? observer->recent_shares() : "",
                           begin + std::chrono::nanoseconds(worked), end);
  }

  void visit(StateArchive& archive) {
    ThreadContextScope scope(context.thread_context());
    archive.stage("Iterator");
    archive.value(ended);
    context.visit_state(archive);
    iterator->visit_state(archive);
  }
};

}  // namespace

// Threads take turns. What only looks at the pass need not wait for one that draws an element.
struct Iterator::State {
  std::mutex turn;
  std::mutex exchange;
  std::shared_ptr<Pass> pass;  // changed under both, so either will do to read it

  State(DatasetRef dataset, bool observe)
      : pass(std::make_shared<Pass>(std::move(dataset), observe)) {}

  std::unique_lock<std::mutex> take_turn() {
    std::unique_lock lock(turn, std::try_to_lock);
    if (!lock) {
      // What stops this thread's calls stops the one that it waits for.
      const CancellationCallback watch =
          stop_with(thread_context().cancellation, now()->context.stop_signal());
      lock.lock();
    }
    return lock;
  }
  std::shared_ptr<Pass> now() {
    std::lock_guard lock(exchange);
    return pass;
  }
};

Iterator::Iterator(std::shared_ptr<const DatasetBase> dataset, IteratorOptions options)
    : state_(std::make_unique<State>(dataset_for_scope(base_of(Dataset(std::move(dataset)))),
                                     options.observe)) {}
Iterator::Iterator(Iterator&&) noexcept = default;
Iterator& Iterator::operator=(Iterator&&) noexcept = default;
Iterator::~Iterator() = default;

Iterator::State& Iterator::state() const {
  if (!state_) throw FailedPreconditionError("An iterator was used after it was moved from.");
  return *state_;
}

bool Iterator::next(Element& out) {
  const auto turn = state().take_turn();
  Pass& pass = *state_->pass;
  const ThreadContext& thread = thread_context();
  if (!thread.trace && thread.recorders.empty()) return pass.next(out);
  // The pipeline is no part of what the caller traces or differentiates, but ends with it.
  ThreadContext context = pass.context.thread_context();
  if (thread.cancellation) context.cancellation = thread.cancellation;
  const ThreadContextScope scope(std::move(context));
  return pass.next(out);
}

std::string Iterator::save() {
  const auto turn = state().take_turn();
  state_->pass->context.check();
  StateArchive archive;
  state_->pass->visit(archive);
  return archive.bytes();
}

void Iterator::restore(std::string_view saved) {
  const auto turn = state().take_turn();
  StateArchive archive(saved);
  Pass& old = *state_->pass;
  auto fresh = std::make_shared<Pass>(old.dataset, old.observer != nullptr);
  StateArchive before;
  fresh->visit(before);
  try {
    fresh->visit(archive);
    archive.finish();
  } catch (...) {
    // Datasets have taken over random state that is not theirs.
    StateArchive undo(before.bytes());
    Pass(old.dataset, false).visit(undo);
    throw;
  }
  if (const Tuner* tuner = old.context.tuner_if_any())
    fresh->context.tuner().reserve_cores(tuner->left_cores());
  std::lock_guard lock(state_->exchange);
  state_->pass.swap(fresh);
}

PipelineStats Iterator::stats() const {
  const std::shared_ptr<Pass> pass = state().now();
  if (!pass->observer) {
    throw FailedPreconditionError(
        "Statistics are not enabled for this iteration. Begin it with dataset.iterator({.observe = "
        "true}).");
  }
  return pass->observer->stats();
}

std::shared_ptr<const Observer> observer_of(const Iterator& iterator) {
  return iterator.state().now()->observer;
}

void Iterator::reserve_cores(std::int64_t cores) {
  const std::shared_ptr<Pass> pass = state().now();
  if (cores < 0) throw InvalidArgumentError(cat("`cores` must be >= 0, got ", cores, "."));
  pass->context.tuner().reserve_cores(cores);
}

Element Iterator::next() {
  Element element;
  if (!next(element)) {
    throw OutOfRangeError("End of sequence: the iterator has no more elements. Begin another one.");
  }
  return element;
}

}  // namespace tandem::data
