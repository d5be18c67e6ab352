#include "tandem/distribute/internal/remote/call_templates.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/request_ids.h"
#include "tandem/graph/op_registry.h"
#include "tandem/io/graph_export.h"
#include "tandem/runtime/runtime.h"

namespace tandem::distribute {
namespace {

constexpr const char* kCall = "call";

Node* add_arg(Graph& graph, const OpRegistry& ops, DType dtype, std::size_t index) {
  Graph::NodeSpec spec;
  spec.op = &ops.of_kind(NodeKind::kArg);
  spec.name = cat("arg_", index);
  spec.attrs = AttrMap{{"T", dtype}, {"index", static_cast<std::int64_t>(index)}};
  return graph.add(std::move(spec));
}

// What the exported graph says of its node `kCall`.
void read_call(Graph graph, CallTemplate& call) {
  io::ImportedGraph imported;
  imported.graph = std::make_shared<const Graph>(std::move(graph));
  imported.producer = io::kGraphDefVersion;
  const std::string bytes = io::export_graph_def(imported).bytes;
  proto::GraphParts parts;
  read_part(bytes, parts);
  for (const std::string_view node_bytes : parts.node) {
    proto::OperationNode node;
    read_part(node_bytes, node);
    if (node.name != kCall) continue;
    for (const std::string_view attr : node.attr) call.attrs.emplace_back(attr);
  }
  proto::FunctionList library;
  read_part(parts.library, library);
  for (const std::string_view function : library.function) call.functions.emplace_back(function);
}

// A copy whose name, and those of the functions that it calls, end in `suffix`: names of a client's
// functions need not differ, those of a task's do.
FunctionRef renamed(const FunctionRef& function, const std::string& suffix,
                    std::map<const Function*, FunctionRef>& done) {
  if (!function) return function;
  if (const auto found = done.find(function.get()); found != done.end()) return found->second;
  std::vector<Node*> mapped;
  Graph body = function->body().clone(&mapped);
  for (const auto& node : body.nodes()) {
    const AttrMap attrs = node->attrs();
    for (const auto& [name, value] : attrs) {
      if (name.starts_with("_")) continue;
      if (const auto* one = value.get_if<FunctionRef>()) {
        body.set_attr(node.get(), name, renamed(*one, suffix, done));
      } else if (const auto* list = value.get_if<std::vector<FunctionRef>>()) {
        std::vector<FunctionRef> changed;
        for (const FunctionRef& f : *list) changed.push_back(renamed(f, suffix, done));
        body.set_attr(node.get(), name, std::move(changed));
      }
    }
  }
  const auto at = [&](const Node* node) { return mapped[static_cast<std::size_t>(node->id())]; };
  std::vector<Node*> args, effects;
  std::vector<Output> results;
  for (const Node* arg : function->args()) args.push_back(at(arg));
  for (const Output& result : function->results())
    results.push_back({at(result.node), result.index});
  for (const Node* effect : function->control_results()) effects.push_back(at(effect));
  FunctionRef made = std::make_shared<const Function>(
      cat(function->name(), suffix, done.size()), std::move(body), std::move(args),
      std::move(results), std::move(effects), function->may_optimize());
  done.emplace(function.get(), made);
  return made;
}

CallTemplate make_op(const OpDef& op, const AttrMap& attrs,
                     const std::vector<CallTemplates::Input>& inputs) {
  const OpRegistry& ops = Runtime::current().ops();
  Graph graph;
  Graph::NodeSpec spec;
  spec.op = &op;
  spec.name = kCall;
  std::map<const Function*, FunctionRef> done;
  for (const auto& [name, value] : attrs) {
    const auto* function = value.get_if<FunctionRef>();
    if (function) {
      spec.attrs.set(name, renamed(*function, cat("_", new_handle(), "_"), done));
    } else {
      spec.attrs.set(name, value);
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Node* arg = add_arg(graph, ops, inputs[i].dtype, i);
    graph.set_output_shape(arg, 0, PartialShape(inputs[i].shape));
    spec.inputs.push_back({arg, 0});
  }
  const Node* node = graph.add(std::move(spec));
  CallTemplate call;
  call.name = op.name;
  call.dtypes = node->output_dtypes();
  for (int i = 0; i < node->num_outputs(); ++i) call.shapes.push_back(node->output_shape(i));
  read_call(std::move(graph), call);
  return call;
}

CallTemplate make_function(const FunctionRef& function) {
  const OpRegistry& ops = Runtime::current().ops();
  std::map<const Function*, FunctionRef> done;
  const FunctionRef given = renamed(function, cat("_", new_handle(), "_"), done);
  Graph graph;
  Graph::NodeSpec spec;
  spec.op = &ops.get("StatefulPartitionedCall");
  spec.name = kCall;
  for (std::size_t i = 0; i < given->args().size(); ++i)
    spec.inputs.push_back({add_arg(graph, ops, given->args()[i]->output_dtype(0), i), 0});
  spec.attrs = AttrMap{{"f", given}, {"Tout", given->result_dtypes()}};
  graph.add(std::move(spec));
  CallTemplate call;
  call.dtypes = given->result_dtypes();
  call.shapes = given->result_shapes();
  read_call(std::move(graph), call);
  for (const std::string& bytes : call.attrs) {
    proto::AttrEntry attr;
    read_part(bytes, attr);
    if (attr.key == "f") call.name = attr.value->func->name;
  }
  call.attrs.clear();
  return call;
}

}  // namespace

std::shared_ptr<const CallTemplate> CallTemplates::of_op(const OpDef& op, const AttrMap& attrs,
                                                         std::vector<Input> inputs) {
  {
    const MutexLock lock(mutex_);
    for (const Entry& entry : ops_[op.name]) {
      if (entry.inputs == inputs && entry.attrs == attrs) return entry.made;
    }
  }
  auto made = std::make_shared<const CallTemplate>(make_op(op, attrs, inputs));
  const MutexLock lock(mutex_);
  std::vector<Entry>& entries = ops_[op.name];
  if (entries.size() >= kMaxOfOp) entries.clear();
  entries.push_back({attrs, std::move(inputs), made});
  return made;
}

std::shared_ptr<const CallTemplate> CallTemplates::of_function(const FunctionRef& function) {
  {
    const MutexLock lock(mutex_);
    const auto found = functions_.find(function.get());
    if (found != functions_.end()) return found->second.made;
  }
  auto made = std::make_shared<const CallTemplate>(make_function(function));
  const MutexLock lock(mutex_);
  if (functions_.size() >= kMaxFunctions) functions_.clear();
  return functions_.emplace(function.get(), FunctionEntry{function, made}).first->second.made;
}

}  // namespace tandem::distribute
