#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/distribute/proto/parameters.h"

namespace tandem::distribute {

/// A variable, or a range of its rows, on a parameter server: its value, and what the optimizer
/// keeps beside it.
struct Parameter {
  Array value;
  std::vector<Array> slots = {};
  std::int64_t version = 0;  ///< of the update that changed it last
};

/// Throws InvalidArgumentError for an unknown optimizer: "sgd", "momentum", "adagrad" and "adam"
/// are known, with Keras' formulas and defaults (a value of 0 stands for the default of momentum,
/// beta_1, beta_2 and epsilon).
void check_optimizer(const proto::OptimizerSpec& optimizer);

/// Gives a parameter the optimizer's slots. Throws InvalidArgumentError unless it is float or
/// double.
void add_slots(Parameter& parameter, const proto::OptimizerSpec& optimizer);

/// Gradients of a parameter, in its shape, or of the rows that `index`, an int64 vector, names.
struct Gradients {
  Array value;
  Array index = {};
};

/// Applies the mean of the gradients as update number `step` (from 1). Rows without a gradient have
/// one of 0: with "sgd" and "adagrad" nothing of them is touched then, "momentum" and "adam" go on
/// by what they remember, as Keras' do. The gradients are summed in their order. Arrays that others
/// hold are not changed: the parameter gets new ones.
void apply_gradients(Parameter& parameter, const std::vector<Gradients>& gradients,
                     const proto::OptimizerSpec& optimizer, std::int64_t step);

}  // namespace tandem::distribute
