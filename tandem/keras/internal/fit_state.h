#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tandem/graph/rng_position.h"
#include "tandem/train/trackable.h"

namespace tandem::keras::internal {

class FitLoop;

/// Where a fit is: epoch and batch, the place in its dataset, what metrics and callbacks have
/// gathered, the history, and where random ops and the model's random layers draw from. A
/// checkpoint of it, of the model and of the optimizer is all that another process needs to go on
/// at the very next element.
class FitState final : public train::Trackable {
 public:
  explicit FitState(FitLoop& loop) : loop_(loop) {}
  void track(train::TrackedObject& object) override;
  void on_further_parts(const std::function<void()>& changed) override;

  /// Random ops of a step draw from now on from a stream that follows from a seed of this fit, the
  /// epoch and the number of the step: the state of the fit has it.
  void use_own_random_stream();

  /// Called when every callback has seen the end of a batch or epoch, so that what is saved then
  /// has all that they did.
  std::function<void()> at_batch_end, at_epoch_end;
  /// What was restored; FitLoop takes it when all callbacks have begun.
  std::optional<std::string> restored;
  int epoch = 0;
  std::int64_t batch = 0;  ///< batches of the epoch that are done
  std::optional<RngPosition::Stream> random;

 private:
  FitLoop& loop_;
};

}  // namespace tandem::keras::internal
