#include "tandem/graph/internal/function_expander.h"

#include <algorithm>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/device/device_spec.h"
#include "tandem/graph/function.h"
#include "tandem/graph/inline_calls.h"
#include "tandem/graph/internal/frames.h"
#include "tandem/graph/lower_control_flow.h"
#include "tandem/graph/op_registry.h"

namespace tandem::passes {
namespace {

constexpr std::string_view kColocation = "_class", kColocationPrefix = "loc:@",
                           kFrame = "frame_name";

std::size_t id(const Node* node) { return static_cast<std::size_t>(node->id()); }

// What results and effects need, every node after its inputs.
std::vector<Node*> needed_nodes(const Function& function) {
  std::vector<bool> needed(static_cast<std::size_t>(function.body().id_limit()));
  std::vector<const Node*> pending;
  const auto need = [&](const Node* node) {
    if (node == nullptr || needed[id(node)]) return;
    needed[id(node)] = true;
    pending.push_back(node);
  };
  for (const Output& result : function.results()) need(result.node);
  for (const Node* effect : function.control_results()) need(effect);
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    for (const Output& in : node->inputs()) need(in.node);
    for (const Node* before : node->control_inputs()) need(before);
  }
  std::vector<Node*> order = function.body().topological_order();
  std::erase_if(order, [&](const Node* node) { return !needed[id(node)]; });
  return order;
}

bool writes(const Node& node) { return node.op().traits.stateful && !node.op().traits.reads_only; }

// What a caller that waits has to wait for: the function's control results, and the nodes that
// change state and that none of the others follows.
std::vector<const Node*> last_effects(const Function& function, const std::vector<Node*>& order) {
  std::vector<const Node*> effects(function.control_results().begin(),
                                   function.control_results().end());
  std::vector<bool> is_followed(static_cast<std::size_t>(function.body().id_limit()));
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node* node = *it;
    const bool follows = is_followed[id(node)] || writes(*node);
    if (writes(*node) && !is_followed[id(node)] &&
        std::find(effects.begin(), effects.end(), node) == effects.end())
      effects.push_back(node);
    if (!follows) continue;
    for (const Output& in : node->inputs()) is_followed[id(in.node)] = true;
    for (const Node* before : node->control_inputs()) is_followed[id(before)] = true;
  }
  return effects;
}

// For each result, whether it follows from all of these.
std::vector<bool> follow_all(const Function& function, const std::vector<Node*>& order,
                             const std::vector<const Node*>& effects) {
  constexpr std::size_t kMaxExact = 64;
  std::vector<bool> all(function.results().size(), effects.size() <= kMaxExact);
  if (effects.size() > kMaxExact) return all;
  for (const Node* effect : effects) {
    std::vector<bool> follows(static_cast<std::size_t>(function.body().id_limit()));
    follows[id(effect)] = true;
    for (const Node* node : order) {
      if (follows[id(node)]) continue;
      const auto& inputs = node->inputs();
      const auto& before = node->control_inputs();
      follows[id(node)] =
          std::any_of(inputs.begin(), inputs.end(),
                      [&](const Output& in) { return follows[id(in.node)]; }) ||
          std::any_of(before.begin(), before.end(), [&](const Node* n) { return follows[id(n)]; });
    }
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = all[i] && follows[id(function.results()[i].node)];
  }
  return all;
}

const FunctionRef* called(const Node& node, std::string_view attr) {
  const AttrValue* value = node.attrs().find(attr);
  return value ? value->get_if<FunctionRef>() : nullptr;
}

}  // namespace

FunctionExpander::FunctionExpander(MutableFunction& f, const OpRegistry& ops,
                                   const ExpandOptions& options, Kinds kinds)
    : f_(f),
      ops_(ops),
      options_(options),
      kinds_(kinds),
      held_control_flow_(holds_control_flow(f.graph)),
      in_flow_(held_control_flow_) {}

bool FunctionExpander::chosen(const Node& node, const std::string& device) const {
  const bool is_kind = node.kind() == NodeKind::kCall && called(node, "f") != nullptr
                           ? kinds_.calls
                           : kinds_.control_flow && calls_functions(node.kind());
  return is_kind && (!options_.choose || options_.choose(node, device));
}

