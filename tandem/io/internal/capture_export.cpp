#include "tandem/io/internal/capture_export.h"

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/resource_manager.h"
#include "tandem/graph/table_resource.h"
#include "tandem/io/internal/add_node.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/io/internal/wire.h"

namespace tandem::io {
namespace {

Array value_of(VariableResource& variable) {
  std::lock_guard lock(variable.mutex());
  return variable.value().clone();
}

// A name that is equal for equal tables, so that a graph finds a table of its name only where it is
// the same.
std::string name_of(const TableResource::Contents& contents) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const Array* part : {&contents.keys, &contents.values}) {
    proto::TensorProto proto;
    encode_tensor(*part, proto);
    for (const char c : proto::WireWriter::write(proto))
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[(hash >> shift) & 15];
  return "hash_table_" + digits;
}

class CaptureExport {
 public:
  CaptureExport(MutableFunction& f, ExportVariables variables, const OpRegistry& ops)
      : f_(f), variables_(variables), ops_(ops) {}

  void bind(Node* arg, const Array& value) {
    if (value.dtype() == DType::kVariant) refuse(arg, "a variant");
    if (value.dtype() != DType::kResource) {
      f_.replace({arg, 0}, {constant(arg->name(), value), 0});
      return;
    }
    Resource* resource =
        value.num_elements() == 1 ? value.data<ResourceHandle>()->resource() : nullptr;
    if (auto* variable = dynamic_cast<VariableResource*>(resource)) {
      if (variables_ == ExportVariables::kFreeze) {
        freeze(arg, *variable);
      } else {
        keep(arg, *variable);
      }
      return;
    }
    const auto* table = dynamic_cast<TableResource*>(resource);
    if (!table || table->may_change())
      refuse(arg, resource ? cat("a ", resource->debug_string()) : "a resource");
    add_table(arg, contents_of(*table, arg));
  }

  std::vector<Node*> first() && { return std::move(first_); }

 private:
  std::vector<Node*> users_of(const Node* node) const {
    return f_.graph.consumers()[static_cast<std::size_t>(node->id())];
  }

  // "The function can't be exported, since it captures a table, which {{node find}} uses".
  std::string why_not(const Node* arg, const std::string& what) const {
    const std::vector<Node*> users = users_of(arg);
    return cat("The function can't be exported, since it captures ", what,
               users.empty() ? "" : cat(", which ", users.front()->describe(), " uses"));
  }

  [[noreturn]] void refuse(const Node* arg, const std::string& what) const {
    throw UnimplementedError(
        cat(why_not(arg, what),
            ". A GraphDef takes along captured values, variables, and tables that are filled once "
            "(StaticHashTable, StaticVocabularyTable): make it in the function, or give what is "
            "read from it to the function as an argument."));
  }

  TableResource::Contents contents_of(const TableResource& table, const Node* arg) const {
    try {
      return table.contents();
    } catch (const FailedPreconditionError& error) {
      throw FailedPreconditionError(
          cat(why_not(arg, cat("a ", table.debug_string(), " that is not filled yet")),
              ". Fill it, then export.\n", error.what()));
    }
  }

  Node* add(const char* op, const std::string& name, std::vector<Output> inputs, AttrMap attrs) {
    return add_node(f_.graph, ops_, op, name, std::move(inputs), std::move(attrs));
  }
  Node* constant(const std::string& name, Array value) {
    const DType dtype = value.dtype();
    return add("Const", name, {}, {{"dtype", dtype}, {"value", std::move(value)}});
  }

