#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "tandem/core/ref.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/kernels/cpu/random/philox.h"

namespace tandem::cpu {

/// The weights of FixedUnigramCandidateSampler's classes, from its attributes or its file.
std::vector<float> class_weights(const KernelContext& c);

/// Classes by fixed weights: each place of a table holds one class up to a limit, and another above
/// it, so that a draw takes two numbers (Walker's alias method).
class GivenClasses final : public RefCounted {
 public:
  explicit GivenClasses(std::vector<float> weights);
  std::int64_t operator()(PhiloxNumbers& next) const;
  float probability(std::int64_t value) const {
    return weights_[static_cast<std::size_t>(value)] / total_;
  }
  /// Classes that may be drawn at all.
  std::int64_t possible() const { return possible_; }

 private:
  struct Place {
    float limit;
    std::int64_t above;
  };
  std::vector<float> weights_;
  std::vector<Place> places_;
  float total_ = 0;
  std::int64_t possible_ = 0;
};

/// Classes by how often they have been seen, each once at first. Lock `mutex` while using it.
class LearnedClasses final : public RefCounted {
 public:
  explicit LearnedClasses(std::int64_t range);
  std::int64_t operator()(PhiloxNumbers& next) const;
  float probability(std::int64_t value) const {
    return static_cast<float>(sums_[first_ + static_cast<std::size_t>(value)]) /
           static_cast<float>(sums_[1]);
  }
  void add(std::int64_t value);
  std::mutex mutex;

 private:
  std::size_t first_ = 1;           ///< where the leaves begin
  std::vector<std::int32_t> sums_;  ///< a tree: node i has the sum of nodes 2i and 2i + 1
};

}  // namespace tandem::cpu
