#include "tandem/distribute/internal/parameters/closure_graph.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/core/resource_handle.h"
#include "tandem/distribute/internal/parameters/variable_values.h"
#include "tandem/graph/inline_calls.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/passes.h"
#include "tandem/io/graph_export.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/traced_function.h"

namespace tandem::distribute {
namespace {

const Resource* resource_of(const Tensor& handle) {
  if (handle.dtype() != DType::kResource) return nullptr;
  return handle.array().values<ResourceHandle>()[0].resource();
}

int find_variable(const std::vector<Variable>& variables, const Tensor& capture) {
  const Resource* resource = resource_of(capture);
  for (std::size_t v = 0; resource && v < variables.size(); ++v) {
    if (resource_of(variables[v].handle()) == resource) return static_cast<int>(v);
  }
  return -1;
}

// Whether a value follows from the first arguments alone, and is equal whenever it is computed.
bool follows_from_inputs(const MutableFunction& f, std::size_t num_inputs, const Node* node,
                         const OpRegistry& ops) {
  const auto inputs_end = f.args.begin() + static_cast<std::ptrdiff_t>(num_inputs);
  std::vector<const Node*> open{node};
  std::set<const Node*> seen;
  while (!open.empty()) {
    const Node* next = open.back();
    open.pop_back();
    if (!seen.insert(next).second) continue;
    if (&next->op() == &ops.of_kind(NodeKind::kArg)) {
      if (std::find(f.args.begin(), inputs_end, next) == inputs_end) return false;
      continue;
    }
    if (next->op().traits.stateful) return false;
    for (const Output& input : next->inputs()) open.push_back(input.node);
  }
  return true;
}

struct Lookup {
  Node* rows = nullptr;  // the argument; null: the whole variable is needed
  Output index = {};
};

// Where the one use of a variable is to look up rows, and its gradient, if any, is that of these:
// an argument in place of them. `gradient` becomes the gradient of the rows.
Lookup find_lookup(MutableFunction& f, const VariableValues& values, std::size_t num_inputs,
                   Node* handle, const Variable& variable, Output* gradient,
                   const OpRegistry& ops) {
  const std::vector<Node*> users = f.graph.consumers()[static_cast<std::size_t>(handle->id())];
  if (users.size() != 1 || users.front()->op().name != "ResourceGather") return {};
  Node* gather = users.front();
  const Output index = gather->inputs()[1];
  if (gather->attr<std::int64_t>("batch_dims") != 0) return {};
  if (!follows_from_inputs(f, num_inputs, index.node, ops)) return {};
  if (gradient) {
    const Node* sum = gradient->node;
    if (sum->op().name != "UnsortedSegmentSum" || sum->inputs()[1] != index) return {};
    *gradient = sum->inputs()[0];
  }
  Lookup lookup{values.add_argument(variable, gather->output_shape(0)), index};
  f.replace({gather, 0}, {lookup.rows, 0});
  values.drop_control_edges(gather);
  return lookup;
}

}  // namespace

ClosureGraph make_closure_graph(
    const std::function<std::vector<Tensor>(std::span<const Tensor>)>& body,
    const std::vector<Tensor>& examples, const std::vector<Variable>& variables,
    std::size_t num_trainable, bool trains) {
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
  for (const Tensor& example : examples) {
    dtypes.push_back(example.dtype());
    shapes.push_back(PartialShape(example.shape()));
  }
  const std::vector<Variable> trainable(
      variables.begin(), variables.begin() + static_cast<std::ptrdiff_t>(num_trainable));
  std::size_t num_outputs = 0;
  std::vector<bool> has_gradient(variables.size(), false);
  const ConcreteFunction traced =
      trace_function("closure", dtypes, shapes, [&](std::span<const Tensor> inputs) {
        GradientTape tape;
        std::vector<Tensor> results = body(inputs);
        num_outputs = results.size();
        if (!trains) return results;
        if (results.empty())
          throw InvalidArgumentError("A training step has to return its loss as its first result.");
        const std::vector<Tensor> gradients = tape.gradient(results.front(), trainable);
        for (std::size_t v = 0; v < gradients.size(); ++v) {
          has_gradient[v] = gradients[v].defined();
          if (has_gradient[v]) results.push_back(gradients[v]);
        }
        return results;
      });

  const OpRegistry& ops = Runtime::current().ops();
  MutableFunction f(*traced.function());
  passes::inline_calls(f, ops);
  const VariableValues values(f, ops);
  const std::size_t num_inputs = f.args.size() - traced.captures().size();
  std::vector<Node*> args(f.args.begin(), f.args.begin() + static_cast<std::ptrdiff_t>(num_inputs));
  std::vector<Node*> others;
  std::vector<Tensor> captures;
  std::vector<int> read;       // variables, in the order of arguments
  std::vector<int> looked_up;  // those of which only rows are
  std::vector<Output> indices;
  std::vector<int> changed;
  ClosureGraph graph;
  graph.changes.resize(variables.size());
  std::vector<std::size_t> result_of(variables.size(), 0);  // which is the gradient
  for (std::size_t v = 0, r = num_outputs; v < variables.size(); ++v) {
    if (trains && has_gradient[v]) result_of[v] = r++;
  }
  for (std::size_t c = 0; c < traced.captures().size(); ++c) {
    Node* handle = f.args[num_inputs + c];
    const int v = find_variable(variables, traced.captures()[c]);
    if (v < 0) {
      if (resource_of(traced.captures()[c])) values.check_is_only_read(handle);
      others.push_back(handle);
      captures.push_back(traced.captures()[c]);
      continue;
    }
    const auto at = static_cast<std::size_t>(v);
    Output* gradient = result_of[at] > 0 ? &f.results[result_of[at]] : nullptr;
    const Lookup lookup = find_lookup(f, values, num_inputs, handle, variables[at], gradient, ops);
    read.push_back(v);
    if (lookup.rows) {
      looked_up.push_back(v);
      indices.push_back(lookup.index);
      args.push_back(lookup.rows);
      continue;
    }
    args.push_back(values.add_argument(variables[at], variables[at].shape()));
    const ChangeOfVariable change = values.replace(handle, args.back(), variables[at]);
    if (!change.value.node) continue;
    if (!trains) {
      throw InvalidArgumentError(cat("The step changes variable '", variables[at].name(),
                                     "', which only a train_function may do."));
    }
    changed.push_back(v);
    f.results.push_back(change.value);
    graph.changes[at].adds = change.adds;
  }
  f.results.insert(f.results.end(), indices.begin(), indices.end());
  f.args = std::move(args);
  f.args.insert(f.args.end(), others.begin(), others.end());
  passes::prune(f);

  io::ExportOptions options;
  for (std::size_t i = 0; i < num_inputs; ++i) options.inputs.push_back(cat("input_", i));
  for (std::size_t i = 0; i < read.size(); ++i) options.inputs.push_back(cat("parameter_", i));
  for (std::size_t r = 0; r < f.results.size(); ++r) options.outputs.push_back(cat("result_", r));
  const auto function =
      std::make_shared<const Function>("closure", std::move(f.graph), std::move(f.args),
                                       std::move(f.results), std::move(f.control_results));
  const io::ExportedGraph exported =
      io::export_graph_def(ConcreteFunction(function, std::move(captures)), options);

  graph.graph_def = exported.bytes;
  graph.inputs.assign(exported.inputs.begin(),
                      exported.inputs.begin() + static_cast<std::ptrdiff_t>(num_inputs));
  graph.parameters.resize(variables.size());
  for (std::size_t i = 0; i < read.size(); ++i)
    graph.parameters[static_cast<std::size_t>(read[i])] = exported.inputs[num_inputs + i];
  graph.outputs.assign(exported.outputs.begin(),
                       exported.outputs.begin() + static_cast<std::ptrdiff_t>(num_outputs));
  graph.gradients.resize(variables.size());
  std::size_t next = num_outputs;
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (trains && has_gradient[v]) graph.gradients[v] = exported.outputs[next++];
  }
  for (const int v : changed)
    graph.changes[static_cast<std::size_t>(v)].tensor = exported.outputs[next++];
  graph.indices.resize(variables.size());
  for (const int v : looked_up)
    graph.indices[static_cast<std::size_t>(v)] = exported.outputs[next++];
  return graph;
}

}  // namespace tandem::distribute
