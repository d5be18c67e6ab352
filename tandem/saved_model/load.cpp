#include "tandem/saved_model/load.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/saved_model/internal/model_folder.h"
#include "tandem/saved_model/internal/object_loader.h"
#include "tandem/saved_model/internal/tensor_info.h"

namespace tandem::saved_model {
namespace {

namespace proto = io::proto;

// Files of TensorFlow 2 that hold a variable or a function have objects; those of TensorFlow 1
// none.
Module load_graph_or_objects(std::shared_ptr<proto::MetaGraphDef> graph,
                             const internal::ModelFolder& folder) {
  return graph->object_graph_def->nodes.empty() ? internal::load_graph(std::move(graph), folder)
                                                : internal::load_objects(std::move(graph), folder);
}

std::string without_slashes(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder;
}

std::vector<TensorSpec> specs_of(const std::map<std::string, proto::TensorInfo>& infos) {
  std::vector<TensorSpec> all;
  for (const auto& [name, info] : infos) {
    const std::vector<TensorSpec> parts = internal::tensors_of(info).spec.specs();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      all.push_back(parts[i]);
      all.back().name = parts.size() == 1 ? name : cat(name, ":", i);
    }
  }
  return all;
}

}  // namespace

Module load(const std::string& path, const LoadOptions& options) {
  const std::string folder = without_slashes(path);
  const std::string name = cat("SavedModel '", folder, "'");
  auto graph = internal::choose_graph(internal::read_saved_model(folder), options.tags, name);
  return load_graph_or_objects(std::move(graph),
                               internal::ModelFolder(folder, name, options.follow_links_out));
}

Module load_bytes(std::string_view bytes, const std::string& name, const LoadOptions& options) {
  auto graph = internal::choose_graph(internal::parse_saved_model(bytes, name), options.tags, name);
  return load_graph_or_objects(std::move(graph), internal::ModelFolder("", name, false));
}

std::vector<MetaGraph> list_graphs(const std::string& folder) {
  std::vector<MetaGraph> graphs;
  for (const proto::MetaGraphDef& meta : internal::read_saved_model(folder).meta_graphs) {
    MetaGraph& graph = graphs.emplace_back();
    graph.tags = meta.meta_info_def->tags;
    graph.tensorflow_version = meta.meta_info_def->tensorflow_version;
    graph.has_objects = !meta.object_graph_def->nodes.empty();
    for (const auto& asset : meta.asset_file_def) graph.assets.push_back(asset.filename);
    for (const auto& [name, def] : meta.signature_def) {
      if (name.starts_with("__saved_model")) continue;
      graph.signatures.push_back(
          {name, def.method_name, specs_of(def.inputs), specs_of(def.outputs)});
    }
  }
  return graphs;
}

}  // namespace tandem::saved_model