bool FunctionExpander::run() {
  std::vector<Node*> calls;
  for (Node* node : f_.graph.topological_order()) {
    if (chosen(*node, node->requested_device())) calls.push_back(node);
    if (const AttrValue* frame = node->attrs().find(kFrame)) {
      if (const auto* name = frame->get_if<std::string>()) frames_.insert(*name);
    }
  }
  if (calls.empty()) return false;

  std::map<const Node*, std::vector<Node*>> waiting;
  for (Node* call : calls) waiting[call];
  for (const auto& node : f_.graph.nodes()) {
    for (const Node* before : node->control_inputs()) {
      if (const auto found = waiting.find(before); found != waiting.end())
        found->second.push_back(node.get());
    }
  }
  std::map<const Node*, Node*> done;
  for (Node* node : calls) {
    const bool is_effect = std::find(f_.control_results.begin(), f_.control_results.end(), node) !=
                           f_.control_results.end();
    const Expanded made = expand({.node = node,
                                  .name = node->name(),
                                  .device = node->requested_device(),
                                  .inputs = node->inputs(),
                                  .after = node->control_inputs(),
                                  .is_waited_for = is_effect || !waiting[node].empty()});
    for (int i = 0; i < node->num_outputs(); ++i)
      f_.replace({node, i}, made.outputs[static_cast<std::size_t>(i)]);
    for (Node* user : waiting[node]) {
      std::vector<Node*> after = user->control_inputs();
      std::replace(after.begin(), after.end(), node, made.done);
      f_.graph.set_control_inputs(user, std::move(after));
    }
    done[node] = made.done;
  }
  for (Node*& effect : f_.control_results) {
    if (const auto found = done.find(effect); found != done.end()) effect = found->second;
  }
  // What was to lie beside a call lies where it likes.
  for (const auto& node : f_.graph.nodes()) {
    const AttrValue* value = node->attrs().find(kColocation);
    const auto* groups = value ? value->get_if<std::vector<std::string>>() : nullptr;
    if (groups == nullptr) continue;
    std::vector<std::string> kept = *groups;
    std::erase_if(kept, [&](std::string_view group) {
      if (group.starts_with(kColocationPrefix)) group.remove_prefix(kColocationPrefix.size());
      return done.contains(f_.graph.find(group));
    });
    if (kept.size() != groups->size()) f_.graph.set_attr(node.get(), kColocation, std::move(kept));
  }
  std::vector<bool> drop(static_cast<std::size_t>(f_.graph.id_limit()));
  for (const Node* node : calls) drop[id(node)] = true;
  for (const Node* node : stand_ins_) drop[id(node)] = true;
  f_.graph.remove_if(drop);
  return true;
}

FunctionExpander::Expanded FunctionExpander::expand(const Call& call) {
  switch (call.node->kind()) {
    case NodeKind::kIf: return lower_if(call);
    case NodeKind::kWhile: return lower_while(call);
    default: return called(*call.node, "f") ? inline_call(call) : lower_case(call);
  }
}

FunctionExpander::Expanded FunctionExpander::inline_call(const Call& call) {
  const FunctionRef& function = *called(*call.node, "f");
  // A body with effects begins when all arguments are there; in a branch that is not taken it does
  // not begin at all.
  std::vector<Node*> after = call.after;
  if (function->stateful() || in_flow_) {
    for (const Output& in : call.inputs) {
      if (has_to_be_awaited(in)) add_once(after, arrival(call, in));
    }
  }
  Start start;
  if (!after.empty()) {
    const auto is_reference = [](const Output& in) {
      return is_ref(in.node->output_dtype(in.index));
    };
    start.sources = in_flow_;
    start.effects = true;
    start.readers =
        held_control_flow_ || std::any_of(call.inputs.begin(), call.inputs.end(), is_reference);
    start.node = add(call, "NoOp", "input_control", {}, {}, std::move(after));
  }
  const Body body = copy_body(call, function, call.name, call.inputs, start);
  const bool results_wait = start.node && (!call.after.empty() || held_control_flow_);

  Expanded made;
  Node* effects = nullptr;
  for (std::size_t i = 0; i < body.results.size(); ++i) {
    Output result = body.results[i];
    if (body.writes && !body.after_effects[i]) {
      if (!effects) effects = when_over(call, "effects", body.effects);
      result = guarded(call, i, result, effects);
    } else if (results_wait && !body.after_start[i]) {
      result = guarded(call, i, result, start.node);
    }
    made.outputs.push_back(result);
  }
  if (call.is_waited_for) {
    std::vector<Node*> waits = effects ? std::vector<Node*>{effects} : body.effects;
    for (const Output& result : made.outputs) {
      if (has_to_be_awaited(result)) add_once(waits, arrival(call, result));
    }
    if (start.node) add_once(waits, start.node);
    for (const Output& in : call.inputs) {
      if (has_to_be_awaited(in)) add_once(waits, arrival(call, in));
    }
    made.done = add(call, "NoOp", "output_control", {}, {}, std::move(waits));
  }
  return made;
}

