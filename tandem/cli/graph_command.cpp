#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tandem/cli/commands.h"
#include "tandem/cli/graph_drawing.h"
#include "tandem/cli/initializers.h"
#include "tandem/cli/whole_graph.h"
#include "tandem/core/error.h"
#include "tandem/io/graph_def.h"
#include "tandem/runtime/optimized.h"

namespace tandem::cli {
namespace {

using Json = nlohmann::ordered_json;
using Counts = std::map<std::string, int>;

struct NamedTensor {
  std::string name;
  std::string op;
  std::string dtype;
  std::string shape;
};

struct Summary {
  Counts ops;
  Counts control_flow;
  std::vector<NamedTensor> inputs;
  std::vector<NamedTensor> outputs;
  std::vector<NamedTensor> variables;
  std::vector<std::string> initializers;
};

bool steers(const std::string& op) {
  static const char* const kOps[] = {"Switch",
                                     "Merge",
                                     "Enter",
                                     "Exit",
                                     "LoopCond",
                                     "NextIteration",
                                     "RefSwitch",
                                     "RefMerge",
                                     "RefEnter",
                                     "RefExit",
                                     "_SwitchN",
                                     "RefNextIteration",
                                     "If",
                                     "StatelessIf",
                                     "While",
                                     "Case",
                                     "ControlTrigger",
                                     "StatelessWhile",
                                     "StatelessCase",
                                     "ForLoop",
                                     "For"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

bool is_variable(const std::string& op) {
  return op == "VarHandleOp" || op == "VariableV2" || op == "Variable";
}

NamedTensor tensor(const Node& node, const std::string& op, int output) {
  NamedTensor found{output ? cat(node.name(), ":", output) : node.name(), op,
                    dtype_name(node.output_dtype(output)), cat(node.output_shape(output))};
  if (is_variable(op)) {
    if (const AttrValue* dtype = node.attrs().find("dtype")) found.dtype = dtype->to_string();
    if (const AttrValue* shape = node.attrs().find("shape")) found.shape = shape->to_string();
  }
  return found;
}

Summary summarize(const io::ImportedGraph& imported) {
  Summary summary;
  summary.initializers = initializers(*imported.graph);
  const OpNames names(imported);
  const auto users = imported.graph->consumers();
  for (const auto& node : imported.graph->nodes()) {
    const std::string& op = names.of(*node);
    ++summary.ops[op];
    if (steers(op)) ++summary.control_flow[op];
    const bool used = !users[static_cast<std::size_t>(node->id())].empty();
    if (node->op().traits.placeholder) {
      // TensorFlow leaves placeholders behind that nothing reads.
      if (used || imported.graph->num_nodes() == 1) summary.inputs.push_back(tensor(*node, op, 0));
    } else if (is_variable(op) && node->num_outputs() > 0) {
      summary.variables.push_back(tensor(*node, op, 0));
    } else if (node->kind() == NodeKind::kArg) {
      summary.inputs.push_back(tensor(*node, op, 0));
    } else if (!used && node->kind() != NodeKind::kConst) {
      for (int i = 0; i < node->num_outputs(); ++i) summary.outputs.push_back(tensor(*node, op, i));
    }
  }
  for (const io::LibraryFunction& function : imported.library) {
    for (const std::string& op : function.ops) {
      if (steers(op)) ++summary.control_flow[op];
    }
  }
  return summary;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

void print_counts(const char* title, const Counts& counts) {
  if (counts.empty()) return;
  std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::size_t width = 0;
  for (const auto& [op, count] : sorted) width = std::max(width, op.size());
  std::cout << title << ":\n";
  for (const auto& [op, count] : sorted)
    std::cout << "  " << op << std::string(width - op.size() + 2, ' ') << count << '\n';
}

void print_tensors(const char* title, const std::vector<NamedTensor>& tensors) {
  if (tensors.empty()) return;
  std::cout << title << ":\n";
  for (const NamedTensor& t : tensors)
    std::cout << "  " << t.name << "  " << t.dtype << t.shape << "  " << t.op << '\n';
}

void print_text(const GraphArguments& arguments, const io::ImportedGraph& imported) {
  const Summary summary = summarize(imported);
  const std::size_t nodes = imported.graph->num_nodes(), functions = imported.library.size();
  std::cout << arguments.graph << ": " << nodes << (nodes == 1 ? " node, " : " nodes, ")
            << functions << (functions == 1 ? " function, " : " functions, ")
            << (imported.producer == 0 ? "no version: very old, or cut short"
                                       : cat("producer ", imported.producer))
            << '\n';
  print_tensors("inputs", summary.inputs);
  print_tensors("outputs", summary.outputs);
  print_tensors("variables", summary.variables);
  if (!summary.initializers.empty()) {
    std::cout << "initializers, for td run --init:\n";
    for (const std::string& name : summary.initializers) std::cout << "  " << name << '\n';
  }
  print_counts("ops", summary.ops);
  print_counts("control flow, functions included", summary.control_flow);
  if (!imported.library.empty()) std::cout << "functions:\n";
  for (const io::LibraryFunction& function : imported.library) {
    std::cout << "  " << function.name << '(' << joined(function.args) << ") -> ("
              << joined(function.results) << ")  " << function.ops.size()
              << (function.ops.size() == 1 ? " node\n" : " nodes\n");
  }
  if (imported.unsupported.empty()) {
    std::cout << "every node can run\n";
  } else {
    std::cout << imported.unsupported.size()
              << (imported.unsupported.size() == 1 ? " node" : " nodes")
              << " cannot run:" << io::describe_unsupported(imported.unsupported) << '\n';
  }
}

Json tensors_json(const std::vector<NamedTensor>& tensors) {
  Json list = Json::array();
  for (const NamedTensor& t : tensors)
    list.push_back({{"name", t.name}, {"op", t.op}, {"dtype", t.dtype}, {"shape", t.shape}});
  return list;
}

void print_json(const io::ImportedGraph& imported) {
  const Summary summary = summarize(imported);
  Json functions = Json::array(), unsupported = Json::array();
  for (const io::LibraryFunction& f : imported.library) {
    Counts ops;
    for (const std::string& op : f.ops) ++ops[op];
    functions.push_back({{"name", f.name},
                         {"args", f.args},
                         {"results", f.results},
                         {"nodes", f.ops.size()},
                         {"ops", ops}});
  }
  for (const io::UnsupportedNode& n : imported.unsupported) {
    unsupported.push_back({{"name", n.name},
                           {"op", n.op},
                           {"function", n.function},
                           {"reason", n.reason},
                           {"nearest", n.nearest}});
  }
  std::cout << Json{{"nodes", imported.graph->num_nodes()},
                    {"producer", imported.producer},
                    {"min_consumer", imported.min_consumer},
                    {"inputs", tensors_json(summary.inputs)},
                    {"outputs", tensors_json(summary.outputs)},
                    {"variables", tensors_json(summary.variables)},
                    {"initializers", summary.initializers},
                    {"ops", summary.ops},
                    {"control_flow", summary.control_flow},
                    {"functions", std::move(functions)},
                    {"unsupported", std::move(unsupported)}}
                   .dump(2, ' ', false, Json::error_handler_t::replace)
            << '\n';
}

// The graph as it runs when all its inputs are fed and all its outputs fetched: one graph, in which
// the inputs are arguments.
io::ImportedGraph optimize(io::ImportedGraph imported) {
  io::ImportedGraph result;
  result.producer = imported.producer;
  result.min_consumer = imported.min_consumer;
  result.library = imported.library;
  const WholeFunction whole = whole_function(std::move(imported));
  MutableFunction f = optimized(*whole.function, whole.arg_shapes);
  result.graph = std::make_shared<const Graph>(std::move(f.graph));
  return result;
}

}  // namespace

void show_graph(const GraphArguments& arguments) {
  io::ImportOptions import;
  import.allow_unsupported = true;
  io::ImportedGraph imported = io::read_graph_def(arguments.graph, import);
  if (arguments.optimized) imported = optimize(std::move(imported));
  if (arguments.dot) {
    std::cout << to_dot(imported);
  } else if (arguments.html) {
    std::cout << to_html(imported, arguments.graph);
  } else if (arguments.json) {
    print_json(imported);
  } else {
    print_text(arguments, imported);
  }
}

}  // namespace tandem::cli
