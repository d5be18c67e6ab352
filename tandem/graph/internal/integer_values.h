#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/graph/graph.h"
#include "tandem/graph/internal/infer_node.h"

// What follows of integers in a graph before it runs: shapes, paddings and axes are often computed
// from constants and from sizes that are known.

namespace tandem::internal {

/// The value of a constant, or the handle of an argument that is always the same; else null.
const Array* constant_value(Output output);

using KnownInteger = std::optional<std::int64_t>;

/// The elements of an int32 or int64 value in their order, those that are known; nothing if not
/// even their number is.
std::optional<std::vector<KnownInteger>> known_elements(Output output, const KnownOutputs& known);

/// An int32 or int64 value of which all is known.
std::optional<Array> known_integers(Output output, const KnownOutputs& known);

}  // namespace tandem::internal
