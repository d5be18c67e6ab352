#include "tandem/data/dataset.h"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <utility>

#include "tandem/data/dataset_base.h"
#include "tandem/data/internal/cancel_watch.h"
#include "tandem/data/internal/observer.h"
#include "tandem/data/internal/row_stage.h"
#include "tandem/data/internal/tuner.h"
#include "tandem/runtime/profiler.h"

namespace tandem::data {

IteratorBase::~IteratorBase() = default;
const Element& IteratorBase::origin() const {
  static const Element nothing;
  return nothing;
}

std::size_t IteratorBase::next_rows(std::span<std::int64_t>) {
  throw InternalError("next_rows was called on an iterator without rows");
}
void IteratorBase::visit_state(StateArchive&) {
  throw UnimplementedError(
      "A stage of this pipeline cannot be saved: its iterator does not override visit_state.");
}
DatasetBase::~DatasetBase() = default;
const Names& DatasetBase::names() const {
  static const Names none;
  return none;
}
bool DatasetBase::reads_files() const {
  const auto all = inputs();
  return !all.empty() && std::all_of(all.begin(), all.end(),
                                     [](const DatasetBase* input) { return input->reads_files(); });
}
bool DatasetBase::can_shard_sources() const {
  const auto all = inputs();
  return !all.empty() && std::all_of(all.begin(), all.end(), [](const DatasetBase* input) {
    return input->can_shard_sources();
  });
}

struct Iterator::State {
  DatasetRef dataset;
  std::shared_ptr<Observer> observer;  // or null
  IterationContext context;
  const std::shared_ptr<const Cancellation> begun_under;  // or null
  CancelWatch watch;
  const Cancellation* consumers;  // cancellation, as of the last call
  CancelWatch consumers_watch;    // where it is another one than that of the beginning
  std::unique_ptr<IteratorBase> iterator;
  bool ended = false;

  // Where the profiler records, it tells of the stages.
  explicit State(bool observe)
      : observer(observe || profiler::running() ? std::make_shared<Observer>() : nullptr),
        context(observer),
        begun_under(context.thread_context().cancellation),
        consumers(begun_under.get()) {
    if (begun_under) watch = CancelWatch(context.stop_signal(), begun_under);
  }

  static std::unique_ptr<State> begin(DatasetRef dataset, bool observe = false) {
    auto state = std::make_unique<State>(observe);
    state->dataset = std::move(dataset);
    state->iterator = state->dataset->iterator(state->context);
    return state;
  }
  ~State() { context.stop_signal()->stop(); }

  bool next(Element& out) {
    if (ended) return false;
    obey(thread_context().cancellation);
    if (watched() ? watched_next(out) : iterator->next(out)) return true;
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
      consumers_watch = CancelWatch();
      if (cancellation && cancellation != begun_under) {
        consumers_watch = CancelWatch(context.stop_signal(), cancellation);
      }
      consumers = cancellation.get();
    }
    if (consumers && consumers->cancelled()) context.stop_signal()->stop();
    context.check();
  }

  bool watched() const { return observer || context.tuner_if_any() || profiler::running(); }

  bool watched_next(Element& out) {
    const Waited waited;
    const auto begin = std::chrono::steady_clock::now();
    bool gave = false;
    try {
      gave = iterator->next(out);
    } catch (...) {
      tell(begin, waited, false);
      throw;
    }
    tell(begin, waited, gave);
    return gave;
  }

  void tell(std::chrono::steady_clock::time_point begin, const Waited& waited, bool gave) {
    const auto end = std::chrono::steady_clock::now();
    if (observer) observer->next(nanoseconds(begin), nanoseconds(end), gave);
    if (Tuner* tuner = context.tuner_if_any()) tuner->consumed(nanoseconds(end), waited());
    if (!profiler::running()) return;
    profiler::record_input(observer ? observer->name() : dataset->name(),
                           observer ? observer->recent_shares() : "", begin, end);
  }

  void visit(StateArchive& archive) {
    ThreadContextScope scope(context.thread_context());
    archive.stage("Iterator");
    archive.value(ended);
    context.visit_state(archive);
    iterator->visit_state(archive);
  }
};

Iterator::Iterator(std::shared_ptr<const DatasetBase> dataset, IteratorOptions options)
    : state_(State::begin(base_of(Dataset(std::move(dataset))), options.observe)) {}
Iterator::Iterator(Iterator&&) noexcept = default;
Iterator& Iterator::operator=(Iterator&&) noexcept = default;
Iterator::~Iterator() = default;

bool Iterator::next(Element& out) {
  if (!state_) throw FailedPreconditionError("An iterator was used after it was moved from.");
  const ThreadContext& thread = thread_context();
  if (!thread.trace && thread.recorders.empty()) return state_->next(out);
  // The pipeline is no part of what the caller traces or differentiates.
  ThreadContextScope scope(state_->context.thread_context());
  return state_->next(out);
}