// Arguments and constants of the outermost frame are always there.
bool FunctionExpander::has_to_be_awaited(const Output& value) const {
  if (value.node->kind() == NodeKind::kArg) return false;
  return value.node->kind() != NodeKind::kConst || in_flow_ ||
         !value.node->control_inputs().empty();
}

// A Switch itself is over whichever output is dead.
Node* FunctionExpander::arrival(const Call& call, const Output& value) {
  if (value.node->kind() != NodeKind::kSwitch) return value.node;
  Node*& node = arrivals_[{value.node, value.index}];
  if (!node) node = add(call, "Identity", "arrival", {value});
  return node;
}

Node* FunctionExpander::when_over(const Call& call, const std::string& name,
                                  const std::vector<Node*>& nodes) {
  return nodes.size() == 1 ? nodes[0] : add(call, "NoOp", name, {}, {}, nodes);
}

FunctionExpander::Body FunctionExpander::copy_body(const Call& call, const FunctionRef& function,
                                                   const std::string& prefix,
                                                   const std::vector<Output>& args,
                                                   const Start& start) {
  enter_function(call, *function);
  const std::vector<Node*> order = needed_nodes(*function);
  check_growth(call, *function, order.size());

  const auto limit = static_cast<std::size_t>(function->body().id_limit());
  std::vector<std::vector<Output>> outputs(limit);  // by id: what stands for the node's outputs
  std::vector<Node*> stands_for(limit);             // for those who wait for it
  std::vector<bool> after_effect(limit), after_start(limit), is_waited_for(limit);
  for (const Node* node : order) {
    for (const Node* before : node->control_inputs()) is_waited_for[id(before)] = true;
  }
  const std::vector<const Node*> effects = last_effects(*function, order);
  for (const Node* effect : effects) is_waited_for[id(effect)] = true;
  for (std::size_t i = 0; i < function->args().size(); ++i) {
    const std::size_t arg = id(function->args()[i]);
    Output value = args[i];
    // A reference is read where it is handed over, unless the function takes one.
    if (is_ref(value.node->output_dtype(value.index)) &&
        !is_ref(function->args()[i]->output_dtype(0)))
      value = {add(call, "Identity", cat("input_", i), {value}, {},
                   start.node ? std::vector<Node*>{start.node} : std::vector<Node*>{}),
               0};
    outputs[arg] = {value};
    if (is_waited_for[arg]) stands_for[arg] = arrival(call, value);
  }

  std::map<std::string, const Node*, std::less<>> names;  // for _class
  const auto groups_of = [](const Node& node) {
    const AttrValue* value = node.attrs().find(kColocation);
    return value ? value->get_if<std::vector<std::string>>() : nullptr;
  };
  if (std::any_of(order.begin(), order.end(), [&](const Node* n) { return groups_of(*n); })) {
    for (const Node* node : order) names.emplace(node->name(), node);
  }

  struct BackEdge {
    Node* merge;
    int input;
    Output from;  // in the function
  };
  std::vector<BackEdge> back_edges;
  for (Node* node : order) {
    if (node->kind() == NodeKind::kArg) continue;
    const std::string device = device_within(node->requested_device(), call.device);
    std::vector<Output> inputs;
    bool follows_effect = false, follows_start = false, reads_arg = false;
    for (const Output& in : node->inputs()) {
      const auto& known = outputs[id(in.node)];
      inputs.push_back(known.empty() ? Output{} : known[static_cast<std::size_t>(in.index)]);
      follows_effect = follows_effect || after_effect[id(in.node)];
      follows_start = follows_start || after_start[id(in.node)];
      reads_arg = reads_arg || in.node->kind() == NodeKind::kArg;
    }
    std::vector<Node*> after;
    for (const Node* before : node->control_inputs()) {
      add_once(after, stands_for[id(before)]);
      follows_effect = follows_effect || after_effect[id(before)];
      follows_start = follows_start || after_start[id(before)];
      reads_arg = reads_arg || before->kind() == NodeKind::kArg;
    }
    const bool has_effect = node->op().traits.stateful;
    const bool is_source = inputs.empty() && after.empty();
    if (start.node && ((start.sources && is_source) || (start.readers && reads_arg) ||
                       (start.effects && has_effect && !follows_effect))) {
      add_once(after, start.node);
      follows_start = true;
    }
    after_effect[id(node)] = follows_effect || has_effect;
    after_start[id(node)] = follows_start;

    const std::string name = cat(prefix, "/", node->name());
    if (chosen(*node, device)) {
      Expanded made = expand({.node = node,
                              .name = name,
                              .device = device,
                              .inputs = std::move(inputs),
                              .after = std::move(after),
                              .is_waited_for = is_waited_for[id(node)]});
      outputs[id(node)] = std::move(made.outputs);
      stands_for[id(node)] = made.done;
      continue;
    }
    AttrMap attrs = node->attrs();
    if (const AttrValue* frame = attrs.find(kFrame)) {
      if (const auto* in = frame->get_if<std::string>()) attrs.set(kFrame, cat(prefix, "/", *in));
    }
    if (const auto* groups = groups_of(*node)) {
      std::vector<std::string> kept;
      for (std::string_view group : *groups) {
        if (group.starts_with(kColocationPrefix)) group.remove_prefix(kColocationPrefix.size());
        const auto with = names.find(group);
        if (with == names.end() || with->second->kind() == NodeKind::kArg ||
            chosen(*with->second, device_within(with->second->requested_device(), call.device)))
          continue;
        kept.push_back(cat(kColocationPrefix, prefix, "/", group));
      }
      attrs.erase(kColocation);
      if (!kept.empty()) attrs.set(kColocation, std::move(kept));
    }
    Node* copy = add_copy({.op = &node->op(),
                           .name = name,
                           .inputs = std::move(inputs),
                           .attrs = std::move(attrs),
                           .control_inputs = std::move(after),
                           .device = device,
                           .where = node->where()},
                          *node);
    auto& made = outputs[id(node)];
    for (int i = 0; i < copy->num_outputs(); ++i) made.push_back({copy, i});
    if (made.empty()) made.push_back({copy, 0});  // known, though nothing reads it
    stands_for[id(node)] = copy;
    for (int i = 0; i < static_cast<int>(copy->inputs().size()); ++i) {
      if (!copy->inputs()[static_cast<std::size_t>(i)].node)
        back_edges.push_back({copy, i, node->inputs()[static_cast<std::size_t>(i)]});
    }
  }
  for (const BackEdge& edge : back_edges) {
    const auto& from = outputs[id(edge.from.node)];
    f_.graph.set_input(edge.merge, edge.input, from[static_cast<std::size_t>(edge.from.index)]);
  }

  Body body;
  for (const Output& result : function->results()) {
    body.results.push_back(outputs[id(result.node)][static_cast<std::size_t>(result.index)]);
    body.after_start.push_back(after_start[id(result.node)]);
  }
  body.after_effects = follow_all(*function, order, effects);
  for (const Node* effect : effects) {
    add_once(body.effects, stands_for[id(effect)]);
    body.writes = body.writes || (effect->op().traits.stateful && !effect->op().traits.reads_only);
  }
  within_.pop_back();
  return body;
}

