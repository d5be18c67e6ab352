// What stands in for tandem/io/internal/graph_def where protobuf was not there to build with.

#include "tandem/core/error.h"
#include "tandem/io/graph_def.h"

namespace tandem::io {

ImportedGraph import_graph_def(std::string_view, const ImportOptions&) {
  throw UnimplementedError(
      "Graphs cannot be read: this build of Tandem was made without protobuf. Install "
      "libprotobuf-dev and protobuf-compiler, and build again.");
}

}  // namespace tandem::io
