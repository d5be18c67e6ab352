// The part of FunctionExpander that makes TensorFlow 1 control flow.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "tandem/core/error.h"
#include "tandem/graph/function.h"
#include "tandem/graph/internal/function_expander.h"
#include "tandem/graph/op_registry.h"

namespace tandem::passes {
namespace {

std::string numbered(std::string name, std::size_t i) {
  return i == 0 ? std::move(name) : cat(name, '_', i);
}

// While it lives, what is made lies in a branch or loop.
class InFlow {
 public:
  explicit InFlow(bool& in_flow) : in_flow_(in_flow), saved_(in_flow) { in_flow = true; }
  ~InFlow() { in_flow_ = saved_; }
  InFlow(const InFlow&) = delete;
  InFlow& operator=(const InFlow&) = delete;

 private:
  bool& in_flow_;
  const bool saved_;
};

}  // namespace

Output FunctionExpander::as_condition(const Call& call, const std::string& name, Output value) {
  const bool is_flag = value.node->output_dtype(value.index) == DType::kBool &&
                       value.node->output_shape(value.index) == PartialShape::scalar();
  return is_flag ? value : Output{add(call, "ToBool", name, {value}), 0};
}

FunctionExpander::Branch FunctionExpander::copy_branch(const Call& call,
                                                       const FunctionRef& function,
                                                       const std::string& name, Node* pivot_switch,
                                                       Output pred, int side,
                                                       std::vector<Node*>& switches) {
  const InFlow flow(in_flow_);
  Branch branch;
  branch.pivot = add(call, "Identity", cat(name, "/pivot"), {{pivot_switch, side}});
  std::vector<Output> args;
  for (std::size_t i = 0; i < function->args().size(); ++i) {
    if (!switches[i])
      switches[i] = add(call, "Switch", numbered("Switch", i), {call.inputs[i + 1], pred});
    args.push_back({switches[i], side});
  }
  const Start start{.node = branch.pivot, .sources = true};
  branch.body = copy_body(call, function, cat(call.name, '/', name), args, start);
  return branch;
}

FunctionExpander::Expanded FunctionExpander::join(const Call& call, std::vector<Branch> branches) {
  Expanded made;
  const auto follows = [](std::size_t i) {
    return [i](const Branch& b) { return !b.body.writes || b.body.after_effects[i]; };
  };
  const std::size_t results = branches[0].body.results.size();
  bool guard = false;
  for (std::size_t i = 0; i < results; ++i)
    guard = guard || !std::all_of(branches.begin(), branches.end(), follows(i));
  if (call.is_waited_for || guard) {
    std::vector<Output> over;
    for (std::size_t b = 0; b < branches.size(); ++b) {
      std::vector<Node*> waits = branches[b].body.effects;
      for (const Output& result : branches[b].body.results) add_once(waits, result.node);
      over.push_back({add(call, "Identity", numbered("branch_done", b),
                          {{branches[b].pivot->inputs()[0]}}, {}, std::move(waits)),
                      0});
    }
    made.done = add(call, "Merge", "done", std::move(over));
  }
  for (std::size_t i = 0; i < results; ++i) {
    std::vector<Output> values;
    for (const Branch& branch : branches) values.push_back(branch.body.results[i]);
    Output value{add(call, "Merge", numbered("Merge", i), std::move(values)), 0};
    if (!std::all_of(branches.begin(), branches.end(), follows(i)))
      value = guarded(call, i, value, made.done);
    made.outputs.push_back(value);
  }
  return made;
}

FunctionExpander::Expanded FunctionExpander::lower_if(const Call& call) {
  const Output flag = as_condition(call, "pred", call.inputs[0]);
  const Output pred{add(call, "Identity", "pred_id", {flag}, {}, call.after), 0};
  Node* const pivot = add(call, "Switch", "pivot", {pred, pred});
  std::vector<Node*> switches(call.inputs.size() - 1);
  std::vector<Branch> branches;
  branches.push_back(copy_branch(call, call.node->attr<FunctionRef>("else_branch"), "else", pivot,
                                 pred, 0, switches));
  branches.push_back(copy_branch(call, call.node->attr<FunctionRef>("then_branch"), "then", pivot,
                                 pred, 1, switches));
  return join(call, std::move(branches));
}

FunctionExpander::Expanded FunctionExpander::lower_case(const Call& call) {
  const auto& functions = call.node->attr<std::vector<FunctionRef>>("branches");
  const auto count = static_cast<std::int32_t>(functions.size());
  const Output index{add(call, "Identity", "branch_index", {call.inputs[0]}, {}, call.after), 0};
  const auto number = [&](const std::string& name, std::int32_t value) {
    return Output{add_constant(call, name, Array::scalar(value), index.node), 0};
  };
  std::vector<Branch> branches;
  for (std::int32_t b = 0; b < count; ++b) {
    const std::string name = cat("branch_", b);
    Output pred;
    if (b + 1 < count) {
      pred = {add(call, "Equal", name + "/pred", {index, number(name + "/index", b)}), 0};
    } else {  // the last one serves all other indices
      const Output below{add(call, "Less", name + "/below", {index, number(name + "/first", 0)}),
                         0};
      const Output above{
          add(call, "GreaterEqual", name + "/above", {index, number(name + "/index", b)}), 0};
      pred = {add(call, "LogicalOr", name + "/pred", {below, above}), 0};
    }
    Node* const pivot = add(call, "Switch", name + "/switch", {pred, pred});
    std::vector<Node*> switches(call.inputs.size() - 1);
    branches.push_back(
        copy_branch(call, functions[static_cast<std::size_t>(b)], name, pivot, pred, 1, switches));
  }
  return join(call, std::move(branches));
}

namespace {

// Whether the body returns argument i as it came.
bool is_unchanged(const Function& body, std::size_t i) {
  return body.results()[i].node == body.args()[i];
}

}  // namespace

FunctionExpander::Expanded FunctionExpander::lower_while(const Call& call) {
  const auto& condition = call.node->attr<FunctionRef>("cond");
  const auto& body = call.node->attr<FunctionRef>("body");
  const InFlow flow(in_flow_);
  std::vector<Output> inputs = call.inputs;
  std::vector<bool> goes_round;
  for (std::size_t i = 0; i < inputs.size(); ++i) goes_round.push_back(!is_unchanged(*body, i));
  // Something has to go round for there to be a next iteration.
  const std::size_t results = inputs.size();
  if (inputs.empty()) {
    inputs.push_back(
        {add(call, ops_.of_kind(NodeKind::kConst).name.c_str(), "token", {},
             AttrMap{{"value", Array::scalar(true)}, {"dtype", DType::kBool}}, call.after),
         0});
    goes_round.push_back(true);
  } else if (std::find(goes_round.begin(), goes_round.end(), true) == goes_round.end()) {
    goes_round[0] = true;
  }

  const std::string frame = unused_frame(call.name);
  const auto parallel = call.node->attr<std::int64_t>("parallel_iterations");
  std::vector<Output> state;
  Node* first = nullptr;  // that iterates
  std::size_t first_index = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool constant = !goes_round[i];
    Node* node =
        add(call, "Enter", numbered("Enter", i), {inputs[i]},
            {{"frame_name", frame}, {"is_constant", constant}, {"parallel_iterations", parallel}},
            call.after);
    if (!constant) {
      node = add(call, "Merge", numbered("Merge", i), {{node, 0}, {}});
      // What iterates may change its shape.
      if (i < results)
        f_.graph.set_output_shape(node, 0, call.node->output_shape(static_cast<int>(i)));
      if (!first) {
        first = node;
        first_index = i;
      }
    }
    state.push_back({node, 0});
  }
  std::vector<Output> args(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(results));
  const Body test =
      copy_body(call, condition, call.name + "/cond", args, {.node = first, .sources = true});
  const Output flag = as_condition(call, "cond_bool", test.results[0]);
  const Output go_on{add(call, "LoopCond", "LoopCond", {flag}, {}, test.effects), 0};
  std::vector<Node*> switches;
  for (std::size_t i = 0; i < state.size(); ++i)
    switches.push_back(add(call, "Switch", numbered("Switch", i), {state[i], go_on}));
  Node* const pivot = add(call, "Identity", "body/pivot", {{switches[first_index], 1}});
  args.clear();
  for (std::size_t i = 0; i < results; ++i) args.push_back({switches[i], 1});
  Body next = copy_body(call, body, call.name + "/body", args, {.node = pivot, .sources = true});
  if (results == 0) {
    next.results.push_back({pivot, 0});
    next.after_effects.push_back(next.effects.empty());
  }
  Node* effects = nullptr;
  Expanded made;
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (goes_round[i]) {
      std::vector<Node*> after;
      if (!next.effects.empty() && !next.after_effects[i]) {
        if (!effects) effects = when_over(call, "body/effects", next.effects);
        after.push_back(effects);
      }
      Node* const round = add(call, "NextIteration", numbered("NextIteration", i),
                              {next.results[i]}, {}, std::move(after));
      f_.graph.set_input(state[i].node, 1, {round, 0});
    }
    Node* const out = add(call, "Exit", numbered("Exit", i), {{switches[i], 0}});
    if (i < results) made.outputs.push_back({out, 0});
    if (call.is_waited_for && (i < results || results == 0)) {
      if (!made.done) made.done = add(call, "NoOp", "done", {});
      f_.graph.add_control_input(made.done, out);
    }
  }
  return made;
}

std::string FunctionExpander::unused_frame(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; !frames_.insert(name).second; ++i) name = cat(wanted, '_', i);
  return name;
}

}  // namespace tandem::passes
