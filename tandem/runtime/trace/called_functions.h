#pragma once

#include <vector>

#include "tandem/graph/function.h"

namespace tandem {

/// The functions that nodes of the graph call, those that these call, and so on: each once.
std::vector<const Function*> called_functions(const Graph& graph);

}  // namespace tandem
