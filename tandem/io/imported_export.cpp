// Graphs that were read, written again.

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/error.h"
#include "tandem/io/graph_export.h"
#include "tandem/io/internal/body_export.h"
#include "tandem/io/internal/graph_bytes.h"
#include "tandem/io/internal/stand_in.h"
#include "tandem/io/internal/wire.h"

namespace tandem::io {
namespace {

bool names_function(const proto::NodeDef& def) {
  return std::any_of(def.attr.begin(), def.attr.end(), [](const auto& attr) {
    const proto::AttrValue& value = attr.second;
    return value.which_value == proto::AttrValue::Case::kFunc ||
           (value.which_value == proto::AttrValue::Case::kList && !value.list->func.empty());
  });
}

// Null for nodes that have an op here. What the message says of other nodes still holds: all keep
// their names and outputs. What it says of functions does not.
const Array* as_it_came(const Node& node) {
  const AttrValue* bytes = node.attrs().find(kNodeDefAttr);
  const auto* array = bytes ? bytes->get_if<std::shared_ptr<const Array>>() : nullptr;
  return array ? array->get() : nullptr;
}

proto::NodeDef message_of(const Node& node, const std::string& name, const Array& bytes) {
  proto::NodeDef def;
  const std::string_view text(static_cast<const char*>(bytes.raw_data()), bytes.num_bytes());
  proto::WireReader(text).read(def);
  if (names_function(def)) {
    throw UnimplementedError(cat("Node '", node.name(), "' (", def.op,
                                 ") was imported but is unknown here (", *why_unsupported(node),
                                 "), and since it names functions it is not exported either."));
  }
  def.name = name;
  return def;
}

}  // namespace

ExportedGraph export_graph_def(const ImportedGraph& imported, GraphFormat format) {
  if (!imported.graph)
    throw InvalidArgumentError(
        "There is no graph to export. import_graph_def and read_graph_def give one.");
  proto::GraphDef graph;
  auto& versions = graph.versions.make();
  versions.producer = imported.producer;
  versions.min_consumer = imported.min_consumer;
  LibraryExport library(graph);
  BodyExport body(library, graph.node, false);
  ExportedGraph result;
  std::vector<const Node*> nodes;
  for (const auto& node : imported.graph->nodes()) nodes.push_back(node.get());
  body.plan(nodes, {}, {});
  body.write([&](const Node& node) {
    const Array* bytes = as_it_came(node);
    if (bytes) graph.node.push_back(message_of(node, body.name(node), *bytes));
    return bytes != nullptr;
  });
  for (const Node* node : nodes) {
    if (node->op().traits.placeholder && node->inputs().empty())
      result.inputs.push_back(body.name(*node) + ":0");
  }
  result.bytes = graph_bytes(graph, format);
  return result;
}

ExportedGraph write_graph_def(const String& path, const ImportedGraph& imported) {
  return write_file(path, export_graph_def(imported, is_text_file(path) ? GraphFormat::kText
                                                                        : GraphFormat::kBinary));
}

}  // namespace tandem::io
