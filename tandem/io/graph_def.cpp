#include "tandem/io/graph_def.h"

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/io/internal/graph_bytes.h"
#include "tandem/io/internal/import.h"
#include "tandem/io/internal/other_formats.h"
#include "tandem/io/internal/parse.h"

namespace tandem::io {

ImportedGraph import_graph_def(std::string_view bytes, const ImportOptions& options) {
  proto::GraphDef def = parse_graph_def(bytes, options.format, options.name);
  return import_message(def, options);
}

ImportedGraph read_graph_def(const String& path, ImportOptions options) {
  if (is_text_file(path)) options.format = GraphFormat::kText;
  options.name = cat("'", path, "'");
  const auto saved_model = [&] {
    return InvalidArgumentError(
        cat("'", path,
            "' is a SavedModel, not a GraphDef. td::saved_model::load reads it, and `td run "
            "--saved-model DIR` runs it (docs/saved-model.md)."));
  };
  if (fs::file_system_of(path).stat(path).is_directory) {
    if (fs::exists(path + "/saved_model.pb")) throw saved_model();
    throw InvalidArgumentError(cat("'", path, "' is a folder, not a GraphDef's file."));
  }
  // The file's bytes are gone before the graph is made.
  proto::GraphDef def = [&] {
    const std::string bytes = fs::read_file(path);
    if (bytes.empty()) throw DataLossError(cat("'", path, "' is empty."));
    // schema_version (1), then meta_graphs: field 1 of a GraphDef is a node.
    if (bytes.starts_with("\x08\x01\x12")) throw saved_model();
    if (is_text(bytes)) options.format = GraphFormat::kText;
    const auto refuse_other_format = [&] {
      const std::string other = other_format(bytes, path);
      if (!other.empty())
        throw InvalidArgumentError(cat("'", path, "' is no GraphDef but ", other));
    };
    proto::GraphDef parsed;
    try {
      parsed = parse_graph_def(bytes, options.format, options.name);
    } catch (const DataLossError&) {
      refuse_other_format();
      throw;
    }
    // A message of another kind may look like a graph, but every node has a name.
    if (!parsed.node.empty() && parsed.node.front().name.empty()) refuse_other_format();
    return parsed;
  }();
  return import_message(def, options);
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
