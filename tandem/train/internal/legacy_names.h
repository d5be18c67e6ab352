#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/runtime/saving.h"
#include "tandem/train/internal/object_tree.h"

namespace tandem::train::internal {

/// "Adam/{}/m" of the variable "dense/kernel": "Adam/dense/kernel/m".
std::string legacy_name(const std::string& pattern, const std::string& variable);

/// The number of steps after which `decay` to the power of one more is `power`; -1 where the power
/// is too small to say.
std::int64_t steps_of_power(double power, double decay);
/// A number of steps after which all these powers have vanished.
std::int64_t steps_of_no_powers(const LegacySteps& steps);

/// Values of the tree's variables under their names, of slots and steps under TensorFlow 1's.
/// Throws InvalidArgumentError for a value without a name, and for a name that two have.
std::vector<CheckpointContents::Item> legacy_items(const ObjectTree& tree);

}  // namespace tandem::train::internal
