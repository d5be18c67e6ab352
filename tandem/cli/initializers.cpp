#include "tandem/cli/initializers.h"

#include <cstddef>

#include "tandem/core/error.h"

namespace tandem::cli {
namespace {

bool gives_a_value(const std::string& op) {
  return op == "Assign" || op == "AssignVariableOp" || op.starts_with("InitializeTable") ||
         op.starts_with("LookupTableImport");
}

std::size_t at(const Node& node) { return static_cast<std::size_t>(node.id()); }

}  // namespace

std::vector<std::string> initializers(const Graph& graph) {
  const auto count = static_cast<std::size_t>(graph.id_limit());
  std::vector<bool> fed(count), initializes(count), awaited(count);
  const std::vector<Node*> order = graph.topological_order();
  for (const Node* node : order) {
    bool only_waits = !node->control_inputs().empty() && node->inputs().empty();
    fed[at(*node)] = node->op().name.starts_with("Placeholder") || node->kind() == NodeKind::kArg;
    const auto reads = [&](const Node& in) { fed[at(*node)] = fed[at(*node)] || fed[at(in)]; };
    for (const Output& in : node->inputs()) reads(*in.node);
    for (const Node* before : node->control_inputs()) {
      reads(*before);
      only_waits = only_waits && initializes[at(*before)];
    }
    const std::string& op = node->op().name;
    initializes[at(*node)] = !fed[at(*node)] && (gives_a_value(op) || (op == "NoOp" && only_waits));
    if (!initializes[at(*node)]) continue;
    for (const Node* before : node->control_inputs()) awaited[at(*before)] = true;
  }
  std::vector<std::string> names;
  for (const Node* node : order) {
    if (initializes[at(*node)] && !awaited[at(*node)]) names.push_back(node->name());
  }
  return names;
}

[[noreturn]] void rethrow_proposing_init(const std::string& command, const Graph& graph) {
  const std::exception_ptr error = std::current_exception();
  // Of a device that computes nothing: there is a value, and no other node would give one.
  if (message_of(error).find("was not computed") != std::string::npos)
    std::rethrow_exception(error);
  std::string line = cat("in ", command, ": --init NODE runs a node first");
  const std::vector<std::string> found = initializers(graph);
  for (std::size_t i = 0; i < found.size() && i < 3; ++i)
    line += cat(i == 0 ? "; '" : ", '", found[i], "'");
  if (!found.empty()) line += found.size() == 1 ? " looks like one that does" : " look like such";
  std::rethrow_exception(with_line(error, line));
}

}  // namespace tandem::cli
