#include "tandem/io/internal/graph_bytes.h"

#include <algorithm>
#include <iterator>

#include "tandem/fs/file_system.h"
#include "tandem/io/internal/text.h"
#include "tandem/io/internal/wire.h"

namespace tandem::io {

namespace {

// The fields of GraphDef.
constexpr std::string_view kFields[] = {"node", "library", "version", "versions", "debug_info"};
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_";

void skip_blanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

}  // namespace

std::string graph_bytes(const proto::GraphDef& graph, GraphFormat format) {
  return format == GraphFormat::kText ? proto::TextWriter::write(graph)
                                      : proto::WireWriter::write(graph);
}

bool is_text(std::string_view bytes) {
  // A message begins with a line's end, too: the tag of its first node, whose length comes next and
  // may be another blank or, followed by the tag of the node's name, a '#'.
  if (bytes.starts_with("\n#\n")) return false;
  skip_blanks(bytes);
  if (bytes.starts_with('#')) return true;
  const std::size_t word = std::min(bytes.find_first_not_of(kLetters), bytes.size());
  const std::string_view field = bytes.substr(0, word);
  if (std::find(std::begin(kFields), std::end(kFields), field) == std::end(kFields)) return false;
  bytes.remove_prefix(word);
  skip_blanks(bytes);
  return bytes.starts_with(':') || bytes.starts_with('{') || bytes.starts_with('<');
}

bool is_text_file(const std::string& path) { return path.ends_with(".pbtxt"); }

ExportedGraph write_file(const std::string& path, ExportedGraph graph) {
  fs::write_file(path, graph.bytes);
  graph.bytes.clear();
  return graph;
}

}  // namespace tandem::io
