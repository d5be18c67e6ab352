#pragma once

#include <string>
#include <string_view>

#include "tandem/io/graph_export.h"
#include "tandem/io/proto/messages.h"

namespace tandem::io {

std::string graph_bytes(const proto::GraphDef& graph, GraphFormat format);

/// Whether these bytes, whatever their file's name, are a GraphDef as text: they begin with a
/// comment or a field's name, which no binary one does.
bool is_text(std::string_view bytes);
/// Whether a GraphDef in this file is text: its name ends in .pbtxt.
bool is_text_file(const std::string& path);

/// Writes the bytes to the file and returns the graph without them.
ExportedGraph write_file(const std::string& path, ExportedGraph graph);

}  // namespace tandem::io
