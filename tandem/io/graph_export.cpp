#include "tandem/io/graph_export.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/passes.h"
#include "tandem/io/internal/add_node.h"
#include "tandem/io/internal/body_export.h"
#include "tandem/io/internal/capture_export.h"
#include "tandem/io/internal/graph_bytes.h"
#include "tandem/runtime/runtime.h"

namespace tandem::io {
namespace {

class FunctionExport {
 public:
  FunctionExport(const Function& function, const std::vector<Tensor>& captures,
                 const ExportOptions& options)
      : f_(function), options_(options), ops_(Runtime::current().ops()) {
    passes::prune(f_);  // what is captured for nothing is neither written nor refused
    const std::vector<Node*> first = bind_captures(f_, captures, options.variables, ops_);
    if (!first.empty()) {
      init_ = add("NoOp", "init", {}, {});
      for (Node* node : first) f_.graph.add_control_input(init_, node);
      f_.control_results.push_back(init_);
    }
    passes::prune(f_);  // what values have taken the place of
  }

  ExportedGraph run() {
    proto::GraphDef graph;
    graph.versions.make().producer = kGraphDefVersion;
    LibraryExport library(graph);
    BodyExport body(library, graph.node, false);
    name_ends(body);
    ExportedGraph result;
    std::vector<const Node*> nodes(placeholders_.begin(), placeholders_.end());
    for (const Node* node : f_.graph.topological_order()) {
      if (node->kind() != NodeKind::kArg && !is_placeholder(node)) nodes.push_back(node);
    }
    body.plan(nodes, f_.results, f_.control_results);
    body.write();
    for (const Node* placeholder : placeholders_)
      result.inputs.push_back(body.name(*placeholder) + ":0");
    for (std::size_t i = 0; i < f_.results.size(); ++i) {
      const std::string value = body.value(f_.results[i]);
      result.outputs.push_back(value.find(':') == std::string::npos ? value + ":0" : value);
    }
    for (const Node* node : f_.control_results) {
      if (node != init_) result.targets.push_back(body.name(*node));
    }
    if (init_) result.init = body.name(*init_);
    result.bytes = graph_bytes(graph, options_.format);
    return result;
  }

 private:
  static void check_count(const char* what, std::size_t named, std::size_t there) {
    if (named != 0 && named != there) {
      throw InvalidArgumentError(cat("The function has ", there, " ", what, there == 1 ? "" : "s",
                                     " but ", named, named == 1 ? " is named." : " are named."));
    }
  }

  bool is_placeholder(const Node* node) const {
    return std::find(placeholders_.begin(), placeholders_.end(), node) != placeholders_.end();
  }

  Node* add(const char* op, const std::string& name, std::vector<Output> inputs, AttrMap attrs) {
    return add_node(f_.graph, ops_, op, name, std::move(inputs), std::move(attrs));
  }

  // Arguments become placeholders, results get nodes of the names asked for. Names that the caller
  // gave go before all others.
  void name_ends(BodyExport& body) {
    check_count("argument", options_.inputs.size(), f_.args.size());
    check_count("result", options_.outputs.size(), f_.results.size());
    for (std::size_t i = 0; i < f_.args.size(); ++i) {
      const Node& arg = *f_.args[i];
      const std::string name = options_.inputs.empty() ? arg.name() : options_.inputs[i];
      Node* placeholder = add("Placeholder", name, {},
                              {{"dtype", arg.output_dtype(0)}, {"shape", arg.output_shape(0)}});
      f_.replace({f_.args[i], 0}, {placeholder, 0});
      placeholders_.push_back(placeholder);
      if (!options_.inputs.empty()) body.ask(*placeholder, name);
    }
    for (std::size_t i = 0; i < options_.outputs.size(); ++i) {
      f_.results[i] = {add("Identity", options_.outputs[i], {f_.results[i]}, {}), 0};
      body.ask(*f_.results[i].node, options_.outputs[i]);
    }
  }

  MutableFunction f_;
  const ExportOptions& options_;
  const OpRegistry& ops_;
  std::vector<Node*> placeholders_;
  Node* init_ = nullptr;
};

}  // namespace

namespace {

const Function& there(const FunctionRef& function) {
  if (!function)
    throw InvalidArgumentError(
        "There is no function to export. td::function(...).concrete(...) gives one.");
  return *function;
}

}  // namespace

ExportedGraph export_graph_def(const ConcreteFunction& function, const ExportOptions& options) {
  return FunctionExport(there(function.function()), function.captures(), options).run();
}

ExportedGraph export_graph_def(const FunctionRef& function, const ExportOptions& options) {
  return FunctionExport(there(function), {}, options).run();
}

ExportedGraph write_graph_def(const String& path, const ConcreteFunction& function,
                              ExportOptions options) {
  if (is_text_file(path)) options.format = GraphFormat::kText;
  return write_file(path, export_graph_def(function, options));
}

}  // namespace tandem::io
