#pragma once

#include <string>

#include "tandem/io/graph_export.h"
#include "tandem/io/proto/messages.h"

namespace tandem::io {

std::string graph_bytes(const proto::GraphDef& graph, GraphFormat format);

/// Whether a GraphDef in this file is text: its name ends in .pbtxt.
bool is_text_file(const std::string& path);

/// Writes the bytes to the file and returns the graph without them.
ExportedGraph write_file(const std::string& path, ExportedGraph graph);

}  // namespace tandem::io
