#include "tandem/io/internal/graph_bytes.h"

#include <algorithm>
#include <iterator>

#include "tandem/fs/file_system.h"
#include "tandem/io/internal/text.h"
#include "tandem/io/internal/wire.h"

namespace tandem::io {

std::string graph_bytes(const proto::GraphDef& graph, GraphFormat format) {
  return format == GraphFormat::kText ? proto::TextWriter::write(graph)
                                      : proto::WireWriter::write(graph);
}

bool is_text(std::string_view bytes) {
  static constexpr std::string_view kBeginnings[] = {"node", "library", "version", "debug_info"};
  // A line's end and a '#' are also how a message begins, whose first node has 35 bytes.
  if (bytes.starts_with('#')) return true;
  bytes.remove_prefix(std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size()));
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [&](std::string_view beginning) { return bytes.starts_with(beginning); });
}

bool is_text_file(const std::string& path) { return path.ends_with(".pbtxt"); }

ExportedGraph write_file(const std::string& path, ExportedGraph graph) {
  fs::write_file(path, graph.bytes);
  graph.bytes.clear();
  return graph;
}

}  // namespace tandem::io
