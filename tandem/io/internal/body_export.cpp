#include "tandem/io/internal/body_export.h"

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "tandem/autodiff/internal/custom_call.h"
#include "tandem/core/error.h"
#include "tandem/io/internal/attr_proto.h"
#include "tandem/io/internal/stand_in.h"
#include "tandem/io/internal/tensor_proto.h"

namespace tandem::io {

namespace {

bool allowed(char c, bool first) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return letter || c == '.' || (!first && (c == '_' || c == '/' || c == '-' || c == '>'));
}

}  // namespace

std::string ExportNames::make(const std::string& wanted) {
  std::string name;
  for (const char c : wanted) name += allowed(c, name.empty()) ? c : name.empty() ? 'n' : '_';
  if (name.empty()) name = "node";
  std::string unique = name;
  for (int i = 1; !taken_.insert(unique).second; ++i) unique = cat(name, "_", i);
  return unique;
}

void ExportNames::take(const std::string& name) {
  bool fine = !name.empty();
  for (std::size_t i = 0; i < name.size(); ++i) fine = fine && allowed(name[i], i == 0);
  if (!fine) {
    throw InvalidArgumentError(cat(
        "A node can't be named '", name,
        "': names begin with a letter, a digit or '.', and go on with these or any of _ / - >."));
  }
  if (!taken_.insert(name).second) {
    throw InvalidArgumentError(
        cat("Two nodes can't be named '", name,
            "': each argument and each result of an exported function needs a name of its own."));
  }
}

void BodyExport::ask(const Node& node, const std::string& name) {
  names_.take(name);
  asked_.emplace(&node, name);
}

void BodyExport::set_name(const Node& node, const std::string& name) {
  name_of_[&node] = name;
  arguments_.insert(&node);
}

std::string BodyExport::value(Output output) const {
  const auto instead = with_gradient_.find(output.node);
  return instead == with_gradient_.end() ? own_value(output)
                                         : cat(instead->second, ":output:", output.index);
}

// As a graph names it, also in a function.
std::string BodyExport::graph_name(Output output) const {
  return cat(name_of_.at(output.node), ":", output.index);
}

std::string BodyExport::own_value(Output output) const {
  const Node& node = *output.node;
  const std::string& name = name_of_.at(&node);
  if (arguments_.contains(&node)) return name;
  if (!in_function_) return output.index == 0 ? name : cat(name, ":", output.index);
  int first = 0;
  for (const ArgDef& arg : node.op().outputs) {
    int count = 1;
    if (!arg.type_list_attr.empty()) {
      count = static_cast<int>(node.attr<std::vector<DType>>(arg.type_list_attr).size());
    } else if (!arg.number_attr.empty()) {
      count = static_cast<int>(node.attr<std::int64_t>(arg.number_attr));
    }
    if (output.index < first + count) return cat(name, ":", arg.name, ":", output.index - first);
    first += count;
  }
  throw InternalError(cat("node ", name, " has no output ", output.index));
}

namespace {

// A Fill that a constant has become when it was read.
bool stands_for_constant(const Node& node) {
  return node.attrs().find(kConstantAttr) != nullptr && node.inputs().size() == 2 &&
         node.inputs()[0].node->kind() == NodeKind::kConst &&
         node.inputs()[1].node->kind() == NodeKind::kConst;
}

// Nodes that nothing but such a Fill uses. `used` are those of the body's results and effects.
std::set<const Node*> parts_of_constants(const std::vector<const Node*>& nodes,
                                         std::set<const Node*> used) {
  std::set<const Node*> parts;
  for (const Node* node : nodes) {
    std::set<const Node*>& users = stands_for_constant(*node) ? parts : used;
    for (const Output& in : node->inputs()) users.insert(in.node);
    used.insert(node->control_inputs().begin(), node->control_inputs().end());
  }
  std::erase_if(parts, [&](const Node* node) { return used.contains(node); });
  return parts;
}

}  // namespace

