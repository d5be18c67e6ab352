#include "tandem/runtime/execute/late_reads.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tandem/core/dtype.h"

namespace tandem {
namespace {

using Nodes = std::vector<Node*>;
using NodeSet = std::set<const Node*>;

bool is_reference(Output o) { return o.node != nullptr && is_ref(o.node->output_dtype(o.index)); }

bool is_identity(const Node& node) {
  const OpTraits& traits = node.op().traits;
  return traits.shares_memory == 1 && traits.value == ShapeValue::kSameAsInput;
}

// The reference that a chain of Identity nodes begins with; nothing if it is a plain value.
Output aliased(const Node* node) {
  while (is_identity(*node)) {
    const Output in = node->inputs()[0];
    if (in.node == nullptr || is_reference(in)) return in;
    node = in.node;
  }
  return {};
}

// The variables that references may be of: where they begin, through the ops that forward them.
class Variables {
 public:
  const NodeSet& of(Output reference) {
    const auto known = known_.find(reference.node);
    if (known != known_.end()) return known->second;
    NodeSet seen{reference.node}, variables;
    std::vector<const Node*> open{reference.node};
    while (!open.empty()) {
      const Node* const node = open.back();
      open.pop_back();
      if (const auto found = known_.find(node); found != known_.end()) {
        variables.insert(found->second.begin(), found->second.end());
        continue;
      }
      bool forwarded = false;
      for (const Output in : node->inputs()) {
        if (!is_reference(in)) continue;
        forwarded = true;
        if (seen.insert(in.node).second) open.push_back(in.node);
      }
      if (!forwarded) variables.insert(node);
    }
    // All on the way to a single one are of that one, so that long chains are walked once.
    if (variables.size() == 1) {
      for (const Node* node : seen) known_.emplace(node, variables);
    }
    return known_.insert_or_assign(reference.node, std::move(variables)).first->second;
  }

 private:
  std::map<const Node*, NodeSet> known_;
};

// Ops that take a reference may forward it, read it or ask about it.
bool may_write(const Node& node) {
  return node.op().traits.stateful && !node.op().traits.reads_only;
}

std::map<const Node*, Nodes> users(const Graph& graph) {
  std::map<const Node*, Nodes> result;
  for (const auto& node : graph.nodes()) {
    for (const Output in : node->inputs()) {
      if (in.node != nullptr) result[in.node].push_back(node.get());
    }
    for (Node* before : node->control_inputs()) result[before].push_back(node.get());
  }
  return result;
}

NodeSet downstream(const Nodes& from, const std::map<const Node*, Nodes>& users) {
  NodeSet seen;
  std::vector<const Node*> open(from.begin(), from.end());
  while (!open.empty()) {
    const auto found = users.find(open.back());
    open.pop_back();
    if (found == users.end()) continue;
    for (const Node* user : found->second) {
      if (seen.insert(user).second) open.push_back(user);
    }
  }
  return seen;
}

// An Identity of the reference that runs when the user's other inputs are there.
Node* add_late_identity(MutableFunction& f, const Node* early, Output reference, const Node* user) {
  Graph::NodeSpec spec;
  spec.op = &early->op();
  spec.name = early->name() + "/late";
  spec.inputs = {reference};
  spec.attrs = early->attrs();
  spec.control_inputs = user->control_inputs();
  for (const Output in : user->inputs()) {
    auto& after = spec.control_inputs;
    if (std::find(after.begin(), after.end(), in.node) == after.end()) after.push_back(in.node);
  }
  spec.device = early->requested_device();
  spec.where = early->where();
  return f.graph.add(std::move(spec));
}

}  // namespace

void read_late(MutableFunction& f) {
  Variables variables;
  std::map<const Node*, Nodes> aliases, writers;  // by variable
  for (const auto& node : f.graph.nodes()) {
    const Output reference = aliased(node.get());
    if (reference.node != nullptr) {
      for (const Node* variable : variables.of(reference)) aliases[variable].push_back(node.get());
    }
    if (!may_write(*node)) continue;
    for (const Output in : node->inputs()) {
      if (!is_reference(in)) continue;
      for (const Node* variable : variables.of(in)) writers[variable].push_back(node.get());
    }
  }
  const std::map<const Node*, Nodes> used_by = users(f.graph);
  for (const auto& [variable, identities] : aliases) {
    const auto written = writers.find(variable);
    if (written == writers.end()) continue;
    const NodeSet after = downstream(written->second, used_by);
    for (Node* early : identities) {
      const auto found = used_by.find(early);
      if (found == used_by.end()) continue;
      for (Node* user : found->second) {
        // A Merge does not wait for all of its inputs.
        if (!after.contains(user) || user->kind() == NodeKind::kMerge) continue;
        for (std::size_t i = 0; i < user->inputs().size(); ++i) {
          if (user->inputs()[i].node != early) continue;
          Node* late = add_late_identity(f, early, aliased(early), user);
          f.graph.set_input(user, static_cast<int>(i), {late, 0});
        }
      }
    }
  }
}

}  // namespace tandem