  void freeze(Node* handle, VariableResource& variable) {
    const std::string name = variable.name().empty() ? handle->name() : variable.name();
    Node* frozen = nullptr;
    for (Node* user : users_of(handle)) {
      if (!frozen) frozen = constant(name, value_of(variable));
      const std::string& op = user->op().name;
      if (op == "ReadVariableOp") {
        f_.replace({user, 0}, {frozen, 0});
      } else if (op == "ResourceGather") {
        Node* axis = constant(
            user->name() + "/axis",
            Array::scalar<std::int32_t>(static_cast<int>(user->attr<std::int64_t>("batch_dims"))));
        Node* gather =
            add("GatherV2", user->name() + "/frozen", {{frozen, 0}, user->inputs()[1], {axis, 0}},
                {{"batch_dims", user->attr<std::int64_t>("batch_dims")}});
        f_.replace({user, 0}, {gather, 0});
      } else if (op == "VariableShape") {
        Node* shape = add("Shape", user->name() + "/frozen", {{frozen, 0}},
                          {{"out_type", user->attr<DType>("out_type")}});
        f_.replace({user, 0}, {shape, 0});
      } else {
        throw InvalidArgumentError(cat("Variable '", name, "' can't be frozen: ", user->describe(),
                                       " needs the variable itself. Export with "
                                       "ExportVariables::kKeep."));
      }
      // What waited for the read need not wait for a constant.
      for (const auto& node : f_.graph.nodes()) {
        std::vector<Node*> before = node->control_inputs();
        if (std::erase(before, user) > 0) f_.graph.set_control_inputs(node.get(), before);
      }
      std::erase(f_.control_results, user);
    }
  }

  void keep(Node* arg, VariableResource& variable) {
    const std::string name = variable.name().empty() ? arg->name() : variable.name();
    Node* handle =
        add("VarHandleOp", name, {}, {{"dtype", variable.dtype()}, {"shape", variable.shape()}});
    f_.graph.set_attr(handle, "shared_name", handle->name());
    f_.replace({arg, 0}, {handle, 0});
    Node* initial = constant(handle->name() + "/initial_value", value_of(variable));
    first_.push_back(add("AssignVariableOp", handle->name() + "/assign",
                         {{handle, 0}, {initial, 0}}, {{"dtype", variable.dtype()}}));
  }

  // Without a node `init` users of the table wait for what fills it: a second time it is
  // filled with the same, which tables take.
  void add_table(Node* arg, TableResource::Contents contents) {
    const DType key = contents.keys.dtype(), value = contents.values.dtype();
    Node* handle =
        add("HashTableV2", "hash_table", {},
            {{"key_dtype", key}, {"value_dtype", value}, {"shared_name", name_of(contents)}});
    const std::string& name = handle->name();
    Node* fill = add("LookupTableImportV2", name + "/fill",
                     {{handle, 0},
                      {constant(name + "/keys", std::move(contents.keys)), 0},
                      {constant(name + "/values", std::move(contents.values)), 0}},
                     {{"Tin", key}, {"Tout", value}});
    if (variables_ == ExportVariables::kKeep) {
      first_.push_back(fill);
    } else {
      for (Node* user : users_of(arg)) f_.graph.add_control_input(user, fill);
    }
    f_.replace({arg, 0}, {handle, 0});
  }

  MutableFunction& f_;
  const ExportVariables variables_;
  const OpRegistry& ops_;
  std::vector<Node*> first_;
};

}  // namespace

std::vector<Node*> bind_captures(MutableFunction& f, const std::vector<Tensor>& captures,
                                 ExportVariables variables, const OpRegistry& ops) {
  if (captures.size() > f.args.size())
    throw InternalError("a function has more captures than arguments");
  const std::size_t first = f.args.size() - captures.size();
  std::set<const Node*> used;
  for (const auto& node : f.graph.nodes()) {
    for (const Output& in : node->inputs()) used.insert(in.node);
    used.insert(node->control_inputs().begin(), node->control_inputs().end());
  }
  for (const Output& result : f.results) used.insert(result.node);
  CaptureExport bound(f, variables, ops);
  for (std::size_t i = 0; i < captures.size(); ++i) {
    if (used.contains(f.args[first + i])) bound.bind(f.args[first + i], captures[i].array());
  }
  f.args.resize(first);
  return std::move(bound).first();
}

}  // namespace tandem::io
