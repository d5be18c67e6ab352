#pragma once

#include <string>
#include <vector>

#include "tandem/graph/graph.h"

namespace tandem::cli {

/// Names of the nodes that give variables and tables their first values, as TensorFlow's "init"
/// and "init_all_tables" do: what assigns without reading anything that is fed, and what only waits
/// for such; of those the ones that no other waits for. They are known by their form, so that a
/// step which assigns constants looks like one too.
std::vector<std::string> initializers(const Graph& graph);

/// Rethrows the FailedPreconditionError of a step of `graph` that is being handled. If a variable's
/// or a table's value was missing, with a line more: "in td run: --init NODE runs a node first;
/// 'init' looks like one that does".
[[noreturn]] void rethrow_proposing_init(const std::string& command, const Graph& graph);

}  // namespace tandem::cli
