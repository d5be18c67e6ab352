#include "tandem/cli/initializers.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

#include "tandem/core/error.h"
#include "tandem/graph/function.h"

namespace tandem::cli {
namespace {

std::size_t at(const Node* node) { return static_cast<std::size_t>(node->id()); }

bool assigns(const Node& node) { return node.op().traits.initializes == Initializes::kVariable; }

// Something to hang control edges on.
bool does_nothing(const Node& node) {
  return node.inputs().empty() && node.num_outputs() == 0 && !node.op().traits.stateful;
}

bool fills_a_table(const Node& node, std::map<const Function*, bool>& known) {
  if (node.op().traits.initializes == Initializes::kTable) return true;
  if (node.kind() != NodeKind::kCall) return false;
  const AttrValue* called = node.attrs().find("f");
  const auto* f = called ? called->get_if<FunctionRef>() : nullptr;
  if (!f || !*f) return false;
  const auto [found, is_new] = known.emplace(f->get(), false);
  if (is_new) {
    const auto& body = (*f)->body().nodes();
    const bool fills = std::any_of(body.begin(), body.end(),
                                   [&](const auto& n) { return fills_a_table(*n, known); });
    known[f->get()] = fills;
    return fills;
  }
  return found->second;
}

// What is known of each node, by its id.
class Initializers {
 public:
  explicit Initializers(const Graph& graph)
      : order_(graph.topological_order()), users_(graph.consumers()) {
    const auto count = static_cast<std::size_t>(graph.id_limit());
    fed_.resize(count);
    initializes_.resize(count);
    awaited_.resize(count);
    find_fed();
    find_assigned();
    for (const Node* node : order_) {
      initializes_[at(node)] = !fed_[at(node)] && (gives_a_value(*node) || only_waits(*node));
      if (!initializes_[at(node)]) continue;
      for (const Node* before : node->control_inputs()) awaited_[at(before)] = true;
    }
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Node* node : order_) {
      if (initializes_[at(node)] && !awaited_[at(node)]) names.push_back(node->name());
    }
    return names;
  }

 private:
  void find_fed() {
    for (const Node* node : order_) {
      const auto is_fed = [&](const Node* before) { return static_cast<bool>(fed_[at(before)]); };
      const auto& inputs = node->inputs();
      const auto& before = node->control_inputs();
      fed_[at(node)] = node->op().traits.placeholder || node->kind() == NodeKind::kArg ||
                       std::any_of(inputs.begin(), inputs.end(),
                                   [&](const Output& in) { return is_fed(in.node); }) ||
                       std::any_of(before.begin(), before.end(), is_fed);
    }
  }

  // A training step assigns as well, to what it has read; what only copies one variable to another
  // needs a value of the other.
  void find_assigned() {
    std::vector<const Node*> assigns_new;
    std::set<const Node*> given;
    for (const Node* node : order_) {
      if (!assigns(*node) || fed_[at(node)] || node->inputs().size() < 2) continue;
      const Node* variable = node->inputs()[0].node;
      std::set<const Node*>& read = reads_[node];
      find_read(node->inputs()[1].node, read);
      if (read.contains(variable)) continue;
      given.insert(variable);
      assigns_new.push_back(node);
    }
    for (const Node* node : assigns_new) {
      const std::set<const Node*>& read = reads_[node];
      if (std::includes(given.begin(), given.end(), read.begin(), read.end())) first_.insert(node);
    }
  }

  // The variables that a value is made from, as far as the first of very many nodes show.
  static void find_read(const Node* value, std::set<const Node*>& variables) {
    constexpr std::size_t kMax = 1000;
    std::set<const Node*> seen{value};
    std::vector<const Node*> open{value};
    while (!open.empty() && seen.size() < kMax) {
      const Node* node = open.back();
      open.pop_back();
      if (node->kind() == NodeKind::kVariable) variables.insert(node);
      for (const Output& in : node->inputs()) {
        if (seen.insert(in.node).second) open.push_back(in.node);
      }
    }
  }

  bool gives_a_value(const Node& node) {
    if (assigns(node)) return first_.contains(&node);
    if (!fills_a_table(node, fills_)) return false;
    const auto& users = users_[at(&node)];  // a function of which somebody takes results does more
    return std::none_of(users.begin(), users.end(), [&](const Node* user) {
      return std::any_of(user->inputs().begin(), user->inputs().end(),
                         [&](const Output& in) { return in.node == &node; });
    });
  }

  bool only_waits(const Node& node) const {
    const auto& before = node.control_inputs();
    return does_nothing(node) && !before.empty() &&
           std::all_of(before.begin(), before.end(),
                       [&](const Node* b) { return static_cast<bool>(initializes_[at(b)]); });
  }

  const std::vector<Node*> order_;
  const std::vector<std::vector<Node*>> users_;
  std::vector<bool> fed_, initializes_, awaited_;
  std::map<const Node*, std::set<const Node*>> reads_;  // of assigns
  std::set<const Node*> first_;                         // assigns that give first values
  std::map<const Function*, bool> fills_;
};

}  // namespace

std::vector<std::string> initializers(const Graph& graph) { return Initializers(graph).names(); }

[[noreturn]] void rethrow_proposing_init(const std::string& command, const Graph& graph) {
  const std::exception_ptr error = std::current_exception();
  // On a device that computes nothing there is a value, and no other node would give one.
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
