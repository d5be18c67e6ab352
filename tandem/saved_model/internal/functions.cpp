#include "tandem/saved_model/internal/functions.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/op_registry.h"
#include "tandem/io/internal/add_node.h"
#include "tandem/runtime/runtime.h"

namespace tandem::saved_model::internal {
namespace {

using io::add_node;

const OpRegistry& ops() { return Runtime::current().ops(); }

Node* add_arg(Graph& graph, std::size_t index, DType dtype, const PartialShape& shape) {
  Node* arg = add_node(graph, ops(), ops().of_kind(NodeKind::kArg).name.c_str(), cat("arg_", index),
                       {}, {{"T", dtype}, {"index", index}});
  graph.set_output_shape(arg, 0, shape);
  return arg;
}

Node* add_constant(Graph& graph, const std::string& name, Array value) {
  const DType dtype = value.dtype();
  return add_node(graph, ops(), "Const", name, {}, {{"dtype", dtype}, {"value", std::move(value)}});
}

FunctionRef finish(const std::string& name, Graph graph, std::vector<Node*> args,
                   std::vector<Output> results, std::vector<Node*> effects = {}) {
  return std::make_shared<const tandem::Function>(name, std::move(graph), std::move(args),
                                                  std::move(results), std::move(effects));
}

}  // namespace

FunctionRef reordered(const FunctionRef& function, const std::vector<std::size_t>& args,
                      const std::vector<std::size_t>& results, const std::string& name) {
  const std::size_t count = function->args().size();
  std::vector<Node*> own(count);
  Graph graph;
  // By the place in this function.
  std::vector<std::size_t> others(count);
  for (std::size_t i = 0; i < count; ++i) others[i < args.size() ? args[i] : i] = i;
  for (std::size_t i = 0; i < count; ++i) {
    const Node& like = *function->args()[others[i]];
    own[i] = add_arg(graph, i, like.output_dtype(0), like.output_shape(0));
  }
  std::vector<Output> inputs(count);
  for (std::size_t i = 0; i < count; ++i) inputs[others[i]] = {own[i], 0};
  const char* op = function->stateful() ? "StatefulPartitionedCall" : "PartitionedCall";
  Node* call = add_node(
      graph, ops(), op, "call", inputs,
      {{"f", function}, {"Tin", function->arg_dtypes()}, {"Tout", function->result_dtypes()}});
  std::vector<Output> outputs;
  for (const std::size_t i : results) outputs.push_back({call, static_cast<int>(i)});
  return finish(name, std::move(graph), std::move(own), std::move(outputs),
                function->stateful() ? std::vector<Node*>{call} : std::vector<Node*>{});
}

FunctionRef gradient_function(const io::ExportedGradient& gradient) {
  const tandem::Function& backward = *gradient.backward;
  const std::size_t n = gradient.inputs, m = gradient.outputs;
  Graph graph;
  std::vector<Node*> args;
  const auto add = [&](DType dtype, const PartialShape& shape) {
    args.push_back(add_arg(graph, args.size(), dtype, shape));
    return Output{args.back(), 0};
  };
  const auto shape_of = [&](std::size_t arg) { return backward.args().at(arg)->output_shape(0); };
  std::vector<Output> grads, given;
  for (std::size_t i = 0; i < m; ++i) grads.push_back(add(gradient.dtypes[n + i], shape_of(n + i)));
  for (std::size_t i = 0; i < n; ++i) add(gradient.dtypes[i], shape_of(i));
  for (std::size_t i = 0; i < gradient.dtypes.size(); ++i)
    given.push_back(add(gradient.dtypes[i], shape_of(i < n + m ? i : i + m)));
  std::vector<Output> inputs(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(n + m));
  inputs.insert(inputs.end(), grads.begin(), grads.end());
  inputs.insert(inputs.end(), given.begin() + static_cast<std::ptrdiff_t>(n + m), given.end());
  const char* op = backward.stateful() ? "StatefulPartitionedCall" : "PartitionedCall";
  Node* call = add_node(graph, ops(), op, "gradient", inputs,
                        {{"f", gradient.backward},
                         {"Tin", backward.arg_dtypes()},
                         {"Tout", backward.result_dtypes()}});
  std::vector<Output> results;
  for (int i = 0; i < call->num_outputs(); ++i) results.push_back({call, i});
  return finish("internal_grad_fn", std::move(graph), std::move(args), std::move(results));
}

FunctionRef table_creator(const TableResource& table, const TableResource::Contents& contents,
                          const std::string& shared_name) {
  Graph graph;
  AttrMap attrs{{"key_dtype", contents.keys.dtype()},
                {"value_dtype", contents.values.dtype()},
                {"shared_name", shared_name}};
  const char* op = table.may_change() ? "MutableHashTableV2" : "HashTableV2";
  if (contents.values.shape().rank() > 1) {
    op = "MutableHashTableOfTensorsV2";
    std::vector<std::int64_t> each = contents.values.shape().to_vector();
    each.erase(each.begin());
    attrs.set("value_shape", PartialShape(std::move(each)));
  }
  Node* handle = add_node(graph, ops(), op, "table", {}, std::move(attrs));
  return finish("create_table", std::move(graph), {}, {{handle, 0}});
}

FunctionRef table_initializer(const TableResource::Contents& contents) {
  Graph graph;
  Node* handle = add_arg(graph, 0, DType::kResource, PartialShape::scalar());
  Node* keys = add_constant(graph, "keys", contents.keys);
  Node* values = add_constant(graph, "values", contents.values);
  Node* fill =
      add_node(graph, ops(), "LookupTableImportV2", "fill", {{handle, 0}, {keys, 0}, {values, 0}},
               {{"Tin", contents.keys.dtype()}, {"Tout", contents.values.dtype()}});
  Node* done = add_constant(graph, "done", Array::scalar<std::int32_t>(1));
  return finish("initialize_table", std::move(graph), {handle}, {{done, 0}}, {fill});
}

FunctionRef empty_function(const std::string& name) {
  Graph graph;
  Node* done = add_constant(graph, "done", Array::scalar<std::int32_t>(1));
  return finish(name, std::move(graph), {}, {{done, 0}});
}

}  // namespace tandem::saved_model::internal
