#include <algorithm>
#include <map>
#include <utility>

#include "tandem/cli/graph_drawing.h"
#include "tandem/cli/inspect/contents.h"
#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/io/graph_def.h"
#include "tandem/io/internal/wire.h"

// Graphs: of a GraphDef, and what a SavedModel says of its own.

namespace tandem::cli {
namespace {

using Json = nlohmann::ordered_json;

// The fields of SavedModel that are shown; all others are passed over.
struct Dim {
  std::int64_t size = 0;
  template <class Self, class Visitor>
  static void fields(Self& self, Visitor& visit) {
    visit(1, "size", self.size);
  }
};
struct TensorShape {
  std::vector<Dim> dim;
  bool unknown_rank = false;
  template <class Self, class Visitor>
  static void fields(Self& self, Visitor& visit) {
    visit(2, "dim", self.dim);
    visit(3, "unknown_rank", self.unknown_rank);
  }
};
struct TensorInfo {
  std::string name;
  std::int32_t dtype = 0;
  io::proto::Sub<TensorShape> shape;
  template <class Self, class Visitor>
  static void fields(Self& self, Visitor& visit) {
    visit(1, "name", self.name);
    visit(2, "dtype", self.dtype);
    visit(3, "tensor_shape", self.shape);
  }
};
struct SignatureDef {
  std::map<std::string, TensorInfo> inputs, outputs;
  std::string method_name;
  template <class Self, class Visitor>
  static void fields(Self& self, Visitor& visit) {
    visit(1, "inputs", self.inputs);
    visit(2, "outputs", self.outputs);
    visit(3, "method_name", self.method_name);
  }
};
struct NodeDef {
  std::string name, op;
  template <class Self, class Visitor>
  static void fields(Self& self, Visitor& visit) {
    visit(1, "name", self.name);
    visit(2, "op", self.op);
  }
};
struct FunctionDef {
  std::vector<NodeDef> nodes;
  template <class Self, class Visitor>
  static void fields(Self& self, Visitor& visit) {
    visit(3, "node_def", self.nodes);
  }
};
struct Library {
  std::vector<FunctionDef> functions;
  template <class Self, class Visitor>
  static void fields(Self& self, Visitor& visit) {
    visit(1, "function", self.functions);
  }
};
struct GraphDef {
  std::vector<NodeDef> nodes;
  Library library;
  template <class Self, class Visitor>
  static void fields(Self& self, Visitor& visit) {
    visit(1, "node", self.nodes);
    visit(2, "library", self.library);
  }
};
struct MetaInfo {
  std::vector<std::string> tags;
  std::string version;
  template <class Self, class Visitor>
  static void fields(Self& self, Visitor& visit) {
    visit(4, "tags", self.tags);
    visit(5, "tensorflow_version", self.version);
  }
};
struct MetaGraph {
  MetaInfo info;
  GraphDef graph;
  std::map<std::string, SignatureDef> signatures;
  template <class Self, class Visitor>
  static void fields(Self& self, Visitor& visit) {
    visit(1, "meta_info_def", self.info);
    visit(2, "graph_def", self.graph);
    visit(5, "signature_def", self.signatures);
  }
};
struct SavedModel {
  std::int64_t schema_version = 0;
  std::vector<MetaGraph> meta_graphs;
  template <class Self, class Visitor>
  static void fields(Self& self, Visitor& visit) {
    visit(1, "saved_model_schema_version", self.schema_version);
    visit(2, "meta_graphs", self.meta_graphs);
  }
};

std::string proto_dtype(std::int32_t dtype) {
  std::string name = dtype_name(static_cast<DType>(dtype));
  for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return "DT_" + (dtype == 0 ? std::string("INVALID") : name);
}

std::string shape_text(const TensorInfo& info) {
  if (!info.shape.has() || info.shape->unknown_rank) return "unknown_rank";
  std::string text;
  for (const Dim& dim : info.shape->dim) text += cat(text.empty() ? "" : ", ", dim.size);
  if (info.shape->dim.size() == 1) text += ",";
  return "(" + text + ")";
}

void add_infos(const char* what, const char* list, const std::map<std::string, TensorInfo>& infos,
               std::string& text, Json& json) {
  text += cat("  The given SavedModel SignatureDef contains the following ", what, "(s):\n");
  json[list] = Json::object();
  for (const auto& [key, info] : infos) {
    text +=
        cat("    ", list, "['", key, "'] tensor_info:\n        dtype: ", proto_dtype(info.dtype),
            "\n        shape: ", shape_text(info), "\n        name: ", info.name, "\n");
    json[list][key] = {
        {"dtype", proto_dtype(info.dtype)}, {"shape", shape_text(info)}, {"name", info.name}};
  }
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

// As `saved_model_cli show --all` prints it.
void add_meta_graph(const MetaGraph& meta, FileContents& contents) {
  std::string& text = contents.text;
  Json json = {{"tags", meta.info.tags}, {"tensorflow_version", meta.info.version}};
  text += cat("\nMetaGraphDef with tag-set: '", joined(meta.info.tags),
              "' contains the following SignatureDefs:\n");
  for (const auto& [name, signature] : meta.signatures) {
    text += cat("\nsignature_def['", name, "']:\n");
    Json entry = Json::object();
    add_infos("input", "inputs", signature.inputs, text, entry);
    add_infos("output", "outputs", signature.outputs, text, entry);
    text += cat("  Method name is: ", signature.method_name, "\n");
    entry["method_name"] = signature.method_name;
    json["signatures"][name] = std::move(entry);
  }
  std::map<std::string, int> ops;
  for (const NodeDef& node : meta.graph.nodes) ++ops[node.op];
  for (const FunctionDef& function : meta.graph.library.functions) {
    for (const NodeDef& node : function.nodes) ++ops[node.op];
  }
  json["functions"] = meta.graph.library.functions.size();
  json["ops"] = ops;
  contents.facts["meta_graphs"].push_back(std::move(json));
}

}  // namespace

FileContents saved_model_contents(const std::string& folder) {
  const std::string path = folder + "/saved_model.pb";
  SavedModel model;
  try {
    const std::string bytes = fs::read_file(path);
    io::proto::WireReader(bytes).read(model);
  } catch (const DataLossError& error) {
    throw DataLossError(cat(path, " is damaged: ", error.what(), "."));
  }
  FileContents contents;
  if (fs::exists(folder + "/variables/variables.index"))
    contents = checkpoint_contents(folder + "/variables/variables");
  contents.format = "SavedModel";
  contents.facts = {{"schema_version", model.schema_version}, {"meta_graphs", Json::array()}};
  for (const MetaGraph& meta : model.meta_graphs) add_meta_graph(meta, contents);
  if (fs::exists(folder + "/assets"))
    contents.facts["assets"] = fs::file_system_of(folder).list(folder + "/assets");
  return contents;
}

FileContents graph_contents(const std::string& path) {
  io::ImportOptions options;
  options.allow_unsupported = true;
  const io::ImportedGraph imported = io::read_graph_def(path, options);
  FileContents contents{"GraphDef", Json::object(), {}};
  std::map<std::string, int> ops;
  Json placeholders = Json::array();
  const OpNames names(imported);
  for (const auto& node : imported.graph->nodes()) {
    const std::string& op = names.of(*node);
    ++ops[op];
    if (node->kind() == NodeKind::kConst) {
      const AttrValue* value = node->attrs().find("value");
      const auto* array = value ? value->get_if<std::shared_ptr<const Array>>() : nullptr;
      if (array && *array) contents.tensors.push_back(tensor_of(node->name(), **array));
    } else if (node->kind() == NodeKind::kArg || op.starts_with("Placeholder")) {
      placeholders.push_back(
          cat(node->name(), "  ", dtype_name(node->output_dtype(0)), node->output_shape(0)));
    }
  }
  Json functions = Json::array();
  for (const io::LibraryFunction& f : imported.library)
    functions.push_back(cat(f.name, "(", joined(f.args), ") -> (", joined(f.results), ")"));
  contents.facts = {{"nodes", imported.graph->num_nodes()},
                    {"producer", imported.producer},
                    {"inputs", placeholders},
                    {"functions", functions},
                    {"ops", ops},
                    {"cannot_run", imported.unsupported.size()}};
  return contents;
}

}  // namespace tandem::cli
