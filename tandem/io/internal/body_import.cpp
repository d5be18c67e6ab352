#include "tandem/io/internal/body_import.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <queue>

#include "tandem/core/error.h"
#include "tandem/device/device_spec.h"
#include "tandem/graph/op_registry.h"
#include "tandem/io/internal/gradient_import.h"
#include "tandem/io/internal/stand_in.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/io/internal/wire.h"
#include "tandem/runtime/runtime.h"

namespace tandem::io {
namespace {

constexpr std::size_t kLargestFilled = 1 << 20;  // a larger constant of one value becomes a Fill

bool has_name(const std::string& op, const char* name) {
  return op == name || op == std::string("Ref") + name;
}

std::optional<int> parse_index(std::string_view text) {
  int value = 0;
  const auto [next, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || next != text.data() + text.size() || value < 0 ||
      value == std::numeric_limits<int>::max())  // one more is a count of outputs
    return std::nullopt;
  return value;
}

}  // namespace

BodyImport::BodyImport(Library& library, Nodes& nodes, const proto::FunctionDef* function,
                       const Bindings* bindings)
    : library_(library), nodes_(nodes), function_(function), bindings_(bindings) {}

std::string BodyImport::where(const std::string& name) const {
  return function_ ? cat("node '", name, "' of function '", function_->signature->name, "'")
                   : cat("node '", name, "'");
}

void BodyImport::fail(const Pending& node, const std::string& message) const {
  throw InvalidArgumentError(
      cat("In ", where(node.name), node.def ? cat(" (", node.def->op, ")") : "", ": ", message));
}

// A node that contradicts something is reported, and left to a stand-in.
template <class F>
void BodyImport::or_break(Pending& node, F&& step) {
  try {
    step();
  } catch (const InvalidArgumentError& error) {
    if (!follows_a_broken_one(node)) library_.add_problem(error.what());
    node.broken = true;
  }
}

Graph BodyImport::run(const std::vector<Result>& results) {
  if (function_) add_args();
  read_nodes();
  for (Pending& node : pending_) {
    if (!node.def || node.broken) continue;
    or_break(node, [&] { read_op(node); });
    if (node.broken) node.op = nullptr;
  }
  for (Pending& node : pending_) {
    if (node.def) or_break(node, [&] { read_inputs(node); });
  }
  const std::vector<int> sorted = order();
  infer_placeholder_dtypes();
  read_results(results);
  Graph graph;
  for (const int i : sorted) make(graph, pending_[static_cast<std::size_t>(i)]);
  close_loops(graph);
  for (Pending& node : pending_) {
    if (!node.def) args_.push_back(node.made);
  }
  for (const Edge& e : result_edges_) results_.push_back(output(e, "its results"));
  return graph;
}

// ---- Reading: names, ops, attributes ----

// The attribute itself, or the one that the function is called with in its place.
const proto::AttrValue* BodyImport::bound(const proto::AttrValue& value) const {
  if (value.which_value != proto::AttrValue::Case::kPlaceholder) return &value;
  if (bindings_) {
    const auto found = bindings_->find(value.placeholder);
    if (found != bindings_->end()) return &found->second;
  }
  if (function_) {
    for (const auto& attr : function_->signature->attr) {
      if (attr.name == value.placeholder && attr.default_value.has()) return &*attr.default_value;
    }
  }
  throw InvalidArgumentError(cat("it refers to the attribute '", value.placeholder,
                                 "', which the function is not called with"));
}

void BodyImport::add_args() {
  const OpDef& arg_op = library_.runtime().ops().of_kind(NodeKind::kArg);
  for (const auto& arg : function_->signature->input_arg) {
    std::vector<int> types;
    const auto binding = [&](const std::string& name) -> const proto::AttrValue& {
      proto::AttrValue placeholder;
      placeholder.which_value = proto::AttrValue::Case::kPlaceholder;
      placeholder.placeholder = name;
      return *bound(placeholder);
    };
    if (!arg.type_list_attr.empty()) {
      const auto& list = binding(arg.type_list_attr).list->type;
      types.assign(list.begin(), list.end());
    } else {
      const int type = arg.type_attr.empty() ? arg.type : binding(arg.type_attr).type;
      const std::int64_t count = arg.number_attr.empty() ? 1 : binding(arg.number_attr).i;
      library_.count_outputs(count);
      types.assign(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)), type);
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
      const auto dtype = dtype_of_number(types[i]);
      if (!dtype) {
        throw InvalidArgumentError(cat("Argument '", arg.name, "' of function '",
                                       function_->signature->name, "' has dtype ",
                                       dtype_number_name(types[i]), "."));
      }
      Pending node;
      node.name = types.size() == 1 ? arg.name : cat(arg.name, ":", i);
      node.op = &arg_op;
      node.attrs = AttrMap{{"T", arg.is_ref ? ref_dtype(*dtype) : *dtype},
                           {"index", static_cast<std::int64_t>(pending_.size())}};
      if (!by_name_.emplace(node.name, static_cast<int>(pending_.size())).second)
        fail(node, "another argument has the same name.");
      pending_.push_back(std::move(node));
    }
  }
}

