#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "tandem/data/sources/philox.h"
#include "tandem/data/state_archive.h"

namespace tandem::data {

/// Numbers the passes over a dataset with random state, over all its iterations, and gives each its
/// seeds. Thread-safe.
///
/// Passes have successive numbers, as in tf.data. Only where an input is repeated, the number of
/// passes that an iteration has begun when it is broken off depends on how far threads have read
/// ahead; the iteration after it therefore begins at the next multiple of 2^20.
class SeedSequence {
 public:
  SeedSequence(std::uint64_t seed, std::uint64_t seed2) : seed_(seed), seed2_(seed2) {}

  /// The number of a pass that is the only one of its kind in its iteration.
  std::uint64_t next() {
    std::lock_guard lock(mutex_);
    return next_++;
  }
  /// The first number of an iteration that may make several passes.
  std::uint64_t begin() {
    std::lock_guard lock(mutex_);
    const std::uint64_t first = next_;
    next_ = after_broken_off(first);
    return first;
  }
  /// Says that the iteration that began with number `first` is complete after `count` passes.
  void complete(std::uint64_t first, std::uint64_t count) {
    std::lock_guard lock(mutex_);
    if (next_ == after_broken_off(first)) next_ = first + count;
  }
  /// The generator of a pass.
  Philox generator(std::uint64_t pass) const {
    Philox seeds = fixed();
    seeds.skip(2 * pass);
    const std::uint64_t first = seeds();
    return Philox(first, seeds());
  }
  /// The generator where every pass has the same.
  Philox fixed() const {
    std::lock_guard lock(mutex_);
    return Philox(seed_, seed2_);
  }
  std::pair<std::uint64_t, std::uint64_t> seeds() const {
    std::lock_guard lock(mutex_);
    return {seed_, seed2_};
  }
  /// Saves or restores the seeds too: unless a user gave them they differ from process to process.
  void visit_state(StateArchive& state) {
    std::lock_guard lock(mutex_);
    state.value(seed_);
    state.value(seed2_);
    state.value(next_);
  }

 private:
  static std::uint64_t after_broken_off(std::uint64_t first) { return ((first >> 20) + 1) << 20; }

  mutable std::mutex mutex_;  // guards all below
  std::uint64_t seed_;
  std::uint64_t seed2_;
  std::uint64_t next_ = 0;
};

}  // namespace tandem::data
