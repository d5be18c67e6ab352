#pragma once

#include <cstddef>
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

std::size_t num_slots(const proto::OptimizerSpec& optimizer);

/// Gives a parameter the optimizer's slots. Throws InvalidArgumentError unless it is float or
/// double.
void add_slots(Parameter& parameter, const proto::OptimizerSpec& optimizer);
/// Whether a parameter has them: gradients can be applied to it.
bool has_slots(const Parameter& parameter, const proto::OptimizerSpec& optimizer);

/// Gradients of a parameter, in its shape, or of the rows that `index`, an int64 vector, names.
struct Gradients {
  Array value;
  Array index = {};
};

/// What a step makes of a parameter by itself.
struct VariableChange {
  Array value;
  bool adds = false;  ///< to the parameter's value, instead of replacing it
};

/// Whether values of the dtype can be added on a server.
bool can_be_added(DType dtype);

/// Applies the changes of steps that are one update. Of floating-point values that are added the
/// mean is (moving averages), of integers the sum (counters); of values that replace the
/// parameter's the last one stays.
void apply_changes(Parameter& parameter, const std::vector<VariableChange>& changes);

/// Applies the mean of the gradients as update number `step` (from 1). Rows without a gradient have
/// one of 0: with "sgd" and "adagrad" nothing of them is touched then, "momentum" and "adam" go on
/// by what they remember, as Keras' do. The gradients are summed in their order. Arrays that others
/// hold are not changed: the parameter gets new ones.
void apply_gradients(Parameter& parameter, const std::vector<Gradients>& gradients,
                     const proto::OptimizerSpec& optimizer, std::int64_t step);

}  // namespace tandem::distribute
