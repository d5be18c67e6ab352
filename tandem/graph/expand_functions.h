#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "tandem/core/export.h"
#include "tandem/graph/graph.h"

namespace tandem {

class OpRegistry;
struct MutableFunction;

/// Which calls become part of their caller, and how large the result may be.
struct ExpandOptions {
  /// Asked for each node that calls functions, those in the bodies of expanded ones included.
  /// `device` is the request that holds for the node: its own, completed by its callers'. Empty:
  /// all are expanded.
  std::function<bool(const Node& node, const std::string& device)> choose = {};
  std::size_t max_nodes = std::size_t{1} << 20;  ///< of the whole graph
  int max_depth = 200;                           ///< of calls within calls
};

namespace passes {

/// Does what `inline_calls` (tandem/graph/inline_calls.h) and `lower_control_flow`
/// (tandem/graph/lower_control_flow.h) do, each in the bodies that the other leaves: a call in the
/// branch of an If is inlined, an If in the body of a call is lowered. Returns whether anything
/// changed.
///
/// Throws InvalidArgumentError for a function that is expanded within itself,
/// FailedPreconditionError beyond `max_depth` and ResourceExhaustedError beyond `max_nodes`; each
/// names the function and the node that calls it. The graph is then of no more use.
TANDEM_EXPORT bool expand_functions(MutableFunction& f, const OpRegistry& ops,
                                    const ExpandOptions& options = {});

/// True if nodes that run when this one does, in functions of any depth, ask for two different
/// devices (parts of a name that a request leaves open differ from nothing). `device`: the request
/// that holds for the node.
TANDEM_EXPORT bool spans_devices(const Node& node, const std::string& device);
/// Like spans_devices for jobs, replicas and tasks.
TANDEM_EXPORT bool spans_tasks(const Node& node, const std::string& device);

}  // namespace passes
}  // namespace tandem
