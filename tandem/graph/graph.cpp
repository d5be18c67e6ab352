#include "tandem/graph/graph.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <sstream>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/function_shapes.h"
#include "tandem/graph/internal/infer_node.h"

namespace tandem {

using internal::dtypes_of;
using internal::is_back_edge;

std::string Node::describe() const {
  std::string text = cat("{{node ", name_, "}} (", op_->name, ")");
  const std::string code = where_.to_string();
  if (!code.empty()) text += " made\n" + code;
  return text;
}

void Node::throw_missing_attr(std::string_view name) const {
  throw InternalError(cat("node ", name_, " (", op_->name, ") has no attribute '", name,
                          "' of the type asked for"));
}

namespace {

[[noreturn]] void fail_undefined(const Node& node, std::size_t input) {
  throw InvalidArgumentError(cat("Input ", input, " of ", node.describe(), " is undefined."));
}

void check_defined(const OpDef& op, const std::vector<Output>& inputs) {
  const auto undefined =
      std::count_if(inputs.begin(), inputs.end(), [](const Output& in) { return !in.node; });
  if (undefined == 0) return;
  if (op.traits.kind != NodeKind::kMerge) {
    throw InvalidArgumentError(
        cat("Op ", op.name, ": an input is undefined, which only a Merge's may be."));
  }
  if (undefined == static_cast<std::ptrdiff_t>(inputs.size())) {
    throw InvalidArgumentError(cat("Op ", op.name, ": at least one input must be defined."));
  }
}

}  // namespace

std::string Graph::unique_name(std::string_view wanted) {
  std::string name(wanted);
  while (by_name_.contains(name)) name = cat(wanted, "_", ++name_counts_[std::string(wanted)]);
  return name;
}

Node* Graph::add(NodeSpec spec) {
  auto node = std::make_unique<Node>();
  node->name_ = unique_name(spec.name.empty() ? spec.op->name : spec.name);
  node->op_ = spec.op;
  node->op_owner_ = spec.op->weak_from_this().lock();
  node->inputs_ = std::move(spec.inputs);
  node->control_inputs_ = std::move(spec.control_inputs);
  node->requested_device_ = std::move(spec.device);
  node->where_ = std::move(spec.where);
  try {
    check_defined(*spec.op, node->inputs_);
    node->attrs_ = complete_attrs(*spec.op, dtypes_of(node->inputs_), spec.attrs);
    node->output_dtypes_ = tandem::output_dtypes(*spec.op, node->attrs_);
    node->output_shapes_.resize(node->output_dtypes_.size());
    infer_node(*node);
  } catch (const Error&) {
    std::rethrow_exception(with_line(std::current_exception(), "[[" + node->describe() + "]]"));
  }
  node->id_ = next_id_++;
  by_name_.emplace(node->name_, node.get());
  nodes_.push_back(std::move(node));
  Node* const added = nodes_.back().get();
  if (knows_users_) {
    for (const Output& in : added->inputs_) note_use(added, in.node);
  }
  return added;
}

void Graph::infer_node(Node& node) {
  node.output_shapes_ = internal::infer_outputs(node, internal::KnownOutputs());
}

Node* Graph::find(std::string_view name) const {
  const auto it = by_name_.find(std::string(name));
  return it == by_name_.end() ? nullptr : it->second;
}

void Graph::set_input(Node* node, int input, Output value) {
  Output& slot = node->inputs_.at(static_cast<std::size_t>(input));
  if (!slot.node) {
    const DType expected = dtypes_of(node->inputs_)[static_cast<std::size_t>(input)];
    const DType got = value.node->output_dtype(value.index);
    if (base_dtype(got) != base_dtype(expected)) {
      throw InvalidArgumentError(cat("Input ", input, " of ", node->describe(), " must be ",
                                     expected, " like the others but '", value.node->name(),
                                     "' is ", got, "."));
    }
  }
  slot = value;
  if (knows_users_) note_use(node, value.node);
}

void Graph::add_control_input(Node* node, Node* before) {
  auto& list = node->control_inputs_;
  if (before != node && std::find(list.begin(), list.end(), before) == list.end())
    list.push_back(before);
}

void Graph::set_control_inputs(Node* node, std::vector<Node*> before) {
  node->control_inputs_ = std::move(before);
}

void Graph::set_attr(Node* node, std::string_view name, AttrValue value) {
  node->attrs_.set(name, std::move(value));
}

void Graph::set_output_shape(Node* node, int output, PartialShape shape) {
  node->output_shapes_.at(static_cast<std::size_t>(output)) = std::move(shape);
}

void Graph::set_requested_device(Node* node, std::string device) {
  node->requested_device_ = std::move(device);
}

void Graph::note_use(Node* user, const Node* used) {
  if (!used) return;
  const auto id = static_cast<std::size_t>(used->id());
  if (id >= users_.size()) users_.resize(std::max(id + 1, static_cast<std::size_t>(next_id_)));
  auto& list = users_[id];
  if (list.empty() || list.back() != user) list.push_back(user);
}

void Graph::note_uses() {
  users_.assign(static_cast<std::size_t>(next_id_), {});
  for (const auto& node : nodes_) {
    for (const Output& in : node->inputs_) note_use(node.get(), in.node);
  }
  knows_users_ = true;
}

void Graph::replace_uses(Output from, Output to) {
  if (!knows_users_) note_uses();
  const auto id = static_cast<std::size_t>(from.node->id());
  if (id >= users_.size()) return;
  for (Node* user : std::exchange(users_[id], {})) {
    for (Output& in : user->inputs_) {
      if (in == from) in = to;
      note_use(user, in.node == from.node ? from.node : in == to ? to.node : nullptr);
    }
  }
}

void Graph::remove_if(const std::vector<bool>& drop_by_id) {
  const auto drop = [&](const Node* n) { return drop_by_id[static_cast<std::size_t>(n->id())]; };
  for (const auto& node : nodes_) {
    if (drop(node.get())) {
      by_name_.erase(node->name_);
    } else {
      std::erase_if(node->control_inputs_, drop);
    }
  }
  std::erase_if(nodes_, [&](const std::unique_ptr<Node>& n) { return drop(n.get()); });
  users_.clear();
  knows_users_ = false;
}

void Graph::infer_shapes() {
  const InferenceMemory memory;
  for (Node* node : topological_order()) infer_node(*node);
}

void Graph::infer_shapes_to_run() {
  const InferenceMemory memory;
  for (Node* node : topological_order()) {
    try {
      infer_node(*node);
    } catch (const Error&) {
      for (PartialShape& shape : node->output_shapes_) shape = PartialShape::unknown();
    }
  }
}

std::vector<std::vector<Node*>> Graph::consumers() const {
  std::vector<std::vector<Node*>> users(static_cast<std::size_t>(next_id_));
  for (const auto& node : nodes_) {
    const auto use = [&](const Node* producer) {
      auto& list = users[static_cast<std::size_t>(producer->id())];
      if (list.empty() || list.back() != node.get()) list.push_back(node.get());
    };
    for (std::size_t i = 0; i < node->inputs_.size(); ++i) {
      if (!node->inputs_[i].node) fail_undefined(*node, i);
      use(node->inputs_[i].node);
    }
    for (const Node* before : node->control_inputs_) use(before);
  }
  return users;
}

namespace {

// Every node that still waits has an input that waits: going back along those ends in a cycle.
[[noreturn]] void fail_on_cycle(const std::vector<std::unique_ptr<Node>>& nodes,
                                const std::vector<int>& waiting) {
  const auto waits = [&](const Node* n) { return waiting[static_cast<std::size_t>(n->id())] > 0; };
  const auto first =
      std::find_if(nodes.begin(), nodes.end(), [&](const auto& node) { return waits(node.get()); });
  std::vector<const Node*> path;
  const Node* at = first->get();
  while (std::find(path.begin(), path.end(), at) == path.end()) {
    path.push_back(at);
    const Node* before = nullptr;
    for (const Output& in : at->inputs()) {
      if (waits(in.node) && !is_back_edge(*in.node, *at)) before = in.node;
    }
    for (const Node* control : at->control_inputs()) {
      if (waits(control)) before = control;
    }
    at = before;
  }
  constexpr std::size_t kShown = 10;
  std::vector<const Node*> cycle(std::find(path.begin(), path.end(), at), path.end());
  std::string names = cat("'", at->name(), "'");
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const Node* node = cycle[cycle.size() - 1 - i];
    if (i == kShown && i + 1 < cycle.size()) {
      names += cat(" -> ... (", cycle.size() - kShown - 1, " more)");
    } else if (i <= kShown || node == at) {
      names += cat(" -> '", node->name(), "'");
    }
  }
  throw InvalidArgumentError(cat("The graph has a cycle: ", names,
                                 ". Only a NextIteration that feeds a Merge may close a loop."));
}

}  // namespace

