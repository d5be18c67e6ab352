#pragma once

#include <string>
#include <vector>

#include "tandem/graph/graph.h"

namespace tandem {
class OpRegistry;
}

namespace tandem::io {

/// Adds a node of the op of this name.
Node* add_node(Graph& graph, const OpRegistry& ops, const char* op, const std::string& name,
               std::vector<Output> inputs, AttrMap attrs);

}  // namespace tandem::io
