#include "tandem/io/internal/add_node.h"

#include <utility>

#include "tandem/graph/op_registry.h"

namespace tandem::io {

Node* add_node(Graph& graph, const OpRegistry& ops, const char* op, const std::string& name,
               std::vector<Output> inputs, AttrMap attrs) {
  Graph::NodeSpec spec;
  spec.op = &ops.get(op);
  spec.name = name;
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  return graph.add(std::move(spec));
}

}  // namespace tandem::io
