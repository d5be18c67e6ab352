#pragma once

#include <cstddef>

#include "tandem/graph/function.h"
#include "tandem/graph/graph.h"
#include "tandem/io/internal/body_import.h"

namespace tandem {
class OpRegistry;
}

namespace tandem::io {

/// Adds a node whose gradient is `function`: a call of a function that holds the node, with that
/// gradient as autodiff keeps it. The node's first `inputs` inputs are its own, the others are what
/// the gradient captured. A null function is a gradient that cannot run. Throws
/// InvalidArgumentError if the function does not fit the node.
Node* add_with_gradient(Graph& graph, const OpRegistry& ops, Graph::NodeSpec spec,
                        std::size_t inputs, const ImportedGradient& gradient,
                        const FunctionRef& function);

}  // namespace tandem::io
