#include <set>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/io/internal/body_export.h"
#include "tandem/io/internal/wire.h"
#include "tandem/io/profile_export.h"
#include "tandem/io/proto/messages.h"

namespace tandem::io {

std::string to_run_metadata(const profiler::Profile& profile) {
  proto::RunMetadataGraphs metadata;
  ExportNames functions;
  for (const profiler::FunctionGraph& from : profile.function_graphs()) {
    if (from.nodes.empty()) continue;
    const std::string scope = functions.make(from.function.empty() ? "function" : from.function);
    ExportNames names;
    std::vector<std::string> name_of;
    for (const auto& node : from.nodes) name_of.push_back(cat(scope, "/", names.make(node.name)));
    proto::GraphDef graph;
    for (std::size_t i = 0; i < from.nodes.size(); ++i) {
      proto::NodeDef& node = graph.node.emplace_back();
      node.name = name_of[i];
      node.op = from.nodes[i].op;
      for (const int in : from.nodes[i].inputs)
        node.input.push_back(name_of[static_cast<std::size_t>(in)]);
    }
    metadata.function_graphs.emplace_back().pre_optimization_graph.make() = std::move(graph);
  }
  return proto::WireWriter::write(metadata);
}

}  // namespace tandem::io
