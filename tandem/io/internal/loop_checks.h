#pragma once

#include <string>
#include <vector>

#include "tandem/graph/passes.h"

namespace tandem::io {

/// Throws InvalidArgumentError if a tensor that is fed or fetched lies inside of a loop of
/// TensorFlow 1, where it has a value in every round. `step` takes the feeds and returns the
/// fetches, which have these names; `whole` is the graph that it was cut from, in which the fed
/// outputs have the ids of `fed`.
void check_outside_of_loops(const MutableFunction& step, const Graph& whole,
                            const std::vector<Output>& fed, const std::vector<std::string>& feeds,
                            const std::vector<std::string>& fetches);

}  // namespace tandem::io
