#pragma once

#include <string>
#include <vector>

#include "tandem/graph/graph.h"

namespace tandem::cli {

/// Names of the nodes that give variables and tables their first values, as TensorFlow's "init",
/// "init_all_tables" and the init op of a SavedModel do: what assigns without reading anything that
/// is fed, the variable itself, or one that gets no value; what fills a table, perhaps in a
/// function; and what only waits for such. Of those the ones that no other waits for. They are
/// known by their form, so that a step which assigns constants looks like one too.
std::vector<std::string> initializers(const Graph& graph);

/// Rethrows the FailedPreconditionError of a step of `graph` that is being handled. If a variable's
/// or a table's value was missing, with a line more: "in td run: --init NODE runs a node first;
/// 'init' looks like one that does".
[[noreturn]] void rethrow_proposing_init(const std::string& command, const Graph& graph);

}  // namespace tandem::cli
