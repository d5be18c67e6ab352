#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "tandem/data/iteration_context.h"
#include "tandem/data/sources/seed_sequence.h"
#include "tandem/data/state_archive.h"
#include "tandem/graph/rng_position.h"

namespace tandem::data {

/// The seeds of a dataset with random state that is made now: as those of an op with this seed or
/// none, but never (0, 0). Made by the function of another dataset for one of its elements it gets,
/// without a seed, those that follow from that.
std::pair<std::uint64_t, std::uint64_t> stage_seeds(std::optional<std::int64_t> seed);

/// What random ops in the function of a stage draw from: seeds for those that have none, and the
/// number of the pass. Belongs to the dataset, whatever stage it runs as. Thread-safe.
class FunctionRng {
 public:
  /// Notes for which element of another stage the dataset is made, if that is so.
  FunctionRng();
  /// Seeds are drawn when the first pass begins.
  const std::shared_ptr<SeedSequence>& sequence() const;
  std::uint64_t origin() const { return origin_ ? origin_->origin : 0; }
  /// For DatasetBase::visit_lasting_state.
  void visit_state(StateArchive& state, const IterationContext& context) const;

 private:
  const std::optional<RngPosition::Stream> origin_;
  mutable std::once_flag drawing_;
  mutable std::shared_ptr<SeedSequence> sequence_;
  mutable std::atomic<bool> drawn_{false};
};

/// One pass of such a function: a member of the pass's iterator, made before the iterator of its
/// input and saved with it.
class DrawPass {
 public:
  /// The pass of a function that draws nothing.
  DrawPass() = default;
  /// Null: the same.
  DrawPass(const FunctionRng* draws, const IterationContext& context);
  /// To find out what a function returns.
  static DrawPass trial();

  void visit_state(StateArchive& state);
  /// Null where nothing is drawn.
  const RngPosition::Stream* stream() const { return draws_ ? &stream_ : nullptr; }

 private:
  bool draws_ = false;
  bool nested_ = false;
  RngPosition::Stream stream_;
  std::shared_ptr<SeedSequence> sequence_;
  std::optional<IterationContext> context_;
};

/// The thread runs the function on the element of this number.
class DrawScope {
 public:
  DrawScope(const RngPosition::Stream* stream, std::int64_t element);
  DrawScope(const DrawPass& pass, std::int64_t element) : DrawScope(pass.stream(), element) {}
  ~DrawScope();
  DrawScope(const DrawScope&) = delete;
  DrawScope& operator=(const DrawScope&) = delete;

  /// The pass whose function the thread runs, or null.
  static const RngPosition::Stream* current();

 private:
  const bool set_;
  std::shared_ptr<RngPosition> saved_;
};

}  // namespace tandem::data