std::vector<Node*> Graph::topological_order() const {
  // The ready node that was added first goes first.
  std::vector<int> position(static_cast<std::size_t>(next_id_), 0);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    position[static_cast<std::size_t>(nodes_[i]->id())] = static_cast<int>(i);
  }
  const auto follows_inputs = [&](const std::unique_ptr<Node>& node) {
    const auto is_before = [&](const Node* input) {
      return position[static_cast<std::size_t>(input->id())] <
                 position[static_cast<std::size_t>(node->id())] ||
             is_back_edge(*input, *node);
    };
    return std::all_of(node->inputs_.begin(), node->inputs_.end(),
                       [&](const Output& in) { return in.node && is_before(in.node); }) &&
           std::all_of(node->control_inputs_.begin(), node->control_inputs_.end(), is_before);
  };
  std::vector<Node*> order;
  order.reserve(nodes_.size());
  if (std::all_of(nodes_.begin(), nodes_.end(), follows_inputs)) {
    for (const auto& node : nodes_) order.push_back(node.get());
    return order;
  }
  // The edges by producer, in one list: `users[begin[id]]` to `users[begin[id + 1]]`.
  std::vector<int> begin(static_cast<std::size_t>(next_id_) + 1, 0), waiting(begin.size(), 0);
  const auto for_each_edge = [&](const auto& use) {
    for (const auto& node : nodes_) {
      for (std::size_t i = 0; i < node->inputs_.size(); ++i) {
        const Node* input = node->inputs_[i].node;
        if (!input) fail_undefined(*node, i);
        if (!is_back_edge(*input, *node)) use(*input, *node);
      }
      for (const Node* before : node->control_inputs_)
        if (!is_back_edge(*before, *node)) use(*before, *node);
    }
  };
  for_each_edge([&](const Node& input, const Node& user) {
    ++begin[static_cast<std::size_t>(input.id()) + 1];
    ++waiting[static_cast<std::size_t>(user.id())];
  });
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<int> users(static_cast<std::size_t>(begin.back())), filled(begin);
  for_each_edge([&](const Node& input, const Node& user) {
    int& next = filled[static_cast<std::size_t>(input.id())];
    users[static_cast<std::size_t>(next++)] = user.id();
  });
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (waiting[static_cast<std::size_t>(nodes_[i]->id())] == 0) ready.push(static_cast<int>(i));
  }
  while (!ready.empty()) {
    Node* node = nodes_[static_cast<std::size_t>(ready.top())].get();
    ready.pop();
    order.push_back(node);
    const auto id = static_cast<std::size_t>(node->id());
    for (int e = begin[id]; e < begin[id + 1]; ++e) {
      const auto user = static_cast<std::size_t>(users[static_cast<std::size_t>(e)]);
      if (--waiting[user] == 0) ready.push(position[user]);
    }
  }
  if (order.size() != nodes_.size()) fail_on_cycle(nodes_, waiting);
  return order;
}

