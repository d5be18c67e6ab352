#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/graph/function.h"
#include "tandem/graph/graph.h"

namespace tandem::io {

/// Something in a GraphDef that this build cannot run.
struct UnsupportedNode {
  std::string name;
  std::string op;
  std::string function;  ///< whose body holds the node; empty: the graph itself
  std::string reason;    ///< "there is no op 'Foo'"
  std::string nearest;   ///< a supported op of a similar name, or ""
};

/// What a GraphDef's library says of a function.
struct LibraryFunction {
  std::string name;
  std::vector<std::string> args;     ///< "x: float"
  std::vector<std::string> results;  ///< "y: float"
  std::vector<std::string> ops;      ///< of each node
};

/// A GraphDef, read and checked: every node has known attributes, dtypes that fit, and a shape as
/// far as it follows. Lives no longer than the Runtime that was current when it was made.
struct ImportedGraph {
  /// Nodes have the names they have in the file. A large constant of one repeated value is a Fill.
  std::shared_ptr<const Graph> graph;
  /// Functions that the graph's nodes call, each before those that call it.
  std::vector<FunctionRef> functions;
  /// Empty unless the import allowed it.
  std::vector<UnsupportedNode> unsupported;
  std::vector<LibraryFunction> library;
  int producer = 0;
  int min_consumer = 0;
};

enum class GraphFormat { kBinary, kText };

struct ImportOptions {
  GraphFormat format = GraphFormat::kBinary;
  /// True: nodes that cannot run stand in the graph as they are, and only running them is an error.
  bool allow_unsupported = false;
  /// Device asked for by nodes that name none.
  String device = {};
  /// What errors call the graph.
  String name = "the graph";
};

/// The newest GraphDef that this build reads (TensorFlow's GRAPH_DEF_VERSION).
inline constexpr int kGraphDefVersion = 2474;

/// Reads a GraphDef with its function library.
///
/// Throws DataLossError if the bytes are no GraphDef, InvalidArgumentError if it contradicts itself
/// (names twice, missing inputs, cycles, attributes of the wrong kind, shapes that do not fit), and
/// UnimplementedError that lists every node which this build cannot run. Both report all that
/// it finds at once, an InvalidArgumentError of the first 20 contradictions and of the nodes that
/// cannot run as well.
TANDEM_EXPORT ImportedGraph import_graph_def(std::string_view bytes,
                                             const ImportOptions& options = {});

/// Reads a GraphDef from a file; one whose name ends in .pbtxt, or that begins as text does, is
/// text. Throws InvalidArgumentError for SavedModels and other known formats: it names the format,
/// and what to do.
TANDEM_EXPORT ImportedGraph read_graph_def(const String& path, ImportOptions options = {});

/// What of `unsupported` the text of an error shows: a line for each node.
TANDEM_EXPORT std::string describe_unsupported(const std::vector<UnsupportedNode>& nodes);

}  // namespace tandem::io
