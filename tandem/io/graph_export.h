#pragma once

#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/core/string_list.h"
#include "tandem/io/graph_def.h"
#include "tandem/runtime/traced_function.h"

namespace tandem::io {

/// What becomes of the variables that an exported function reads.
enum class ExportVariables {
  kFreeze,  ///< constants of their values now; a function that changes variables is refused
  kKeep,    ///< variables of the graph, which its node `init` gives their values of now
};

struct ExportOptions {
  GraphFormat format = GraphFormat::kBinary;
  ExportVariables variables = ExportVariables::kFreeze;
  /// Names of the placeholders, one for each argument; empty: the arguments' own.
  StringList inputs = {};
  /// Names of nodes that hand out the results; empty: the results' own.
  StringList outputs = {};
};

/// A GraphDef, and how to run it.
struct ExportedGraph {
  std::string bytes;
  std::vector<std::string> inputs;   ///< tensors to feed, as "x:0"
  std::vector<std::string> outputs;  ///< tensors to fetch
  std::vector<std::string> targets;  ///< nodes to run besides, for their effects
  std::string init;                  ///< node to run first; "" if there is nothing to do
};

/// A traced function as a GraphDef that TensorFlow imports and runs:
///
///     auto predict = td::function([&](td::Tensor x) { return model(x); });
///     td::io::write_graph_def("model.pb", predict.concrete(example), {.outputs = {"y"}});
///
/// Captured tensors become constants. Captured tables that are filled once are filled with the same
/// keys and values: by the node `init` where variables are kept, else by whatever step uses them.
/// What was captured and no result or effect needs is left out. Functions that it calls go to the
/// graph's library; loops of TensorFlow 1 in imported ones stay such. The names asked for are the
/// nodes' names; one that is given twice or that TensorFlow refuses is an InvalidArgumentError, and
/// so are names in another number than that of arguments or results.
///
/// Throws InvalidArgumentError if variables that are to be frozen are changed, or used within
/// branches, loops or functions that it calls (kKeep takes them along); UnimplementedError for what
/// has no form in a GraphDef: mutable tables, queues and other resources that it captured, lists of
/// tensors and other variants too, and nodes of imported functions whose op or attributes are
/// unknown here; FailedPreconditionError if a captured table is not filled yet.
TANDEM_EXPORT ExportedGraph export_graph_def(const ConcreteFunction& function,
                                             const ExportOptions& options = {});

/// Exports a function without captures.
TANDEM_EXPORT ExportedGraph export_graph_def(const FunctionRef& function,
                                             const ExportOptions& options = {});

/// A graph that was read, whole, as a GraphDef again: nodes, names, devices, control inputs,
/// colocation groups, the loops of TensorFlow 1, and the functions that its nodes call. `inputs`
/// are its placeholders; it has no results of its own, so the rest of what is returned is empty.
/// What its steps have put into variables, queues and tables is no part of a graph, and neither is
/// which node initializes it: what the `init` of an export was is not known to the next one.
///
/// Not written: functions that no node calls, and attributes that begin with "_", `_class` apart,
/// which are notes for TensorFlow's own use. A call by a function's name is a PartitionedCall;
/// docs/graphs.md lists what else does not come back as it was.
///
/// Nodes whose op or attributes are unknown here are written as they came; those that are in
/// functions, or name some, are an UnimplementedError. Nodes that only lack a kernel are written as
/// all others.
TANDEM_EXPORT ExportedGraph export_graph_def(const ImportedGraph& graph,
                                             GraphFormat format = GraphFormat::kBinary);

/// Writes the export to a file, as text if its name ends in .pbtxt; `bytes` of the result is empty.
TANDEM_EXPORT ExportedGraph write_graph_def(const String& path, const ConcreteFunction& function,
                                            ExportOptions options = {});
TANDEM_EXPORT ExportedGraph write_graph_def(const String& path, const ImportedGraph& graph);

}  // namespace tandem::io