Node* FunctionExpander::add(const Call& call, const char* op, const std::string& name,
                            std::vector<Output> inputs, AttrMap attrs, std::vector<Node*> after) {
  return f_.graph.add({.op = &ops_.get(op),
                       .name = cat(call.name, "/", name),
                       .inputs = std::move(inputs),
                       .attrs = std::move(attrs),
                       .control_inputs = std::move(after),
                       .device = call.device,
                       .where = call.node->where()});
}

Node* FunctionExpander::add_constant(const Call& call, const std::string& name, const Array& value,
                                     Node* after) {
  return add(call, ops_.of_kind(NodeKind::kConst).name.c_str(), name, {},
             AttrMap{{"value", value}, {"dtype", value.dtype()}},
             after ? std::vector<Node*>{after} : std::vector<Node*>{});
}

// What cannot fit the arguments is an error of the node's kernel, if it ever runs: such a node is
// added for unknown shapes.
Node* FunctionExpander::add_copy(Graph::NodeSpec spec, const Node& original) {
  Node* copy = nullptr;
  try {
    copy = f_.graph.add(spec);
  } catch (const Error&) {
    std::vector<Output> inputs = spec.inputs;
    for (Output& in : spec.inputs) {
      if (!in.node) continue;
      Node* stand_in = f_.graph.add(
          {.op = &ops_.of_kind(NodeKind::kArg),
           .name = spec.name + "/any",
           .inputs = {},
           .attrs = AttrMap{{"T", in.node->output_dtype(in.index)}, {"index", std::int64_t{0}}},
           .control_inputs = {},
           .device = {},
           .where = {}});
      stand_ins_.push_back(stand_in);
      in = {stand_in, 0};
    }
    copy = f_.graph.add(std::move(spec));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].node) f_.graph.set_input(copy, static_cast<int>(i), inputs[i]);
    }
  }
  for (int i = 0; i < copy->num_outputs(); ++i) {
    if (!copy->output_shape(i).has_rank())
      f_.graph.set_output_shape(copy, i, original.output_shape(i));
  }
  return copy;
}

