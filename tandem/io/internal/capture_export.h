#pragma once

#include <vector>

#include "tandem/graph/passes.h"
#include "tandem/io/graph_export.h"
#include "tandem/runtime/tensor.h"

namespace tandem {
class OpRegistry;
}

namespace tandem::io {

/// Puts what a function captured, its last arguments, into its graph: values as constants,
/// variables as `variables` says, tables that are filled once with what fills them; nothing for
/// those that no node uses. Returns the nodes that have to run before the others do. Throws as
/// export_graph_def.
std::vector<Node*> bind_captures(MutableFunction& f, const std::vector<Tensor>& captures,
                                 ExportVariables variables, const OpRegistry& ops);

}  // namespace tandem::io