namespace {

// Pieces with '>' between them, each of letters, digits and "._/-", and begun by one of "a0.".
bool is_node_name(std::string_view name) {
  bool begins = true;
  for (const char c : name) {
    const bool begin = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.';
    if (!begin && (begins || (c != '_' && c != '/' && c != '-' && c != '>'))) return false;
    begins = c == '>';
  }
  return !begins;
}

}  // namespace

void BodyImport::read_nodes() {
  for (proto::NodeDef& def : nodes_) {
    try {
      read_name(def);
    } catch (const InvalidArgumentError& error) {
      library_.add_problem(error.what());
    }
  }
}

void BodyImport::read_name(proto::NodeDef& def) {
  Pending node;
  node.def = &def;
  node.name = def.name;
  if (node.name.empty()) fail(node, "it has no name.");
  if (!by_name_.emplace(node.name, static_cast<int>(pending_.size())).second)
    fail(node, "there is another node of that name.");
  or_break(node, [&] {
    if (node.name.front() == '^' || node.name.find(':') != std::string::npos)
      fail(node, "a name can't hold ':' or begin with '^'.");
    // Like TensorFlow, which does not look at those in functions. Nodes that its masters add for
    // their own ops, such as _Recv, have names that begin with '_'.
    std::string_view checked = node.name;
    if (def.op.starts_with('_') && checked.starts_with('_')) checked.remove_prefix(1);
    if (!function_ && !is_node_name(checked)) {
      fail(node,
           "Node name contains invalid characters: it begins with a letter, a digit or '.', and "
           "goes on with these and '_', '/', '-', '>'.");
    }
  });
  pending_.push_back(std::move(node));
}

void BodyImport::read_op(Pending& node) {
  const std::string& name = node.def->op;
  try {
    static_cast<void>(DeviceSpec::parse(node.def->device));
  } catch (const InvalidArgumentError& error) {
    fail(node, error.what());
  }
  if (const proto::FunctionDef* callee = library_.find(name)) {
    node.callee = callee;
    read_call(node);
    return;
  }
  node.op = library_.runtime().ops().find(name);
  if (!node.op) {
    const bool of_data =
        name.find("Dataset") != std::string::npos || name.find("Iterator") != std::string::npos;
    node.reason =
        cat("there is no op '", name, "'",
            of_data ? "; of tf.data's ops not all are there (docs/ops.md): feed what this one gives"
                    : "");
    return;
  }
  read_attrs(node);
}

