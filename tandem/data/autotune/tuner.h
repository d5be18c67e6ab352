#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <vector>

#include "tandem/data/autotune/thread_trial.h"
#include "tandem/data/autotune/tuning_model.h"
#include "tandem/data/dataset_options.h"
#include "tandem/data/observe/stage_counters.h"

namespace tandem::data {

/// The most threads of one stage. More would leave none for others on the machine.
inline constexpr std::int64_t kMaxThreads = 4096;

/// Threads that the stages of an iteration share, and bytes.
std::int64_t cpu_budget(const AutotuneOptions& options);
std::int64_t ram_budget(const AutotuneOptions& options);

/// A stage with kAutotune. Passes of one stage that follow each other, and those of the datasets
/// that a function makes, share one.
struct TunedStage {
  enum class Kind {
    kMap,         ///< threads that call a function, and take turns in the input
    kInterleave,  ///< threads that each work at an input of their own
    kPrefetch,    ///< one thread, and a buffer
  };
  Kind kind = Kind::kMap;
  const void* key = nullptr;
  int most = std::numeric_limits<int>::max();

  // What the stage's passes look at.
  std::atomic<int> threads{1};          ///< that each pass may use
  std::atomic<std::int64_t> buffer{2};  ///< elements, but of a map: it keeps two for each thread
  // The results of the looks.
  std::atomic<std::int64_t> element_bytes{0};  ///< of an element lately
  StageCounters counters;
  std::atomic<unsigned> made{0};
  void measure(const Element& element);

  /// For a map: whether its elements were too short for threads lately, so that who asked for them
  /// made them. Stages without a key, which may have nothing in common, never have an answer.
  bool made_by_consumer() const { return by_consumer.load(std::memory_order_relaxed); }

  // The tuner's, guarded by its mutex.
  StageCounters* counted = nullptr;  ///< `counters`, or those of who observes
  int passes = 0;
  std::int64_t least_buffer = 1;
  std::int64_t work = 0;  ///< counted until the last look
  std::int64_t input = 0;
  std::int64_t looked_at = 0, idle = 0;
  double cpu = 1;  ///< share of a core that one of its threads takes
  ThreadTrial trial;
  std::atomic<bool> by_consumer{false};  ///< read by anybody
};

/// Finds the threads and buffer sizes of an iteration's stages from what they measure of
/// themselves. It has no thread: the consumer lets it look at the figures,
/// every 100 ms at first, more rarely when nothing changes. Thread-safe.
class Tuner {
 public:
  /// A pass over a stage begins. The key distinguishes stages of a kind; `observed` is where the
  /// pass counts, or null.
  struct TuningRequest {
    TunedStage::Kind kind = TunedStage::Kind::kMap;
    const void* key = nullptr;
    int most = std::numeric_limits<int>::max();  ///< threads that a pass can use
    std::int64_t buffer = 2;
    std::int64_t least_buffer = 1;
  };
  TunedStage& join(const TuningRequest& wish, const AutotuneOptions& options,
                   StageCounters* observed);
  void leave(TunedStage& stage);
  /// A map's elements are made by who asks for them, or by threads again: as many as there are
  /// cores left for.
  void set_made_by_consumer(TunedStage& stage, bool by_consumer);

  /// Time goes by.
  void tick(std::int64_t now) {
    if (now >= next_look_.load(std::memory_order_relaxed)) look(now);
  }
  /// The consumer has got an element and waited for so long.
  void consumed(std::int64_t now, std::int64_t waited) {
    waited_.fetch_add(waited, std::memory_order_relaxed);
    tick(now);
  }
  /// A prefetch buffer that ran empty after it had been full: its new size.
  std::int64_t larger_buffer(TunedStage& stage);

  void reserve_cores(std::int64_t cores);
  std::int64_t left_cores() const;

 private:
  void look(std::int64_t now);
  void decide(double period, double waiting);
  void give(TunedStage& stage, int threads);
  TunedStage* find(TunedStage::Kind kind, const void* key);
  void share_first();
  void shrink_buffers(double& ram_left);
  std::vector<TunedPart> parts(double period);
  TunedPart part_of(TunedStage& stage, double period);
  /// Cores that they take.
  double threads_given() const;
  void trim(TunedStage& stage);
  void look_for_idleness(TunedStage& stage, TunedPart& part, double period);
  double buffered(const TunedStage& stage) const;
  int budget() const;

  std::atomic<std::int64_t> next_look_{0};
  std::atomic<std::int64_t> waited_{0};

  mutable std::mutex mutex_;  // guards the below
  std::deque<TunedStage> stages_;
  std::int64_t cpu_budget_ = 0;  // 0: no stage has joined
  bool budget_said_ = false;     // then it counts threads, also those that wait
  std::int64_t ram_budget_ = 0;
  std::int64_t left_ = 0;
  std::int64_t last_look_ = 0;
  std::int64_t interval_ = 0;
  int looks_ = 0;
  int calm_ = 0;  // looks in which the consumer did not wait
  bool began_ = false;
};

/// A stage's membership in a pass; does nothing where the stage is not tuned.
class TunedPass {
 public:
  TunedPass() = default;
  TunedPass(Tuner& tuner, TunedStage& stage) : tuner_(&tuner), stage_(&stage) {}
  ~TunedPass() {
    if (tuner_) tuner_->leave(*stage_);
  }
  TunedPass(TunedPass&& other) noexcept : tuner_(other.tuner_), stage_(other.stage_) {
    other.tuner_ = nullptr;
  }
  TunedPass& operator=(TunedPass&&) = delete;

  explicit operator bool() const { return tuner_ != nullptr; }
  TunedStage* operator->() const { return stage_; }
  /// To be called for each element that is asked for.
  void tick() const {
    if (tuner_) tuner_->tick(clock_now());
  }
  /// An element was made. Of some the size is measured.
  void made(const Element& element) const {
    if (tuner_ && stage_->made.fetch_add(1, std::memory_order_relaxed) % kMeasured == 0) {
      stage_->measure(element);
    }
  }
  void set_made_by_consumer(bool by_consumer) const {
    tuner_->set_made_by_consumer(*stage_, by_consumer);
  }
  std::int64_t larger_buffer() const { return tuner_->larger_buffer(*stage_); }

 private:
  static constexpr unsigned kMeasured = 16;
  Tuner* tuner_ = nullptr;
  TunedStage* stage_ = nullptr;
};

class IterationContext;

/// Joins the iteration's tuner if `wanted`.
TunedPass tuned_pass(bool wanted, const IterationContext& context,
                     const Tuner::TuningRequest& wish);
/// Where the pass counts: for who observes, else for the tuner, else nowhere.
StageMeter meter_of(const IterationContext& context, const TunedPass& pass);

}  // namespace tandem::data