Graph Graph::clone(std::vector<Node*>* mapped) const {
  Graph copy;
  std::vector<Node*> map(static_cast<std::size_t>(next_id_), nullptr);
  copy.nodes_.reserve(nodes_.size());
  copy.by_name_.reserve(nodes_.size());
  for (const auto& node : nodes_) {
    auto twin = std::make_unique<Node>(*node);
    map[static_cast<std::size_t>(node->id())] = twin.get();
    copy.by_name_.emplace(twin->name_, twin.get());
    copy.nodes_.push_back(std::move(twin));
  }
  for (const auto& node : copy.nodes_) {
    for (Output& in : node->inputs_) {
      if (in.node) in.node = map[static_cast<std::size_t>(in.node->id())];
    }
    for (Node*& before : node->control_inputs_)
      before = map[static_cast<std::size_t>(before->id())];
  }
  copy.next_id_ = next_id_;
  copy.name_counts_ = name_counts_;
  if (mapped) *mapped = std::move(map);
  return copy;
}

std::string Graph::to_string() const {
  std::ostringstream out;
  for (const auto& node : nodes_) {
    out << node->name() << ": ";
    for (int i = 0; i < node->num_outputs(); ++i) {
      out << (i ? ", " : "") << node->output_dtype(i) << node->output_shape(i);
    }
    out << " = " << node->op().name << '(';
    for (std::size_t i = 0; i < node->inputs().size(); ++i) {
      const Output& in = node->inputs()[i];
      out << (i ? ", " : "") << (in.node ? in.node->name() : "?");
      if (in.index) out << ':' << in.index;
    }
    out << ')';
    bool first = true;
    for (const auto& [name, value] : node->attrs()) {
      const AttrDef* def = node->op().find_attr(name);
      if (def && (def->inferred || value == def->default_value)) continue;
      out << (first ? " {" : ", ") << name << '=' << value.to_string();
      first = false;
    }
    if (!first) out << '}';
    for (const Node* before : node->control_inputs()) out << " ^" << before->name();
    out << '\n';
  }
  return std::move(out).str();
}

}  // namespace tandem