Output FunctionExpander::guarded(const Call& call, std::size_t i, Output value, Node* after) {
  return {add(call, "Identity", cat("output_", i), {value}, {}, {after}), 0};
}

std::string FunctionExpander::device_within(const std::string& inner, const std::string& caller) {
  if (inner.empty() || caller.empty()) return inner.empty() ? caller : inner;
  std::string& merged = devices_[{inner, caller}];
  if (merged.empty()) {
    try {
      merged = DeviceSpec::parse(inner).merged_into(DeviceSpec::parse(caller)).to_string();
    } catch (const Error&) {
      merged = inner;  // the placer names what is wrong with it
    }
  }
  return merged;
}

void FunctionExpander::check_growth(const Call& call, const Function& function,
                                    std::size_t nodes) const {
  if (f_.graph.num_nodes() + nodes <= options_.max_nodes) return;
  throw ResourceExhaustedError(cat("Expanding function '", function.name(), "' at '", call.name,
                                   "' makes a graph of more than ", options_.max_nodes,
                                   " nodes. Call it fewer times, or in a loop."));
}

void FunctionExpander::enter_function(const Call& call, const Function& function) {
  const auto found = std::find(within_.begin(), within_.end(), &function);
  if (found != within_.end()) {
    std::string path;
    for (auto it = found; it != within_.end(); ++it) path += cat("'", (*it)->name(), "' -> ");
    throw InvalidArgumentError(cat("Function '", function.name(), "' cannot be expanded at '",
                                   call.name, "' (", call.node->op().name,
                                   "): it calls itself: ", path, "'", function.name(),
                                   "'. Write the recursion as a loop."));
  }
  if (within_.size() >= static_cast<std::size_t>(options_.max_depth)) {
    throw FailedPreconditionError(cat("Function '", function.name(), "' at '", call.name,
                                      "' lies more than ", options_.max_depth,
                                      " calls deep and is not expanded."));
  }
  within_.push_back(&function);
}

bool expand_functions(MutableFunction& f, const OpRegistry& ops, const ExpandOptions& options) {
  return FunctionExpander(f, ops, options, {}).run();
}

bool inline_calls(MutableFunction& f, const OpRegistry& ops, const ExpandOptions& options) {
  return FunctionExpander(f, ops, options, {.calls = true, .control_flow = false}).run();
}

bool lower_control_flow(MutableFunction& f, const OpRegistry& ops, const ExpandOptions& options) {
  return FunctionExpander(f, ops, options, {.calls = false, .control_flow = true}).run();
}

}  // namespace tandem::passes
