// SavedModels of TensorFlow 1: a graph with variables, and what to feed and fetch.

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/resource_handle.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/passes.h"
#include "tandem/graph/resource_manager.h"
#include "tandem/io/graph_session.h"
#include "tandem/io/internal/import.h"
#include "tandem/io/internal/wire.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/trace.h"
#include "tandem/saved_model/internal/concrete.h"
#include "tandem/saved_model/internal/object.h"
#include "tandem/saved_model/internal/object_loader.h"
#include "tandem/saved_model/internal/tensor_info.h"

namespace tandem::saved_model::internal {
namespace {

namespace proto = io::proto;

constexpr const char* kInitSignature = "__saved_model_init_op";

std::string node_of(const std::string& tensor) { return tensor.substr(0, tensor.find(':')); }

bool makes_resource(const Node& node) {
  return node.inputs().empty() && node.num_outputs() == 1 &&
         node.output_dtype(0) == DType::kResource && node.kind() != NodeKind::kArg &&
         !node.op().name.starts_with("Placeholder");
}

bool holds_references(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    const auto& dtypes = node->output_dtypes();
    return std::any_of(dtypes.begin(), dtypes.end(), is_ref);
  });
}

// The session of the graph, and the variables that stand for those of the graph: functions capture
// these, so that they are differentiated and saved as any.
struct LoadedGraph {
  std::shared_ptr<io::GraphSession> session;
  std::map<std::string, Variable> variables;  // by node

  Tensor resource(const Node& node) const {
    if (const auto found = variables.find(node.name()); found != variables.end())
      return found->second.handle();
    return Tensor(session->run({}, {node.name()}).front());
  }
};

// The step as a function of the feeds; what makes resources is captured.
ConcreteFunction lift(const LoadedGraph& loaded, const FunctionRef& step) {
  MutableFunction f(*step);
  const OpRegistry& ops = Runtime::current().ops();
  std::vector<Node*> makers;
  for (const auto& node : f.graph.nodes()) {
    if (makes_resource(*node)) makers.push_back(node.get());
  }
  std::vector<Tensor> captures;
  for (Node* maker : makers) {
    Graph::NodeSpec spec;
    spec.op = &ops.of_kind(NodeKind::kArg);
    spec.name = maker->name() + "/resource";
    spec.attrs = AttrMap{{"T", DType::kResource}, {"index", f.args.size()}};
    Node* arg = f.graph.add(std::move(spec));
    f.graph.set_output_shape(arg, 0, PartialShape::scalar());
    if (const AttrValue* shape = maker->attrs().find("shape")) {
      const auto users = f.graph.consumers();
      for (Node* user : users[static_cast<std::size_t>(maker->id())]) {
        if (user->op().name == "ReadVariableOp") f.graph.set_attr(user, "_shape", *shape);
      }
    }
    captures.push_back(loaded.resource(*maker));
    f.replace({maker, 0}, {arg, 0});
    f.args.push_back(arg);
  }
  passes::prune(f);
  return {
      std::make_shared<const tandem::Function>(step->name(), std::move(f.graph), std::move(f.args),
                                               std::move(f.results), std::move(f.control_results)),
      std::move(captures)};
}

class GraphLoader {
 public:
  GraphLoader(std::shared_ptr<proto::MetaGraphDef> meta, const ModelFolder& folder)
      : meta_(std::move(meta)), folder_(folder) {}

  Module run() {
    io::ImportOptions options;
    options.allow_unsupported = true;
    options.name = folder_.name();
    auto loaded = std::make_shared<LoadedGraph>();
    loaded->session =
        std::make_shared<io::GraphSession>(io::import_message(meta_->graph_def.make(), options),
                                           io::GraphSession::Options{.isolate_state = true});
    initialize(*loaded->session);
    auto root = std::make_shared<Object>();
    Module module(root);
    add_variables(*loaded, module);
    for (const auto& [name, signature] : meta_->signature_def) {
      if (name != kInitSignature)
        root->signatures.emplace(name, make_signature(name, signature, loaded));
    }
    root->tags = meta_->meta_info_def->tags;
    return module;
  }

 private:
  void initialize(const io::GraphSession& session) const {
    const proto::SaverDef& saver = *meta_->saver_def;
    if (const std::string prefix = folder_.variables(); !prefix.empty()) {
      if (saver.restore_op_name.empty())
        throw InvalidArgumentError(
            cat(folder_.name(), " has values, but does not say how they are restored."));
      session.run({{saver.filename_tensor_name, Array::scalar(prefix)}}, {},
                  {saver.restore_op_name});
    }
    const std::string init = init_node();
    if (init.empty()) return;
    std::vector<io::GraphSession::Feed> feeds;
    for (const proto::AssetFileDef& asset : meta_->asset_file_def)
      feeds.push_back({asset.tensor_info->name, Array::scalar(folder_.asset(asset.filename))});
    session.run(feeds, {}, {init});
  }

