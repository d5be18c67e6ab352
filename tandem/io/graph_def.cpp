#include "tandem/io/graph_def.h"

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"

namespace tandem::io {

ImportedGraph read_graph_def(const std::string& path, ImportOptions options) {
  if (path.ends_with(".pbtxt")) options.format = GraphFormat::kText;
  options.name = cat("'", path, "'");
  return import_graph_def(fs::read_file(path), options);
}

std::string describe_unsupported(const std::vector<UnsupportedNode>& nodes) {
  std::string text;
  for (const UnsupportedNode& node : nodes) {
    text += cat("\n  '", node.name, "' (", node.op, ")");
    if (!node.function.empty()) text += cat(" of function '", node.function, "'");
    text += cat(": ", node.reason);
    if (!node.nearest.empty()) text += cat(" (the nearest is '", node.nearest, "')");
  }
  return text;
}

}  // namespace tandem::io