void BodyImport::read_attrs(Pending& node) {
  for (const auto& [name, unbound] : node.def->attr) {
    if (name == "_class") read_colocation(node, unbound);
    if (name == "_gradient_op_type" && function_)
      node.gradient = library_.gradient_of_node(bound(unbound)->s, function_->signature->name);
    if (name.starts_with("_")) continue;  // notes for TensorFlow's own use
    const AttrDef* def = node.op->find_attr(name);
    if (!def) {
      node.reason = cat("op '", node.op->name, "' has no attribute '", name, "' here");
      break;
    }
    try {
      const proto::AttrValue& value = *bound(unbound);
      if (node.op->traits.kind == NodeKind::kConst && name == "value" &&
          value.which_value == proto::AttrValue::Case::kTensor) {
        read_constant(node, value);
      } else {
        node.attrs.set(name, decode_attr(*def, value, [&](const proto::NameAttrList& f) {
                         return library_.import(f);
                       }));
      }
    } catch (const UnimplementedError& error) {
      node.reason = cat("attribute '", name, "': ", error.what());
      break;
    } catch (const InvalidArgumentError& error) {
      fail(node, cat("attribute '", name, "': ", error.what()));
    }
  }
  if (!node.reason.empty()) {
    node.op = nullptr;
  } else if (!function_ && node.op->traits.kind == NodeKind::kConst) {
    node.def->attr["value"].tensor.clear();
  } else if (function_ && !library_.shared_name_suffix().empty()) {
    share_by_suffix(node);
  }
}

// Functions of two models may name their resources alike. A resource without a name is called as
// its node.
void BodyImport::share_by_suffix(Pending& node) const {
  if (!node.op->find_attr("shared_name")) return;
  const AttrValue* given = node.attrs.find("shared_name");
  const auto* name = given ? given->get_if<std::string>() : nullptr;
  node.attrs.set("shared_name",
                 cat(name && !name->empty() ? *name : node.name, library_.shared_name_suffix()));
}

// "loc:@NAME": the node goes where NAME goes (docs/placement.md).
void BodyImport::read_colocation(Pending& node, const proto::AttrValue& value) const {
  const proto::AttrValue* list = bound(value);
  if (list->which_value != proto::AttrValue::Case::kList || list->list->s.empty()) return;
  constexpr std::string_view kPrefix = "loc:@";
  for (const std::string_view group : list->list->s) {
    if (function_ || !group.starts_with(kPrefix))
      continue;  // TensorFlow, too, looks at graphs alone
    const std::string_view with = group.substr(kPrefix.size());
    if (!by_name_.contains(with)) {
      fail(node, cat("Node '", node.name, "' expects to be colocated with unknown node '", with,
                     "'. Its attribute '_class' must name a node of the graph."));
    }
  }
  node.attrs.set("_class", std::vector<std::string>(list->list->s.begin(), list->list->s.end()));
}

void BodyImport::read_constant(Pending& node, const proto::AttrValue& value) {
  DecodedTensor tensor = decode_tensor(*value.tensor, kLargestFilled);
  const auto dtype = node.def->attr.find("dtype");
  if (dtype != node.def->attr.end() && bound(dtype->second)->type != value.tensor->dtype) {
    throw InvalidArgumentError(cat("the value is ", tensor.value.dtype(), " but 'dtype' says ",
                                   dtype_number_name(bound(dtype->second)->type)));
  }
  node.repeated_to = tensor.shape;
  node.attrs.set("value", std::move(tensor.value));
}

// A node whose op is a function's name calls it.
void BodyImport::read_call(Pending& node) {
  proto::NameAttrList name;
  name.name = node.def->op;
  for (const auto& [attr, value] : node.def->attr) {
    if (!attr.starts_with("_")) name.attr[attr] = *bound(value);
  }
  const FunctionRef function = library_.import(name);
  node.op = &library_.runtime().ops().get(function->stateful() ? "StatefulPartitionedCall"
                                                               : "PartitionedCall");
  node.attrs = AttrMap{
      {"f", function}, {"Tin", function->arg_dtypes()}, {"Tout", function->result_dtypes()}};
  node.gradient = library_.gradient_of_function(node.def->op);
}

// ---- Reading: edges ----