void BodyExport::plan(const std::vector<const Node*>& nodes, const std::vector<Output>& results,
                      const std::vector<Node*>& control_results) {
  std::set<const Node*> used(control_results.begin(), control_results.end());
  for (const Output& result : results) used.insert(result.node);
  const std::set<const Node*> parts = parts_of_constants(nodes, std::move(used));
  for (const Node* node : nodes) {
    if (parts.contains(node)) continue;
    const auto asked = asked_.find(node);
    name_of_[node] = asked != asked_.end() ? asked->second : names_.make(node->name());
    by_own_name_.emplace(node->name(), node);
    planned_.push_back(node);
  }
}

void BodyExport::write(const std::function<bool(const Node&)>& other) {
  for (const Node* node : planned_) {
    if (!other || !other(*node)) write_node(*node);
  }
}

void BodyExport::write_node(const Node& node) {
  if (&node.op() == &stand_in_op()) {
    throw UnimplementedError(cat("Node '", node.name(), "' was imported but is unknown here (",
                                 *why_unsupported(node),
                                 "), and so is not exported as a part of a function."));
  }
  proto::NodeDef def;
  def.name = name_of_.at(&node);
  def.device = node.requested_device();
  if (stands_for_constant(node)) {
    write_constant(node, def);
  } else {
    def.op = node.op().name;
    for (const Output& in : node.inputs()) def.input.push_back(value(in));
    const NameFunction name_of = [this](const FunctionRef& f) { return library_.add(f); };
    for (const auto& [name, value] : node.attrs()) {
      if (!name.starts_with("_")) encode_attr(value, name_of, def.attr[name]);
    }
  }
  for (const Node* before : node.control_inputs()) {
    if (const auto found = name_of_.find(before); found != name_of_.end())
      def.input.push_back("^" + found->second);
  }
  if (const AttrValue* groups = node.attrs().find("_class")) {
    if (const auto* list = groups->get_if<std::vector<std::string>>()) write_colocation(*list, def);
  }
  nodes_.push_back(std::move(def));
  if (in_function_ && !library_.gradient_prefix().empty() && has_custom_gradient(node))
    write_gradient(node);
}

void BodyExport::write_gradient(const Node& call) {
  ExportedGradient gradient;
  gradient.op_type = cat(library_.gradient_prefix(), library_.gradients().size());
  gradient.body = function_;
  gradient.backward = call.attr<FunctionRef>(kCustomGradientAttr);
  gradient.outputs = static_cast<std::size_t>(call.num_outputs());
  gradient.inputs = static_cast<std::size_t>(call.attr<std::int64_t>(kCustomInputsAttr));
  proto::NodeDef identity;
  identity.name = names_.make(name_of_.at(&call) + "/with_gradient");
  identity.op = "IdentityN";
  std::vector<DType> dtypes;
  const auto pass = [&](Output tensor, const std::string& name) {
    identity.input.push_back(name);
    dtypes.push_back(base_dtype(tensor.node->output_dtype(tensor.index)));
  };
  const auto need = [&](Output tensor) {
    gradient.tensors.push_back(graph_name(tensor));
    gradient.dtypes.push_back(base_dtype(tensor.node->output_dtype(tensor.index)));
  };
  std::vector<Output> outputs;
  for (int i = 0; i < call.num_outputs(); ++i) {
    outputs.push_back({const_cast<Node*>(&call), i});
    pass(outputs.back(), own_value(outputs.back()));
  }
  for (std::size_t i = 0; i < call.inputs().size(); ++i) {
    if (i == gradient.inputs) {
      for (const Output& output : outputs) need(output);
    }
    if (i < gradient.inputs) pass(call.inputs()[i], value(call.inputs()[i]));
    need(call.inputs()[i]);
  }
  if (gradient.inputs == call.inputs().size()) {
    for (const Output& output : outputs) need(output);
  }
  encode_attr(dtypes, {}, identity.attr["T"]);
  encode_attr(gradient.op_type, {}, identity.attr["_gradient_op_type"]);
  with_gradient_[&call] = identity.name;
  nodes_.push_back(std::move(identity));
  library_.gradients().push_back(std::move(gradient));
}

