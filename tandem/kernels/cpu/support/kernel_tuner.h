#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>

#include "tandem/graph/kernel_choice.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/kernels/cpu/support/choice_file.h"
#include "tandem/kernels/cpu/support/problem_class.h"

namespace tandem::cpu {

/// One thread at a time has it, and may take it again meanwhile.
class MeasuringTurn {
 public:
  /// False if another thread still has it after two seconds.
  bool take();
  void leave();

 private:
  std::mutex mutex_;
  std::condition_variable free_;
  std::thread::id holder_;  // guarded by mutex_
  int depth_ = 0;           // guarded by mutex_; 0: it is free
};

/// Chooses among implementations of a class of problems by measuring them on the machine at hand,
/// once: the first call of a class runs each on its own operands and all later calls use the
/// fastest. What was measured is kept in a file, so later processes measure nothing; what was
/// measured while other work took the processor holds for this process alone.
///
/// The choice is made before the first result of the class is handed out, so equal calls in one
/// process give equal bits. A caller that meets another one measuring waits for it, two seconds at
/// most. Thread-safe.
class KernelTuner {
 public:
  struct Options {
    bool enabled = true;
    std::string folder;           ///< where the file is; empty: nothing is kept
    std::string machine;          ///< what choices hold for
    double class_seconds = 0.2;   ///< for measuring one class; each candidate runs twice anyway
    double process_seconds = 5;   ///< for all measuring; then what is assumed runs
    std::function<double()> now;  ///< seconds; empty: a steady clock
  };
  explicit KernelTuner(Options options);
  KernelTuner(const KernelTuner&) = delete;
  KernelTuner& operator=(const KernelTuner&) = delete;

  /// The process' own, as the environment configures it (TANDEM_TUNING=0: off). Never destroyed:
  /// threads may outlive static objects.
  static KernelTuner& process();

  /// The candidate that was chosen for a class, or -1. Takes a few nanoseconds.
  int known(const ProblemClass& problem) const {
    const std::uint64_t key = problem.packed();
    for (std::size_t i = 0; i < kProbes; ++i) {
      const std::uint64_t entry = slots_[slot(key, i)].load(std::memory_order_acquire);
      if (entry >> kChoiceBits == key) return static_cast<int>(entry & kChoiceMask);
      if (entry == 0) return -1;
    }
    return -1;
  }

  /// The candidate to use, measured if need be. `run(i)` computes the whole problem by candidate i
  /// and may be called many times; false: it cannot. `assumed` is used where nothing is measured,
  /// and where no other is faster by more than samples vary.
  int choose(const ProblemClass& problem, std::span<const char* const> names, int assumed,
             const std::function<bool(int)>& run);

  /// As `explain` shows it, for any number of threads that was measured with, preferring
  /// problem.threads.
  KernelChoice describe(const ProblemClass& problem, std::span<const char* const> names,
                        int assumed) const;

  bool enabled() const { return options_.enabled; }

 private:
  static constexpr std::size_t kSlots = 4096, kProbes = 64;
  static constexpr int kChoiceBits = 4;
  static constexpr std::uint64_t kChoiceMask = (1u << kChoiceBits) - 1;
  static std::size_t slot(std::uint64_t key, std::size_t probe) {
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u >> 40) + probe) % kSlots;
  }
  /// A sample, and whether this thread had its processor for itself meanwhile.
  struct Sample {
    double seconds;
    bool undisturbed;
  };
  Sample sample(int times, int candidate, const std::function<bool(int)>& run) const;
  void remember(const ProblemClass& problem, int choice);
  void load() const;
  void save();
  struct Measured {
    MeasuredChoice choice;
    bool reliable = false;  ///< no other work took the processor from every sample
  };
  Measured measure(std::span<const char* const> names, int assumed,
                   const std::function<bool(int)>& run);

  const Options options_;
  std::array<std::atomic<std::uint64_t>, kSlots> slots_{};  // key and choice, open addressing
  MeasuringTurn measuring_;                                 // taken while candidates run
  double spent_ = 0;                                        // of who has measuring_
  mutable std::mutex mutex_;
  mutable bool loaded_ = false;                       // guarded by mutex_
  mutable MeasuredChoices choices_;                   // guarded by mutex_
  std::set<std::pair<std::string, int>> unreliable_;  // guarded by mutex_; not kept in the file
  bool may_save_ = true;                              // of who has measuring_
};

/// The process' tuner if this execution may use it: not where results must have the same bits
/// everywhere (op determinism), else null.
KernelTuner* tuner_for(const KernelContext& context);

}  // namespace tandem::cpu