void BodyImport::read_inputs(Pending& node) {
  bool control = false;
  for (const std::string& text : node.def->input) {
    if (text.starts_with("^")) {
      control = true;
      const auto found = by_name_.find(std::string_view(text).substr(1));
      if (found == by_name_.end())
        fail(node, cat("its input '", text, "' refers to a node that does not exist."));
      node.controls.push_back(found->second);
      continue;
    }
    if (control) fail(node, cat("its input '", text, "' stands after a control input."));
    for (const auto& [producer, index] : resolve(text, node.name)) {
      const Pending& from = pending_[static_cast<std::size_t>(producer)];
      const bool back =
          from.def && has_name(from.def->op, "NextIteration") && has_name(node.def->op, "Merge");
      node.inputs.push_back({producer, index, back});
    }
  }
  if (node.gradient) read_captures(node);
}

// What a gradient captured is named as a graph names it, "node:1", though it is of a function.
void BodyImport::read_captures(Pending& node) {
  for (const std::string& text : node.gradient->captures) {
    const std::size_t colon = text.rfind(':');
    const auto found = by_name_.find(std::string_view(text).substr(0, colon));
    const auto index = colon == std::string::npos
                           ? std::optional<int>(0)
                           : parse_index(std::string_view(text).substr(colon + 1));
    if (found == by_name_.end() || !index) {
      fail(node, cat("its gradient '", node.gradient->function, "' needs the tensor '", text,
                     "', which does not exist."));
    }
    node.inputs.push_back({found->second, *index, false});
    ++node.num_captures;
  }
}

// (node, output) pairs; several where a function's body names a list as a whole.
std::vector<std::pair<int, int>> BodyImport::resolve(const std::string& text,
                                                     const std::string& user) {
  const auto missing = [&](const std::string& why) {
    throw InvalidArgumentError(cat("In ", where(user), ": its input '", text, "' ", why));
  };
  const std::size_t colon = text.find(':');
  // Elements of list arguments are found under their whole name.
  auto found = by_name_.find(text);
  const bool whole = found != by_name_.end();
  if (!whole) found = by_name_.find(std::string_view(text).substr(0, colon));
  if (found == by_name_.end()) missing("refers to a node that does not exist.");
  const int producer = found->second;
  Pending& from = pending_[static_cast<std::size_t>(producer)];
  const std::string rest = whole || colon == std::string::npos ? "" : text.substr(colon + 1);
  if (!whole && colon != std::string::npos && rest.empty()) missing("is malformed.");
  if (!function_ || !from.def) {
    const auto index = rest.empty() ? 0 : parse_index(rest);
    if (!index || (!from.def && *index != 0)) missing("is malformed.");
    if (!from.op) return {{producer, stand_in_output(from, cat(*index))}};
    return {{producer, *index}};
  }
  const std::size_t second = rest.find(':');
  const std::string output = rest.substr(0, second);
  if (!from.op) return {{producer, stand_in_output(from, rest)}};
  const auto [first, count] = named_outputs(producer, output);
  if (count < 0) missing(cat("refers to an output that '", from.def->op, "' does not have."));
  if (second != std::string::npos) {
    const auto index = parse_index(std::string_view(rest).substr(second + 1));
    if (!index || *index >= count)
      missing(cat("is malformed: '", output, "' has ", count, " values."));
    return {{producer, first + *index}};
  }
  std::vector<std::pair<int, int>> all;
  library_.count_outputs(count);
  for (int i = 0; i < count; ++i) all.emplace_back(producer, first + i);
  return all;
}

// Where the values of a named output begin, and how many there are (-1: no such output).
std::pair<int, int> BodyImport::named_outputs(int producer, const std::string& output) const {
  const Pending& from = pending_[static_cast<std::size_t>(producer)];
  if (from.callee) {
    const auto& args = from.callee->signature->output_arg;
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (args[i].name == output) return {static_cast<int>(i), 1};
    }
    return {0, -1};
  }
  int first = 0;
  for (const ArgDef& arg : from.op->outputs) {
    const int count = num_outputs(from, arg);
    if (arg.name == output) return {first, count};
    first += count;
  }
  return {0, -1};
}

