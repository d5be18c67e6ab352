#pragma once

#include <optional>
#include <vector>

#include "tandem/graph/graph.h"

namespace tandem::passes {

/// What else happens before a value is there, but for its own computing: nodes that others on the
/// way to it wait for, stateful ops that do more than read, the loop or the branch that it belongs
/// to. Who stands for the value without reading it has to wait for these. Nothing if that can't be
/// said: the value comes straight out of a Switch, whose outputs one can't wait for apart, or very
/// much lies before it.
std::optional<std::vector<Node*>> anchors_of(const Output& value);

/// True if a value may be left out: nothing but its own computing goes with it.
bool may_drop(const Output& value);

}  // namespace tandem::passes
