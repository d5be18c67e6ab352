#include "tandem/placement/internal/greedy.h"

#include <algorithm>
#include <string_view>

namespace tandem::placement {
namespace {

bool reads_shape_only(const Node& node) {
  const std::string_view op = node.op().name;
  return node.inputs().size() == 1 && node.inputs()[0].node &&
         (op == "Shape" || op == "Size" || op == "Rank");
}

bool is_generator(const Node& node) {
  return node.inputs().empty() && node.num_outputs() == 1 && !is_ref(node.output_dtype(0));
}

class Assignment {
 public:
  Assignment(const Graph& graph, const Colocation& colocation, Candidates& candidates)
      : graph_(graph), colocation_(colocation), candidates_(candidates) {
    const auto ids = static_cast<std::size_t>(graph.id_limit());
    result_.device.assign(ids, -1);
    result_.beside.assign(ids, nullptr);
    result_.constraints.group.assign(ids, -1);
    result_.order.reserve(graph.num_nodes());
  }

  Greedy run() {
    make_groups();
    std::vector<const Node*> generators;
    for (const auto& node : graph_.nodes()) {
      if (is_generator(*node) && !colocation_.given(*node)) {
        generators.push_back(node.get());
      } else {
        place(*node, reads_shape_only(*node) ? node->inputs()[0].node : nullptr);
      }
    }
    find_users(generators);
    for (const Node* node : generators) place(*node, user_of(*node));
    result_.constraints.allowed = candidates_.lists;
    return std::move(result_);
  }

 private:
  // Groups are numbered in the order of their first nodes.
  void make_groups() {
    std::vector<int> by_root(static_cast<std::size_t>(graph_.id_limit()), -1);
    for (const auto& node : graph_.nodes()) {
      const int root = colocation_.root(node->id());
      int& group = by_root[static_cast<std::size_t>(root)];
      if (group < 0) {
        group = static_cast<int>(result_.constraints.groups.size());
        result_.constraints.groups.push_back({-1, -1, false});
        result_.soft.push_back(false);
        result_.first.push_back(nullptr);
      }
      result_.constraints.group[static_cast<std::size_t>(node->id())] = group;
    }
  }

  void place(const Node& node, const Node* beside) {
    const auto id = static_cast<std::size_t>(node.id());
    const auto g = static_cast<std::size_t>(result_.constraints.group[id]);
    Constraints::Group& group = result_.constraints.groups[g];
    if (group.greedy < 0) {
      // Here, not before, so that the first node to fail is the one that TensorFlow names.
      const Candidates::Choice choice = candidates_.of(node);
      group.allowed = choice.list;
      group.asked = choice.soft || colocation_.bonds(colocation_.root(node.id())).requested != 0;
      result_.soft[g] = choice.soft;
      const auto& allowed = candidates_.lists[static_cast<std::size_t>(group.allowed)];
      group.greedy = allowed.front();
      if (beside) {
        const int there = result_.device[static_cast<std::size_t>(beside->id())];
        if (std::find(allowed.begin(), allowed.end(), there) != allowed.end()) {
          result_.beside[id] = allowed.size() > 1 ? beside : nullptr;
          group.greedy = there;
        }
      }
      result_.first[g] = &node;
    }
    result_.device[id] = group.greedy;
    result_.order.push_back(&node);
  }

  void find_users(const std::vector<const Node*>& generators) {
    slot_.assign(static_cast<std::size_t>(graph_.id_limit()), -1);
    for (std::size_t k = 0; k < generators.size(); ++k)
      slot_[static_cast<std::size_t>(generators[k]->id())] = static_cast<int>(k);
    users_.resize(generators.size());
    const auto use = [&](const Node* from, const Node* user) {
      const int slot = from ? slot_[static_cast<std::size_t>(from->id())] : -1;
      if (slot >= 0) users_[static_cast<std::size_t>(slot)].push_back(user);
    };
    for (const auto& node : graph_.nodes()) {
      for (const Output& in : node->inputs()) use(in.node, node.get());
      for (const Node* before : node->control_inputs()) use(before, node.get());
    }
  }

  // Some user of the generator if all are on one device, else null.
  const Node* user_of(const Node& generator) const {
    const auto& users =
        users_[static_cast<std::size_t>(slot_[static_cast<std::size_t>(generator.id())])];
    const auto device = [&](const Node* node) {
      return result_.device[static_cast<std::size_t>(node->id())];
    };
    for (const Node* user : users) {
      if (device(user) != device(users.front())) return nullptr;
    }
    return users.empty() ? nullptr : users.front();
  }

  const Graph& graph_;
  const Colocation& colocation_;
  Candidates& candidates_;
  Greedy result_;
  std::vector<int> slot_;
  std::vector<std::vector<const Node*>> users_;
};

}  // namespace

Greedy place_greedily(const Graph& graph, const Colocation& colocation, Candidates& candidates) {
  return Assignment(graph, colocation, candidates).run();
}

}  // namespace tandem::placement
