#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/variable.h"

namespace tandem::train {

struct MovingAverageOptions {
  /// Counts steps: the decay is then at most (1 + n) / (10 + n), so that first steps count more.
  Variable num_updates = {};
  bool zero_debias = false;  ///< averages begin with zero, and are corrected for that
};

/// Averages of variables over the steps of a training, in which older values count less and less:
/// average = decay · average + (1 - decay) · value. A handle; used by one thread at a time, also in
/// traced functions.
///
///     td::train::ExponentialMovingAverage ema(0.99);
///     ema.apply({w, b});                                // after each step
///     td::Tensor smooth = ema.average(w).value();
class TANDEM_EXPORT ExponentialMovingAverage {
 public:
  explicit ExponentialMovingAverage(double decay, MovingAverageOptions options = {});

  /// Takes the variables' values in. A variable's average begins with its value at the first call.
  /// Throws InvalidArgumentError for variables that are not floating.
  void apply(const std::vector<Variable>& variables) const;
  /// Throws NotFoundError if `apply` never had it.
  Variable average(const Variable& variable) const;
  /// "w/ExponentialMovingAverage"
  std::string average_name(const Variable& variable) const;
  /// The variables by the name under which a checkpoint has their averages.
  std::map<std::string, Variable> variables_to_restore(
      const std::vector<Variable>& variables = {}) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tandem::train
