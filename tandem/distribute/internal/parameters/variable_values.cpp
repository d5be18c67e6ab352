#include "tandem/distribute/internal/parameters/variable_values.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/parameters/server_update.h"

namespace tandem::distribute {

VariableValues::VariableValues(MutableFunction& f, const OpRegistry& ops)
    : f_(f), ops_(ops), position_(static_cast<std::size_t>(f.graph.id_limit()), 0) {
  int next = 0;
  for (const Node* node : f.graph.topological_order())
    position_[static_cast<std::size_t>(node->id())] = next++;
}

Node* VariableValues::add_argument(const Variable& variable, const PartialShape& shape) const {
  Graph::NodeSpec spec;
  spec.op = &ops_.of_kind(NodeKind::kArg);
  spec.name = "parameter";
  spec.attrs = AttrMap{{"T", variable.dtype()}, {"index", std::int64_t{0}}};
  Node* value = f_.graph.add(std::move(spec));
  f_.graph.set_output_shape(value, 0, shape);
  return value;
}

void VariableValues::drop_control_edges(const Node* dropped) const {
  for (const auto& node : f_.graph.nodes()) {
    std::vector<Node*> before = node->control_inputs();
    if (std::erase(before, dropped) > 0) f_.graph.set_control_inputs(node.get(), before);
  }
  std::erase(f_.control_results, dropped);
}

std::vector<Node*> VariableValues::users_in_order(const Node* handle) const {
  std::vector<Node*> users = f_.graph.consumers()[static_cast<std::size_t>(handle->id())];
  std::sort(users.begin(), users.end(), [this](const Node* a, const Node* b) {
    return position_[static_cast<std::size_t>(a->id())] <
           position_[static_cast<std::size_t>(b->id())];
  });
  return users;
}

Output VariableValues::gathered_rows(Output value, const Node* gather) const {
  Graph::NodeSpec axis;
  axis.op = ops_.find("Const");
  axis.name = "axis";
  axis.attrs = AttrMap{{"value", Array::scalar<std::int32_t>(0)}, {"dtype", DType::kInt32}};
  Graph::NodeSpec rows;
  rows.op = ops_.find("GatherV2");
  rows.name = "rows";
  rows.inputs = {value, gather->inputs()[1], {f_.graph.add(std::move(axis)), 0}};
  rows.attrs = AttrMap{{"batch_dims", gather->attr<std::int64_t>("batch_dims")}};
  return {f_.graph.add(std::move(rows)), 0};
}

Output VariableValues::binary(const char* op, Output a, Output b) const {
  Graph::NodeSpec spec;
  spec.op = ops_.find(op);
  spec.inputs = {a, b};
  return {f_.graph.add(std::move(spec)), 0};
}

bool VariableValues::depends_on(Output value, const Node* argument) const {
  std::vector<const Node*> open{value.node};
  std::set<const Node*> seen;
  while (!open.empty()) {
    const Node* next = open.back();
    open.pop_back();
    if (next == argument) return true;
    if (!seen.insert(next).second) continue;
    for (const Output& input : next->inputs()) open.push_back(input.node);
  }
  return false;
}

ChangeOfVariable VariableValues::replace(Node* handle, Node* value,
                                         const Variable& variable) const {
  const Output first{value, 0};
  Output now = first;
  for (Node* user : users_in_order(handle)) {
    const std::string& op = user->op().name;
    if (op == "ReadVariableOp") {
      f_.replace({user, 0}, now);
    } else if (op == "ResourceGather") {
      f_.replace({user, 0}, gathered_rows(now, user));
    } else if (op == "AssignVariableOp") {
      now = user->inputs()[1];
    } else if (op == "AssignAddVariableOp") {
      now = binary("AddV2", now, user->inputs()[1]);
    } else if (op == "AssignSubVariableOp") {
      now = binary("Sub", now, user->inputs()[1]);
    } else {
      throw InvalidArgumentError(
          cat("The step uses variable '", variable.name(), "' by ", user->describe(),
              ". A step on a worker reads the strategy's variables, looks up rows of them and "
              "assigns to them as a whole, outside of branches and loops."));
    }
    drop_control_edges(user);
  }
  if (now == first) return {};
  const bool adds = can_be_added(variable.dtype()) && depends_on(now, value);
  return {adds ? binary("Sub", now, first) : now, adds};
}

void VariableValues::check_is_only_read(const Node* handle) const {
  for (const Node* user : users_in_order(handle)) {
    if (!user->op().traits.stateful || user->op().traits.reads_only) continue;
    throw InvalidArgumentError(
        cat("The step changes a variable by ", user->describe(),
            " that is not on the servers. Give it to add_variables, as state if no gradient "
            "changes it: Layer::non_trainable_variables names a model's."));
  }
}

}  // namespace tandem::distribute
