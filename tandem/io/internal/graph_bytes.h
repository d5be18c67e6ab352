#pragma once

#include <string>

#include "tandem/io/graph_export.h"
#include "tandem/io/proto/messages.h"

namespace tandem::io {

std::string graph_bytes(const proto::GraphDef& graph, GraphFormat format);

/// Whether a GraphDef in this file is text: its name ends in .pbtxt.
bool is_text_file(const std::string& path);

/// The graph without its bytes, which are in the file.
ExportedGraph written(const std::string& path, ExportedGraph graph);

}  // namespace tandem::io