std::string Iterator::save() {
  if (!state_) throw FailedPreconditionError("An iterator was used after it was moved from.");
  state_->context.check();
  StateArchive archive;
  state_->visit(archive);
  return archive.bytes();
}

void Iterator::restore(std::string_view saved) {
  if (!state_) throw FailedPreconditionError("An iterator was used after it was moved from.");
  StateArchive archive(saved);
  auto fresh = State::begin(state_->dataset, state_->observer != nullptr);
  StateArchive before;
  fresh->visit(before);
  try {
    fresh->visit(archive);
    archive.finish();
  } catch (...) {
    // Datasets have taken over random state that is not theirs.
    StateArchive undo(before.bytes());
    State::begin(state_->dataset)->visit(undo);
    throw;
  }
  if (const Tuner* tuner = state_->context.tuner_if_any())
    fresh->context.tuner().leave_cores(tuner->left_cores());
  state_ = std::move(fresh);
}

PipelineStats Iterator::stats() const {
  if (!state_) throw FailedPreconditionError("An iterator was used after it was moved from.");
  if (!state_->observer) {
    throw FailedPreconditionError(
        "Nobody observes this iteration. Begin it with dataset.iterator({.observe = true}).");
  }
  return state_->observer->stats();
}

void Iterator::leave_cores(std::int64_t cores) {
  if (!state_) throw FailedPreconditionError("An iterator was used after it was moved from.");
  if (cores < 0) throw InvalidArgumentError(cat("`cores` must be >= 0, got ", cores, "."));
  state_->context.tuner().leave_cores(cores);
}

Element Iterator::next() {
  Element element;
  if (!next(element)) {
    throw OutOfRangeError("End of sequence: the iterator has no more elements. Begin another one.");
  }
  return element;
}

std::int64_t Dataset::cardinality() const { return base_of(*this)->cardinality(); }
const ElementSpec& Dataset::element_spec() const { return base_of(*this)->element_spec(); }

Dataset::ElementIterator::ElementIterator(Iterator iterator)
    : current_(std::make_shared<Current>(Current{std::move(iterator), {}})) {
  ++*this;
}

Dataset::ElementIterator& Dataset::ElementIterator::operator++() {
  if (!current_->iterator.next(current_->element)) current_ = nullptr;
  return *this;
}

Dataset::ElementIterator Dataset::begin() const { return ElementIterator(iterator()); }
Dataset::ElementIterator Dataset::end() const { return {}; }

std::ostream& operator<<(std::ostream& out, const TensorSpec& spec) {
  if (spec.dtype == DType::kInvalid) {
    out << '?';
  } else {
    out << spec.dtype;
  }
  return out << spec.shape;
}

std::ostream& operator<<(std::ostream& out, const ElementSpec& spec) {
  return out << to_string(spec);
}

std::ostream& operator<<(std::ostream& out, const Dataset& dataset) {
  if (!dataset.defined()) return out << "<no dataset>";
  const DatasetBase* stage = dataset.base().get();
  while (stage->name() == "Named") stage = stage->inputs()[0];  // only gives names to another's
  out << '<' << stage->name() << " element_spec=";
  try {
    const ElementSpec& spec = dataset.element_spec();
    const Names& names = dataset.names();
    if (names.empty()) return out << spec << '>';
    for (std::size_t i = 0; i < spec.size(); ++i) {
      out << (i == 0 ? "{" : ", ") << names[i] << ": " << spec[i];
    }
    return out << "}>";
  } catch (const Error&) {  // only iterating would tell
    return out << "unknown>";
  }
}

std::string to_string(const ElementSpec& spec) {
  std::ostringstream out;
  out << '(';
  for (std::size_t i = 0; i < spec.size(); ++i) {
    out << (i == 0 ? "" : ", ");
    out << spec[i];
  }
  out << ')';
  return std::move(out).str();
}

namespace internal {

void throw_arity(std::size_t wanted, std::size_t given) {
  throw InvalidArgumentError(cat("A function on elements takes ", wanted,
                                 wanted == 1 ? " tensor" : " tensors", ", but the elements have ",
                                 given, given == 1 ? " component." : " components.",
                                 " Give it one parameter for each component, or one "
                                 "`const td::data::Element&`."));
}

void throw_tuple_size(std::size_t wanted, std::size_t given) {
  throw InvalidArgumentError(cat("tuples<", wanted, ">() was asked for, but the elements have ",
                                 given, given == 1 ? " component" : " components", ": use tuples<",
                                 given, ">()."));
}

bool truth(const Tensor& result) {
  if (result.dtype() != DType::kBool || result.rank() != 0) {
    throw InvalidArgumentError(
        cat("Invalid `predicate`. `predicate` must return a bool scalar tensor, but its result is ",
            result.dtype(), result.partial_shape(), "."));
  }
  return result.item<bool>();
}

}  // namespace internal
}  // namespace tandem::data