int BodyImport::num_outputs(const Pending& node, const ArgDef& arg) const {
  if (!arg.is_list()) return 1;
  const std::string& name = arg.number_attr.empty() ? arg.type_list_attr : arg.number_attr;
  const AttrValue* value = node.attrs.find(name);
  if (!value) {
    const AttrDef* def = node.op->find_attr(name);
    value = def ? &def->default_value : nullptr;
  }
  if (value) {
    if (const auto* count = value->get_if<std::int64_t>())
      return static_cast<int>(std::clamp<std::int64_t>(*count, 0, INT32_MAX));
    if (const auto* types = value->get_if<std::vector<DType>>())
      return static_cast<int>(types->size());
  }
  fail(node, cat("attribute '", name, "' must be given."));
}

int BodyImport::stand_in_output(Pending& node, const std::string& key) {
  // In a graph the key is the index itself.
  if (!function_) {
    const int index = parse_index(key).value_or(0);
    library_.count_outputs(index);
    while (static_cast<int>(node.output_keys.size()) <= index)
      node.output_keys.push_back(cat(node.output_keys.size()));
    return index;
  }
  const auto found = std::find(node.output_keys.begin(), node.output_keys.end(), key);
  const auto index = found - node.output_keys.begin();
  if (found == node.output_keys.end()) node.output_keys.push_back(key);
  return static_cast<int>(index);
}

std::vector<DType> expected_dtypes(const OpDef& op, const std::vector<ArgDef>& args,
                                   const AttrMap& attrs, std::size_t count) {
  std::vector<DType> types;
  const auto value = [&](const std::string& name) -> const AttrValue* {
    if (const AttrValue* given = attrs.find(name)) return given;
    const AttrDef* def = op.find_attr(name);
    return def ? &def->default_value : nullptr;
  };
  for (const ArgDef& arg : args) {
    if (types.size() >= count) break;
    if (!arg.type_list_attr.empty()) {
      const AttrValue* v = value(arg.type_list_attr);
      const auto* list = v ? v->get_if<std::vector<DType>>() : nullptr;
      if (!list) break;
      types.insert(types.end(), list->begin(), list->end());
      continue;
    }
    DType dtype = arg.dtype;
    if (!arg.type_attr.empty()) {
      const AttrValue* v = value(arg.type_attr);
      const auto* t = v ? v->get_if<DType>() : nullptr;
      dtype = t ? *t : DType::kInvalid;
    }
    std::size_t repeat = 1;
    if (!arg.number_attr.empty()) {
      const AttrValue* v = value(arg.number_attr);
      const auto* n = v ? v->get_if<std::int64_t>() : nullptr;
      if (!n) break;
      repeat = static_cast<std::size_t>(
          std::clamp<std::int64_t>(*n, 0, static_cast<std::int64_t>(count - types.size())));
    }
    types.insert(types.end(), repeat,
                 arg.is_ref && dtype != DType::kInvalid ? ref_dtype(dtype) : dtype);
  }
  types.resize(count, DType::kInvalid);
  return types;
}

// What stands for a node that cannot run has the outputs that are used, with the dtypes that its
// own op says, or else its users expect.
void BodyImport::infer_placeholder_dtypes() {
  for (const Pending& node : pending_) {
    for (const Edge& e : node.inputs) {
      int& used = pending_[static_cast<std::size_t>(e.producer)].used_outputs;
      used = std::max(used, e.index + 1);
    }
  }
  for (Pending& node : pending_) {
    if (stands_in(node)) infer_outputs(node);
  }
  for (const Pending& node : pending_) {
    if (!node.op || !node.def) continue;
    const auto types = expected_dtypes(*node.op, node.op->inputs, node.attrs, node.inputs.size());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      Pending& from = pending_[static_cast<std::size_t>(node.inputs[i].producer)];
      if (!stands_in(from)) continue;
      DType& dtype = from.output_dtypes[static_cast<std::size_t>(node.inputs[i].index)];
      if (dtype == DType::kInvalid) dtype = types[i];
    }
  }
  for (Pending& node : pending_) {
    for (DType& dtype : node.output_dtypes) {
      if (dtype == DType::kInvalid) dtype = DType::kFloat;
    }
  }
}

