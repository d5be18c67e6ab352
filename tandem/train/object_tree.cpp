#include "tandem/train/internal/object_tree.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "tandem/core/error.h"

namespace tandem::train::internal {
namespace {

// A point begins what TensorFlow adds to a path, so those in names are doubled.
std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) text += c == '.' ? std::string("..") : std::string(1, c);
  return text;
}

// Collects what one object says of itself.
class Collector final : public TrackedObject {
 public:
  void add(const std::string& name, const Tracked& part) override {
    if (name.empty() || name.front() == '/' || name.back() == '/') {
      throw InvalidArgumentError(cat("A part of an object of a checkpoint is named '", name,
                                     "': a name is not empty, and no '/' is at its ends."));
    }
    parts.emplace_back(name, part.object());
  }
  void add_value(TrackedValue value) override { values.push_back(std::move(value)); }
  void add_slot(LegacySlot slot) override { slots.push_back(std::move(slot)); }
  void add_steps(LegacySteps given) override { steps = std::move(given); }

  std::vector<std::pair<std::string, std::shared_ptr<Trackable>>> parts;
  std::vector<TrackedValue> values;
  std::vector<LegacySlot> slots;
  std::optional<LegacySteps> steps;
};

class Builder {
 public:
  explicit Builder(ObjectTree& tree) : tree_(tree) {}

  void build(const std::shared_ptr<Trackable>& root) {
    tree_.nodes.push_back({.object = root});
    known_[root->identity()] = 0;
    for (std::size_t at = 0; at < tree_.nodes.size(); ++at) visit(static_cast<int>(at));
    for (auto& [node, slot] : slots_) {
      const int of = number_of(slot.variable);
      const int held = slot.value.defined() ? number_of(slot.value) : -1;
      if (of >= 0 && (held >= 0 || !slot.value.defined()))
        this->node(node).slots.push_back({of, held, std::move(slot)});
    }
    for (auto& [node, steps] : steps_) {
      const int number = number_of(steps.steps);
      if (number >= 0) this->node(node).steps = {number, std::move(steps)};
    }
  }

 private:
  ObjectTree::Node& node(int number) { return tree_.nodes[static_cast<std::size_t>(number)]; }

  // -1: it is not reached from the root.
  int number_of(const Variable& variable) const {
    const auto found = known_.find(variable.handle().impl());
    return found == known_.end() ? -1 : found->second;
  }

  void visit(int number) {
    const std::shared_ptr<Trackable> object = node(number).object;
    if (!object) return;
    Collector collector;
    object->track(collector);
    node(number).values = std::move(collector.values);
    for (auto& [path, part] : collector.parts) add(number, path, part);
    for (LegacySlot& slot : collector.slots) slots_.emplace_back(number, std::move(slot));
    if (collector.steps) steps_.emplace_back(number, std::move(*collector.steps));
  }

  void add(int parent, std::string path, const std::shared_ptr<Trackable>& part) {
    for (std::size_t slash; (slash = path.find('/')) != std::string::npos;) {
      const std::string name = path.substr(0, slash);
      path.erase(0, slash + 1);
      const int child = child_of(parent, name);
      parent = child >= 0 ? child : add_node(parent, name, nullptr);
    }
    const int there = child_of(parent, path);
    const auto known = known_.find(part->identity());
    if (there >= 0 && (known == known_.end() || known->second != there)) {
      throw InvalidArgumentError(cat("Two objects of a checkpoint are named '", path, "' below '",
                                     node(parent).path, "'. Give each a name of its own."));
    }
    if (there >= 0) return;
    if (known != known_.end()) {
      node(parent).children.emplace_back(path, known->second);
    } else {
      known_[part->identity()] = add_node(parent, path, part);
    }
  }

  int child_of(int parent, const std::string& name) {
    for (const auto& [child, number] : node(parent).children)
      if (child == name) return number;
    return -1;
  }

  int add_node(int parent, const std::string& name, std::shared_ptr<Trackable> object) {
    const int number = static_cast<int>(tree_.nodes.size());
    const std::string& above = node(parent).path;
    const std::string path = above.empty() ? escaped(name) : cat(above, "/", escaped(name));
    node(parent).children.emplace_back(name, number);
    tree_.nodes.push_back({.object = std::move(object), .path = path});
    return number;
  }

  ObjectTree& tree_;
  std::map<const void*, int> known_;
  // With the nodes of their optimizers.
  std::vector<std::pair<int, LegacySlot>> slots_;
  std::vector<std::pair<int, LegacySteps>> steps_;
};

}  // namespace

ObjectTree::ObjectTree(const std::shared_ptr<Trackable>& root) { Builder(*this).build(root); }

std::string ObjectTree::key(const Node& node, const TrackedValue& value) {
  return cat(node.path, "/.ATTRIBUTES/", value.attribute);
}

std::string ObjectTree::variable_name(int node) const {
  for (const TrackedValue& value : nodes[static_cast<std::size_t>(node)].values)
    if (value.attribute == ObjectGraph::kVariableValue) return value.name;
  return {};
}

ObjectGraph ObjectTree::graph() const {
  ObjectGraph graph;
  for (const Node& node : nodes) {
    ObjectGraph::Object& object = graph.objects.emplace_back();
    object.children = node.children;
    for (const TrackedValue& value : node.values) {
      if (value.attribute == ObjectGraph::kVariableValue) {
        object.key = key(node, value);
        object.name = value.name;
      } else {
        object.values.push_back({value.attribute, key(node, value)});
      }
    }
  }
  return graph;
}

}  // namespace tandem::train::internal
