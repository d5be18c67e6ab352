#pragma once

#include <string>
#include <string_view>

#include "tandem/graph/function.h"
#include "tandem/io/graph_def.h"

namespace tandem {
class Runtime;
}

namespace tandem::distribute {

/// Imports a GraphDef in a runtime, with the codes that TensorFlow's servers answer: NotFoundError
/// for ops that this build does not have, InvalidArgumentError for everything else.
io::ImportedGraph import_graph(std::string_view graph_def, Runtime& runtime);

/// A part of a partitioned graph, without arguments and results, as a GraphDef that TensorFlow's
/// workers take as well.
std::string export_part(const Function& part);

/// This machine's name, for messages.
const std::string& host_name();

}  // namespace tandem::distribute