void BodyImport::infer_outputs(Pending& node) {
  std::size_t count = node.output_keys.size();
  if (node.broken) {
    library_.count_outputs(node.used_outputs);
    count = std::max(count, static_cast<std::size_t>(node.used_outputs));
  }
  node.output_dtypes = node.op == nullptr
                           ? std::vector<DType>(count, DType::kInvalid)
                           : expected_dtypes(*node.op, node.op->outputs, node.attrs, count);
}

// Then what is wrong with it may be nothing but that.
bool BodyImport::follows_a_broken_one(const Pending& node) const {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Edge& e) {
    return pending_[static_cast<std::size_t>(e.producer)].broken;
  });
}

// Producers first; of the nodes that are ready the first in the file goes first.
std::vector<int> BodyImport::order() const {
  std::vector<std::vector<int>> users(pending_.size());
  std::vector<int> waiting(pending_.size(), 0);
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const auto use = [&](int producer) {
      users[static_cast<std::size_t>(producer)].push_back(static_cast<int>(i));
      ++waiting[i];
    };
    for (const Edge& e : pending_[i].inputs) {
      if (!e.back) use(e.producer);
    }
    for (const int c : pending_[i].controls) use(c);
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (waiting[i] == 0) ready.push(static_cast<int>(i));
  }
  std::vector<int> sorted;
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    sorted.push_back(next);
    for (const int user : users[static_cast<std::size_t>(next)]) {
      if (--waiting[static_cast<std::size_t>(user)] == 0) ready.push(user);
    }
  }
  if (sorted.size() == pending_.size()) return sorted;
  std::string names;
  int shown = 0;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (waiting[i] == 0) continue;
    if (++shown > 5) break;
    names += cat(names.empty() ? "'" : ", '", pending_[i].name, "'");
  }
  throw InvalidArgumentError(cat(
      function_ ? cat("Function '", function_->signature->name, "'") : "The graph",
      " has a cycle through ", names, shown > 5 ? ", …" : "",
      ". Only the loops of TensorFlow 1, from a NextIteration back to its Merge, may go round."));
}

// A result of a node that cannot run has the dtype that the signature says.
void BodyImport::read_results(const std::vector<Result>& results) {
  for (const Result& result : results) {
    for (const auto& [producer, index] : resolve(result.text, "its results")) {
      result_edges_.push_back({producer, index, false});
      Pending& from = pending_[static_cast<std::size_t>(producer)];
      from.used_outputs = std::max(from.used_outputs, index + 1);
      if (!stands_in(from)) continue;
      library_.count_outputs(index);
      const auto used = static_cast<std::size_t>(index) + 1;
      from.output_dtypes.resize(std::max(used, from.output_dtypes.size()),
                                result.dtype == DType::kInvalid ? DType::kFloat : result.dtype);
    }
  }
}

// ---- Making ----

Output BodyImport::output(const Edge& edge, const std::string& user) const {
  const Pending& from = pending_[static_cast<std::size_t>(edge.producer)];
  if (edge.index >= from.made->num_outputs()) {
    throw InvalidArgumentError(cat(where(from.name), " (", from.made->op().name, ") has ",
                                   from.made->num_outputs(), " outputs, but ", user,
                                   " uses output ", edge.index, "."));
  }
  return {from.made, edge.index};
}