void BodyExport::write_constant(const Node& fill, proto::NodeDef& def) const {
  const auto value_of = [&](int input) -> const Array& {
    return *fill.inputs()[static_cast<std::size_t>(input)].node->attr<std::shared_ptr<const Array>>(
        "value");
  };
  const auto sizes = value_of(0).values<std::int64_t>();
  def.op = "Const";
  encode_attr(value_of(1).dtype(), {}, def.attr["dtype"]);
  proto::AttrValue& value = def.attr["value"];
  value.which_value = proto::AttrValue::Case::kTensor;
  encode_repeated(value_of(1), Shape(std::vector<std::int64_t>(sizes.begin(), sizes.end())),
                  value.tensor.make());
}

// TensorFlow refuses a group that is named after no node.
void BodyExport::write_colocation(const std::vector<std::string>& groups,
                                  proto::NodeDef& def) const {
  constexpr std::string_view kPrefix = "loc:@";
  std::vector<std::string> known;
  for (const std::string& group : groups) {
    if (!group.starts_with(kPrefix)) continue;
    const auto found = by_own_name_.find(group.substr(kPrefix.size()));
    if (found != by_own_name_.end()) known.push_back(cat(kPrefix, name_of_.at(found->second)));
  }
  if (!known.empty()) encode_attr(known, {}, def.attr["_class"]);
}

namespace {

proto::OpDef::ArgDef argument(const std::string& name, DType dtype) {
  proto::OpDef::ArgDef arg;
  arg.name = name;
  arg.type = static_cast<proto::DataType>(static_cast<int>(base_dtype(dtype)));
  return arg;
}

}  // namespace

std::string LibraryExport::add(const FunctionRef& function) {
  if (const auto found = names_.find(function.get()); found != names_.end()) return found->second;
  std::string name = function->name();
  for (char& c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && c != '_') c = '_';
  }
  const std::string wanted = prefix_ + (name.empty() ? "f" : name);
  name = wanted;
  for (int i = 1; !taken_.insert(name).second; ++i) name = cat(wanted, "_", i);
  names_.emplace(function.get(), name);

  proto::FunctionDef def;
  proto::OpDef& signature = def.signature.make();
  signature.name = name;
  signature.is_stateful = function->stateful();
  BodyExport body(*this, def.node_def, true);
  body.set_function(name);
  for (std::size_t i = 0; i < function->args().size(); ++i) {
    const Node& arg = *function->args()[i];
    const std::string arg_name = body.names().make(cat("arg_", i));
    body.set_name(arg, arg_name);
    signature.input_arg.push_back(argument(arg_name, arg.output_dtype(0)));
  }
  std::vector<const Node*> nodes;
  for (const Node* node : function->body().topological_order()) {
    if (node->kind() != NodeKind::kArg) nodes.push_back(node);
  }
  body.plan(nodes, function->results(), function->control_results());
  body.write();
  for (std::size_t i = 0; i < function->results().size(); ++i) {
    const Output result = function->results()[i];
    const std::string result_name = cat("result_", i);
    signature.output_arg.push_back(argument(result_name, result.node->output_dtype(result.index)));
    def.ret[result_name] = body.value(result);
  }
  for (std::size_t i = 0; i < function->control_results().size(); ++i) {
    const std::string effect = cat("effect_", i);
    signature.control_output.push_back(effect);
    def.control_ret[effect] = body.name(*function->control_results()[i]);
  }
  graph_.library.make().function.push_back(std::move(def));
  return name;
}

}  // namespace tandem::io
