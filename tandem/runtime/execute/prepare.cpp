#include "tandem/runtime/execute/prepare.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/graph/op_registry.h"
#include "tandem/runtime/execute/late_reads.h"

namespace tandem {
namespace {

constexpr const char* kReadOp = "_ReadReference";

bool makes_references(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    return std::any_of(node->output_dtypes().begin(), node->output_dtypes().end(), is_ref);
  });
}

bool is_reference(Output o) { return is_ref(o.node->output_dtype(o.index)); }

// Whether input i is declared as a reference.
bool wants_reference(const Node& node, std::size_t i) {
  std::size_t next = 0;
  for (const ArgDef& arg : node.op().inputs) {
    std::size_t count = 1;
    if (!arg.number_attr.empty()) {
      count = static_cast<std::size_t>(node.attr<std::int64_t>(arg.number_attr));
    } else if (!arg.type_list_attr.empty()) {
      count = node.attr<std::vector<DType>>(arg.type_list_attr).size();
    }
    next += count;
    if (i < next) return arg.is_ref;
  }
  return false;
}

Node* add_read(MutableFunction& f, const OpDef& op, Output reference, std::vector<Node*> after,
               const std::string& device) {
  const std::string& name = reference.node->name();
  Graph::NodeSpec spec;
  spec.op = &op;
  spec.name = name + "/value";
  spec.inputs = {reference};
  spec.attrs.set("source", reference.index == 0 ? name : cat(name, ":", reference.index));
  spec.control_inputs = std::move(after);
  spec.device = device;
  spec.where = reference.node->where();
  return f.graph.add(std::move(spec));
}

void make_reads_explicit(MutableFunction& f, const OpDef& op) {
  std::vector<Node*> nodes;
  for (const auto& node : f.graph.nodes()) nodes.push_back(node.get());
  for (Node* node : nodes) {
    for (std::size_t i = 0; i < node->inputs().size(); ++i) {
      const Output in = node->inputs()[i];
      if (!in.node || !is_reference(in) || wants_reference(*node, i)) continue;
      std::vector<Node*> after = node->control_inputs();
      // A Merge does not wait for all of its inputs.
      for (std::size_t k = 0; k < node->inputs().size() && node->kind() != NodeKind::kMerge; ++k) {
        Node* other = node->inputs()[k].node;
        if (k != i && std::find(after.begin(), after.end(), other) == after.end())
          after.push_back(other);
      }
      f.graph.set_input(node, static_cast<int>(i),
                        {add_read(f, op, in, std::move(after), node->requested_device()), 0});
    }
  }
  for (Output& result : f.results)
    if (is_reference(result)) result = {add_read(f, op, result, {}, ""), 0};
}

}  // namespace

void prepare(MutableFunction& f, const OpRegistry& ops) {
  if (makes_references(f.graph)) {
    read_late(f);
    make_reads_explicit(f, ops.get(kReadOp));
  }
  passes::propagate_constant_control_inputs(f);
}

}  // namespace tandem
