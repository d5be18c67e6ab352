#include "tandem/cli/whole_graph.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"

namespace tandem::cli {
namespace {

// By node id: what the named tensors and nodes are made from.
std::vector<bool> needed_for(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<bool> needed(static_cast<std::size_t>(graph.id_limit()), false);
  std::vector<const Node*> open;
  const auto need = [&](const Node* node) {
    if (!node || needed[static_cast<std::size_t>(node->id())]) return;
    needed[static_cast<std::size_t>(node->id())] = true;
    open.push_back(node);
  };
  for (const std::string& name : names) need(graph.find(name.substr(0, name.find(':'))));
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Output& in : node->inputs()) need(in.node);
    for (const Node* before : node->control_inputs()) need(before);
  }
  return needed;
}

// That the sizes that are known leave a tensor that could be.
void check_bytes(const std::string& name, DType dtype, const PartialShape& shape) {
  if (is_object(dtype) || !shape.has_rank()) return;
  auto bytes = static_cast<std::int64_t>(dtype_size(dtype));
  try {
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape.dim(i) > 0) bytes = checked_multiply(bytes, shape.dim(i));
    }
  } catch (const InvalidArgumentError&) {
    throw InvalidArgumentError(
        cat("Tensor '", name, "' of ", dtype, shape, " would have more than 2^63 bytes."));
  }
}

}  // namespace

WholeFunction whole_function(io::ImportedGraph imported, const WholeGraph& step) {
  const bool everything = step.fetches.empty() && step.targets.empty();
  if (everything && !imported.unsupported.empty()) {
    throw UnimplementedError(cat("The graph cannot be optimized, since some nodes cannot run:",
                                 io::describe_unsupported(imported.unsupported)));
  }
  std::vector<std::string> fetches = step.fetches, targets = step.targets;
  WholeFunction whole;
  whole.graph = imported.graph;
  std::vector<std::string>& feeds = whole.feeds;
  std::map<std::string, PartialShape> given = step.shapes;
  const auto users = imported.graph->consumers();
  std::vector<std::string> wanted = fetches;
  wanted.insert(wanted.end(), targets.begin(), targets.end());
  wanted.insert(wanted.end(), step.inits.begin(), step.inits.end());
  const std::vector<bool> needed = needed_for(*imported.graph, wanted);
  const auto is_init = [&](const Node& node) {
    return std::find(step.inits.begin(), step.inits.end(), node.name()) != step.inits.end();
  };
  for (const auto& node : imported.graph->nodes()) {
    const bool used = !users[static_cast<std::size_t>(node->id())].empty();
    if (node->op().traits.placeholder) {
      const auto shape = given.find(node->name());
      const bool skipped = everything ? !used && imported.graph->num_nodes() > 1
                                      : !needed[static_cast<std::size_t>(node->id())];
      if (skipped && shape == given.end()) continue;
      feeds.push_back(node->name());
      whole.arg_shapes.push_back(shape == given.end() ? node->output_shape(0) : shape->second);
      if (shape != given.end()) given.erase(shape);
    } else if (everything && !used && node->kind() != NodeKind::kConst && !is_init(*node)) {
      for (int i = 0; i < node->num_outputs(); ++i) fetches.push_back(cat(node->name(), ":", i));
      if (node->num_outputs() == 0) targets.push_back(node->name());
    }
  }
  for (const auto& [name, shape] : given) {
    feeds.push_back(name);
    whole.arg_shapes.push_back(shape);
  }
  const io::GraphSession session(std::move(imported));
  whole.function = session.prepare(feeds, fetches, targets).function();
  for (const std::string& init : step.inits)
    whole.inits.push_back(session.prepare(feeds, {}, {init}));
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    const Node& arg = *whole.function->args()[i];
    check_bytes(feeds[i], arg.output_dtype(0), whole.arg_shapes[i]);
    if (arg.output_shape(0).is_compatible(whole.arg_shapes[i])) continue;
    throw InvalidArgumentError(cat("Tensor '", feeds[i], "' is ", arg.output_dtype(0),
                                   arg.output_shape(0), " but is fed ", arg.output_dtype(0),
                                   whole.arg_shapes[i], "."));
  }
  return whole;
}

WholeFunction whole_function(const ModelSignature& signature, const WholeGraph& step) {
  const ConcreteFunction function = signature.function();
  WholeFunction whole;
  whole.function = function.function();
  whole.captures = function.captures();
  std::map<std::string, PartialShape> given = step.shapes;
  for (const saved_model::TensorSpec& spec : signature.inputs()) {
    whole.feeds.push_back(spec.name);
    const auto shape = given.find(spec.name);
    whole.arg_shapes.push_back(shape == given.end() ? spec.shape : shape->second);
    check_bytes(spec.name, spec.dtype, whole.arg_shapes.back());
    if (!spec.shape.is_compatible(whole.arg_shapes.back())) {
      throw InvalidArgumentError(cat("Input '", spec.name, "' is ", spec.dtype, spec.shape,
                                     " but is fed ", spec.dtype, whole.arg_shapes.back(), "."));
    }
    if (shape != given.end()) given.erase(shape);
  }
  if (!given.empty())
    throw NotFoundError(cat("The signature has no input '", given.begin()->first, "'."));
  for (const Tensor& capture : whole.captures) whole.arg_shapes.push_back(capture.partial_shape());
  return whole;
}

}  // namespace tandem::cli
