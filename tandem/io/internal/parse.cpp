#include "tandem/io/internal/parse.h"

#include "tandem/core/error.h"
#include "tandem/io/internal/text.h"
#include "tandem/io/internal/wire.h"

namespace tandem::io {

proto::GraphDef parse_graph_def(std::string_view bytes, GraphFormat format,
                                const std::string& name) {
  proto::GraphDef graph;
  try {
    if (format == GraphFormat::kText) {
      proto::TextReader(bytes).read(graph);
    } else {
      proto::WireReader(bytes).read(graph);
    }
  } catch (const DataLossError& error) {
    throw DataLossError(cat(name, " is no GraphDef in ",
                            format == GraphFormat::kText ? "text" : "binary",
                            " form, or is damaged: ", error.what(), "."));
  }
  return graph;
}

}  // namespace tandem::io
