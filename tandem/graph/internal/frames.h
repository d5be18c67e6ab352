#pragma once

#include "tandem/core/export.h"
#include "tandem/graph/graph.h"

namespace tandem {

/// True if the graph holds TensorFlow 1 control flow, which takes the framed executor.
TANDEM_EXPORT bool holds_control_flow(const Graph& graph);

}  // namespace tandem
