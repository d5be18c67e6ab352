#pragma once

#include <string>
#include <vector>

#include "tandem/graph/passes.h"

namespace tandem::io {

/// Throws InvalidArgumentError if a tensor that is fed or fetched lies inside of a loop of
/// TensorFlow 1, where it has a value in every round. `step` takes the feeds and returns the
/// fetches, which have these names.
void check_outside_of_loops(const MutableFunction& step, const std::vector<std::string>& feeds,
                            const std::vector<std::string>& fetches);

}  // namespace tandem::io
