#pragma once

#include "tandem/core/export.h"
#include "tandem/graph/graph.h"

namespace tandem {

/// On a receive: true if no value that it gets is dead, since no part of its step has control flow.
inline constexpr const char* kAlwaysLiveAttr = "_always_live";

/// True if the graph holds TensorFlow 1 control flow, or may receive dead values of such: it takes
/// the framed executor.
TANDEM_EXPORT bool holds_control_flow(const Graph& graph);

}  // namespace tandem
