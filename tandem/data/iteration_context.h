#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "tandem/core/export.h"
#include "tandem/data/dataset_options.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::data {

class DatasetBase;
class Observer;
class SeedSequence;
class StateArchive;
class Tuner;
struct ObservedStage;
struct StageCounters;

/// Signals the threads and long loops of an iteration to stop. A tree: stopping one stops those
/// below it. Thread-safe.
class TANDEM_EXPORT StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// A signal that also stops when `parent` does.
  static std::shared_ptr<StopSignal> below(const std::shared_ptr<StopSignal>& parent);

  void stop();
  bool stopped() const noexcept;

  /// Calls `wake` once when the signal stops, at once if it has; on the thread that stops it. Until
  /// `wake` is detached by destroying the Waker it may run; afterwards it does not.
  class TANDEM_EXPORT Waker {
   public:
    Waker() = default;
    Waker(std::shared_ptr<StopSignal> signal, std::function<void()> wake);
    Waker(Waker&& other) noexcept;
    Waker& operator=(Waker&& other) noexcept;
    ~Waker();

   private:
    std::shared_ptr<StopSignal> signal_;
    std::uint64_t id_ = 0;
  };

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What the stages of one iteration share. A small handle that stages may copy and keep.
/// Thread-safe.
class TANDEM_EXPORT IterationContext {
 public:
  /// The root of an iteration by the calling thread.
  IterationContext();
  /// The same, of one whose stages are watched: see tandem/data/pipeline_stats.h.
  explicit IterationContext(std::shared_ptr<Observer> observer);

  /// For a stage that runs its input on threads of its own: the same iteration with a stop signal
  /// below this one.
  IterationContext below() const;
  const std::shared_ptr<StopSignal>& stop_signal() const { return stop_; }
  /// Throws CancelledError if the iteration has been stopped. For loops that may run long without
  /// giving an element.
  void check() const;

  /// Runtime and names of the thread that began the iteration, without its tapes and traces, on the
  /// host's CPU: what the pipeline's own threads work under.
  ThreadContext thread_context() const;

  /// What with_options stages after this one say.
  const Options& options() const { return options_; }
  /// This iteration as the stages before a with_options see it.
  IterationContext with(const Options& options) const;
  /// This iteration for sources that are not to be cut into shards.
  IterationContext whole() const;
  /// The threads of a stage for a number of calls that may be kAutotune; kAutotune again where
  /// `tuner` is to find them.
  std::int64_t threads(std::int64_t calls) const;

  /// For a stage that may begin its input again: the same iteration, in which more passes may
  /// follow.
  IterationContext repeating() const;
  /// The number of the next pass over the stage that owns `sequence`.
  std::uint64_t next_pass(const std::shared_ptr<SeedSequence>& sequence) const;
  /// To be called by a stage that ends while its input could go on: how far that has been read
  /// ahead is then a matter of time, and must not decide about later iterations.
  void leave_open() const;
  /// The root has come to its end.
  void finish() const;

  /// Who watches the iteration, or null.
  Observer* observer() const { return observer_; }
  /// For a stage with threads: where its pass, which this context was given to, counts what they
  /// do; null if not recorded.
  StageCounters* counters() const;
  /// What finds the threads and buffers of stages with kAutotune; made when first asked for.
  Tuner& tuner() const;
  Tuner* tuner_if_any() const;

  /// For the front of passes: the context of a pass over a dataset that is observed as `stage`, and
  /// these of the pass that a context was given to.
  IterationContext at(ObservedStage& stage, const DatasetBase& dataset) const;
  ObservedStage* stage() const { return stage_; }
  const DatasetBase* dataset() const { return dataset_; }

  /// Visits the state of the iteration itself, and of the passes over the stage that owns
  /// `sequence`.
  void visit_state(StateArchive& state) const;
  void visit_state(StateArchive& state, const std::shared_ptr<SeedSequence>& sequence) const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::shared_ptr<StopSignal> stop_;
  Options options_;
  bool repeating_ = false;
  Observer* observer_ = nullptr;  // `shared_` has it
  ObservedStage* stage_ = nullptr;
  const DatasetBase* dataset_ = nullptr;
};

}  // namespace tandem::data