// The functions that a node calls must take and return what the node does: nothing checks it later.
void BodyImport::check_functions(const Pending& node, const Graph::NodeSpec& spec) const {
  const NodeKind kind = node.op->traits.kind;
  if (!calls_functions(kind)) return;
  // What stands before the list (a condition, an index) is no argument of the functions.
  const auto list_arg = std::find_if(node.op->inputs.begin(), node.op->inputs.end(),
                                     [](const ArgDef& arg) { return !arg.type_list_attr.empty(); });
  const auto first = static_cast<std::size_t>(list_arg - node.op->inputs.begin());
  std::vector<DType> inputs;
  for (std::size_t i = first; i < spec.inputs.size(); ++i)
    inputs.push_back(base_dtype(spec.inputs[i].node->output_dtype(spec.inputs[i].index)));
  std::vector<DType> outputs = inputs;
  if (kind != NodeKind::kWhile) {  // whose results are its next inputs
    const AttrValue* out = spec.attrs.find("Tout");
    if (out && out->get_if<std::vector<DType>>()) outputs = *out->get_if<std::vector<DType>>();
  }
  const auto check = [&](const std::string& attr, const FunctionRef& f) {
    std::vector<DType> args;
    for (const DType t : f->arg_dtypes()) args.push_back(base_dtype(t));
    if (args != inputs) {
      fail(node, cat("function '", f->name(), "' takes ", AttrValue(args).to_string(),
                     " but is called with ", AttrValue(inputs).to_string(), "."));
    }
    if (attr == "cond") {
      if (f->results().size() != 1)
        fail(node, cat("condition '", f->name(), "' returns ", f->results().size(), " values."));
    } else if (f->result_dtypes() != outputs) {
      fail(node,
           cat("function '", f->name(), "' returns ", AttrValue(f->result_dtypes()).to_string(),
               " but ", AttrValue(outputs).to_string(), " is expected."));
    }
  };
  for (const auto& [name, value] : spec.attrs) {
    if (const auto* f = value.get_if<FunctionRef>()) check(name, *f);
    if (const auto* list = value.get_if<std::vector<FunctionRef>>()) {
      for (const FunctionRef& f : *list) check(name, f);
    }
  }
}

std::string BodyImport::free_name(const std::string& wanted) const {
  std::string name = wanted;
  for (int i = 1; by_name_.contains(name); ++i) name = cat(wanted, "_", i);
  return name;
}

std::string BodyImport::describe_inputs(const Graph::NodeSpec& spec) const {
  if (spec.inputs.empty()) return "";
  std::string text = "Its inputs: ";
  bool first = true;
  for (const Output& in : spec.inputs) {
    if (!first) text += ", ";
    first = false;
    if (!in.node) {
      text += "the next iteration's value";
      continue;
    }
    text += cat("'", in.node->name(), "' (", in.node->op().name, ") ",
                in.node->output_dtype(in.index), in.node->output_shape(in.index));
  }
  return text + ".";
}

void BodyImport::make(Graph& graph, Pending& node) {
  if (!stands_in(node)) {
    or_break(node, [&] { make_node(graph, node); });
    if (!node.broken) return;
    infer_outputs(node);
    std::replace(node.output_dtypes.begin(), node.output_dtypes.end(), DType::kInvalid,
                 DType::kFloat);
  }
  make_stand_in(graph, node);
}

void BodyImport::make_node(Graph& graph, Pending& node) {
  Graph::NodeSpec spec;
  spec.op = node.op;
  spec.name = node.name;
  spec.attrs = node.attrs;
  if (node.def) spec.device = node.def->device.empty() ? library_.device() : node.def->device;
  for (const Edge& e : node.inputs)
    spec.inputs.push_back(e.back ? Output{} : output(e, cat("'", node.name, "'")));
  for (const int c : node.controls)
    spec.control_inputs.push_back(pending_[static_cast<std::size_t>(c)].made);
  for (const ArgDef& out : node.op->outputs) {
    if (out.number_attr.empty()) continue;
    if (const AttrValue* n = node.attrs.find(out.number_attr); n && n->get_if<std::int64_t>())
      library_.count_outputs(*n->get_if<std::int64_t>());
  }
  const std::string inputs = describe_inputs(spec);
  check_functions(node, spec);
  try {
    if (node.repeated_to) {
      make_constant(graph, node, std::move(spec));
    } else if (node.gradient) {
      proto::NameAttrList name;
      name.name = node.gradient->function;
      const std::size_t own = spec.inputs.size() - node.num_captures;
      node.made =
          add_with_gradient(graph, library_.runtime().ops(), std::move(spec), own, *node.gradient,
                            name.name.empty() ? nullptr : library_.import(name));
    } else {
      node.made = graph.add(std::move(spec));
    }
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(
        cat(error.what(), inputs.empty() ? "" : "\n", inputs,
            function_ ? cat("\nIn function '", function_->signature->name, "'.") : ""));
  }
  const NodeKind kind = node.op->traits.kind;
  if (kind == NodeKind::kArg || kind == NodeKind::kConst || kind == NodeKind::kRetval) return;
  Runtime& runtime = library_.runtime();
  if (!runtime.kernels().find(node.made->op(), runtime.default_device().kernel_class(),
                              node.made->attrs())) {
    std::string types;
    for (const auto& [name, value] : node.made->attrs()) {
      if (value.get_if<DType>())
        types += cat(types.empty() ? " for " : ", ", name, "=", value.to_string());
    }
    node.reason = "it has no kernel" + types;
    graph.set_attr(node.made, kUnsupportedAttr, node.reason);
    mark(node);
  }
}

