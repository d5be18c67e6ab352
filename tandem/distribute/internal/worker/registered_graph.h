#pragma once

#include <string_view>

#include "tandem/graph/function.h"

namespace tandem {
class Runtime;
}

namespace tandem::distribute {

/// What a task runs of a GraphDef that a master has made for it: all of its nodes, which exchange
/// values with other parts by sends and receives. Throws InvalidArgumentError for nodes that are
/// not assigned to one of the runtime's devices, NotFoundError for unknown ops.
FunctionRef read_registered_graph(std::string_view graph_def, Runtime& runtime);

}  // namespace tandem::distribute
