#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/ops/variable.h"

namespace tandem::train {

// What TensorFlow 1's optimizers and those of tf.keras before Keras 3 call that which an optimizer
// keeps. Values are read from their checkpoints under these names, and written under them with
// CheckpointOptions::legacy_names.

/// What is kept of one variable.
struct LegacySlot {
  Variable variable;
  Variable value;  ///< undefined: zeros, which ours does without
  /// In checkpoints with objects: "m".
  std::vector<std::string> slots;
  /// In those without, "{}" standing for the variable's name. TensorFlow 1's comes first, and is
  /// the one written: "{}/Adam", "Adam/{}/m".
  std::vector<std::string> names;
  /// What TensorFlow 1's value is multiplied with to get ours; empty: 1.
  std::function<double()> factor = {};
};

/// The number of steps, which TensorFlow 1's optimizers keep as powers of their decays:
/// decay^(steps + 1).
struct LegacySteps {
  Variable steps;                                      ///< int64, a scalar
  std::vector<std::string> counters;                   ///< names of the number: "Adam/iter"
  std::vector<std::pair<std::string, double>> powers;  ///< names and decays: "beta1_power", 0.9
};

}  // namespace tandem::train