  // What fills tables and the like; "" if there is nothing to do.
  std::string init_node() const {
    const auto signature = meta_->signature_def.find(kInitSignature);
    if (signature != meta_->signature_def.end()) {
      const auto output = signature->second.outputs.find(kInitSignature);
      if (output != signature->second.outputs.end()) return node_of(output->second.name);
    }
    for (const char* name : {"saved_model_main_op", "legacy_init_op"}) {
      const auto found = meta_->collection_def.find(name);
      if (found != meta_->collection_def.end() && !found->second.node_list->value.empty())
        return node_of(found->second.node_list->value.front());
    }
    return "";
  }

  // Variables that training changes, by node; all if the file does not say.
  bool is_trainable(const std::string& node) const {
    const auto found = meta_->collection_def.find("trainable_variables");
    if (found == meta_->collection_def.end()) return true;
    const auto& list = found->second.bytes_list->value;
    return std::any_of(list.begin(), list.end(), [&](const std::string& bytes) {
      proto::VariableDef def;
      proto::WireReader(bytes).read(def);
      return node_of(def.variable_name) == node;
    });
  }

  void add_variables(LoadedGraph& loaded, Module& module) const {
    std::vector<Variable> all;
    for (const auto& node : loaded.session->imported().graph->nodes()) {
      if (node->op().name != "VarHandleOp") continue;
      const Array handle = loaded.session->run({}, {node->name()}).front();
      VariableResource& resource = variable_of(handle);
      std::unique_lock lock(resource.mutex());
      if (!resource.initialized()) continue;
      Array value = resource.value().clone();
      lock.unlock();
      const Variable variable(Tensor(std::move(value)), {.trainable = is_trainable(node->name()),
                                                         .name = node->name(),
                                                         .shape = resource.shape()});
      loaded.variables.emplace(node->name(), variable);
      all.push_back(variable);
    }
    module.set("variables", all);
  }

  Signature make_signature(const std::string& name, const proto::SignatureDef& def,
                           const std::shared_ptr<LoadedGraph>& loaded) const {
    auto concrete = std::make_shared<Concrete>();
    concrete->name = name;
    std::vector<std::string> feeds, fetches;
    const auto read = [&](const auto& infos, std::vector<std::string>& tensors) {
      std::map<std::string, Value> specs;
      for (const auto& [key, info] : infos) {
        try {
          NamedTensors named = tensors_of(info);
          tensors.insert(tensors.end(), named.tensors.begin(), named.tensors.end());
          specs.emplace(key, std::move(named.spec));
        } catch (const Error& error) {
          throw_error(error.code(), cat("Signature '", name, "' of ", folder_.name(), ", '", key,
                                        "': ", error.what()));
        }
      }
      return Value::dict(std::move(specs));
    };
    concrete->inputs = Value::tuple({Value::tuple({}), read(def.inputs, feeds)});
    concrete->outputs = read(def.outputs, fetches);
    concrete->name_specs();
    concrete->make = [loaded, feeds, fetches, name] {
      const auto step = loaded->session->prepare(feeds, fetches);
      if (holds_references(step.function()->body())) {
        throw UnimplementedError(
            cat("Signature '", name, "' uses variables of TensorFlow 1 that are no ",
                "resources: it can be called, but not traced, differentiated or ", "saved."));
      }
      return lift(*loaded, step.function());
    };
    if (holds_references(*loaded->session->imported().graph)) {
      concrete->run = [loaded, feeds, fetches](const std::vector<Tensor>& args) {
        std::vector<Array> values;
        for (const Tensor& arg : args) values.push_back(arg.array());
        std::vector<Tensor> results;
        for (Array& value : loaded->session->prepare(feeds, fetches).run(values))
          results.emplace_back(std::move(value));
        return results;
      };
    }
    return Signature(std::move(concrete));
  }

  const std::shared_ptr<proto::MetaGraphDef> meta_;
  const ModelFolder& folder_;
};

}  // namespace

Module load_graph(std::shared_ptr<proto::MetaGraphDef> meta, const ModelFolder& folder) {
  const TraceScope eager(nullptr);
  const StopRecording unheard;
  return GraphLoader(std::move(meta), folder).run();
}

}  // namespace tandem::saved_model::internal