// One value repeated: made where it is needed, not held.
void BodyImport::make_constant(Graph& graph, Pending& node, Graph::NodeSpec spec) {
  const OpRegistry& ops = library_.runtime().ops();
  const auto constant = [&](const char* suffix, Array value) {
    Graph::NodeSpec part;
    part.op = node.op;
    part.name = free_name(cat(node.name, suffix));
    part.device = spec.device;
    part.control_inputs = spec.control_inputs;  // which put it into a loop
    part.attrs = AttrMap{{"dtype", value.dtype()}, {"value", std::move(value)}};
    return Output{graph.add(std::move(part)), 0};
  };
  const Array value = **node.attrs.find("value")->get_if<std::shared_ptr<const Array>>();
  spec.inputs = {constant("/shape", Array::vector(node.repeated_to->to_vector())),
                 constant("/value", value)};
  spec.op = &ops.get("Fill");
  spec.attrs = AttrMap{{"T", value.dtype()}, {"index_type", DType::kInt64}, {kConstantAttr, true}};
  if (const AttrValue* groups = node.attrs.find("_class")) spec.attrs.set("_class", *groups);
  node.made = graph.add(std::move(spec));
}

void BodyImport::make_stand_in(Graph& graph, Pending& node) {
  Graph::NodeSpec spec;
  spec.op = &stand_in_op();
  spec.name = node.name;
  for (const Edge& e : node.inputs) {
    const Pending& from = pending_[static_cast<std::size_t>(e.producer)];
    if (!e.back && e.index < from.made->num_outputs()) spec.inputs.push_back({from.made, e.index});
  }
  std::vector<DType> inputs;
  for (const Output& in : spec.inputs) {
    inputs.push_back(base_dtype(in.node->output_dtype(in.index)));
  }
  spec.attrs = AttrMap{{"Tin", std::move(inputs)},
                       {"Tout", node.output_dtypes},
                       {kOpAttr, node.def->op},
                       {kUnsupportedAttr, node.reason}};
  if (!node.broken && !function_) {
    const std::string bytes = proto::WireWriter::write(*node.def);
    spec.attrs.set(kNodeDefAttr,
                   Array::vector(std::vector<std::uint8_t>(bytes.begin(), bytes.end())));
  }
  for (const int c : node.controls)
    spec.control_inputs.push_back(pending_[static_cast<std::size_t>(c)].made);
  node.made = graph.add(std::move(spec));
  if (!node.broken) mark(node);
}

void BodyImport::mark(Pending& node) {
  UnsupportedNode unsupported;
  unsupported.name = node.name;
  unsupported.op = node.def->op;
  if (function_) unsupported.function = function_->signature->name;
  unsupported.reason = node.reason;
  if (!library_.runtime().ops().find(unsupported.op)) {
    std::vector<std::string> names;
    for (const OpDef* op : library_.runtime().ops().all()) names.push_back(op->name);
    unsupported.nearest = nearest_name(unsupported.op, names);
  }
  library_.add_unsupported(std::move(unsupported));
}

void BodyImport::close_loops(Graph& graph) {
  for (Pending& node : pending_) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Edge& e = node.inputs[i];
      if (!e.back || stands_in(node)) continue;
      or_break(node, [&] {
        graph.set_input(node.made, static_cast<int>(i), output(e, cat("'", node.name, "'")));
      });
    }
  }
}

Node* BodyImport::node(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : pending_[static_cast<std::size_t>(found->second)].made;
}

}  // namespace tandem::io
