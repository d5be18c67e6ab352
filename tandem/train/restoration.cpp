#include "tandem/train/internal/restoration.h"

#include <algorithm>
#include <cstddef>
#include <deque>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/train/internal/grouped_read.h"

namespace tandem::train::internal {
namespace {

constexpr const char* kCounterKey = "save_counter/.ATTRIBUTES/VARIABLE_VALUE";
constexpr const char* kGraphKey = "_CHECKPOINTABLE_OBJECT_GRAPH";

std::pair<const void*, std::string> id_of(const ObjectTree::Node& node, const TrackedValue& value) {
  return {node.object->identity(), value.attribute};
}

}  // namespace

Restoration::Restoration(const std::string& prefix, std::map<std::string, std::string> renamed)
    : prefix_(prefix),
      renamed_(std::move(renamed)),
      file_(saving_for("td::train::Checkpoint").open_checkpoint(prefix)) {}

Restoration::~Restoration() {
  if (expects_partial) return;
  const std::vector<std::string> left = unused();
  if (left.empty()) return;
  try {
    log(LogLevel::kWarning,
        cat("Checkpoint ", prefix_, " held ", left.size(), " values that no object took, such as ",
            left.front(), ". If that is meant, say so: checkpoint.restore(…).expect_partial()."));
  } catch (...) {
    // A destructor has no one to report to.
  }
}

// Which object of the file each of ours is: children of equal names, from the root on.
void Restoration::match(const ObjectTree& tree) {
  theirs_.assign(tree.nodes.size(), -1);
  if (!file_->has_graph()) return;
  const ObjectGraph& graph = file_->graph();
  const auto match_child = [&](int object, const ObjectTree::Node& child, const std::string& name) {
    const auto renamed = renamed_.find(child.path);
    if (renamed == renamed_.end()) return graph.child(object, name);
    int at = 0;
    std::string path = renamed->second;
    while (at >= 0 && !path.empty()) {
      const std::size_t slash = path.find('/');
      at = graph.child(at, path.substr(0, slash));
      path = slash == std::string::npos ? "" : path.substr(slash + 1);
    }
    if (at < 0) {
      throw NotFoundError(cat("Checkpoint ", prefix_, " has no object '", renamed->second,
                              "', which '", child.path, "' is to be restored from."));
    }
    return at;
  };
  theirs_[0] = 0;
  std::deque<std::size_t> open{0};
  while (!open.empty()) {
    const std::size_t at = open.front();
    open.pop_front();
    matched_.insert(theirs_[at]);
    for (const auto& [name, number] : tree.nodes[at].children) {
      const auto child = static_cast<std::size_t>(number);
      if (theirs_[child] >= 0) continue;
      theirs_[child] = match_child(theirs_[at], tree.nodes[child], name);
      if (theirs_[child] >= 0) open.push_back(child);
    }
  }
  match_slots(tree);
}

// What an old optimizer kept of a variable lies at no path, but beside it.
void Restoration::match_slots(const ObjectTree& tree) {
  const ObjectGraph& graph = file_->graph();
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    if (theirs_[at] < 0) continue;
    const auto& stored = graph.objects[static_cast<std::size_t>(theirs_[at])].slots;
    for (const ObjectTree::Slot& slot : tree.nodes[at].slots) {
      const int variable = theirs_[static_cast<std::size_t>(slot.variable)];
      for (const ObjectGraph::Slot& other : stored) {
        if (other.variable != variable || other.name != slot.name) continue;
        theirs_[static_cast<std::size_t>(slot.object)] = other.object;
        matched_.insert(other.object);
      }
    }
  }
}

std::string Restoration::key_by_name(const TrackedValue& value) const {
  std::string name = value.name;
  for (const auto& [ours, theirs] : renamed_) {
    if (!name.starts_with(ours)) continue;
    name = theirs + name.substr(ours.size());
    break;
  }
  return !name.empty() && file_->contains(name) ? name : "";
}

void Restoration::check(const Change& change) const {
  const DType dtype = file_->dtype(change.key);
  const Shape shape = file_->shape(change.key);
  const TrackedValue& value = *change.value;
  if ((value.dtype == DType::kInvalid || value.dtype == dtype) &&
      value.shape.is_compatible(shape)) {
    return;
  }
  throw InvalidArgumentError(cat("Checkpoint ", prefix_, " cannot be restored: '", change.path, "'",
                                 value.name.empty() ? "" : cat(" (variable ", value.name, ")"),
                                 " is ", value.dtype, value.shape, ", but the checkpoint has ",
                                 dtype, shape, " for it (", change.key, ")."));
}

void Restoration::apply(const ObjectTree& tree) {
  match(tree);
  std::vector<Change> changes;
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const ObjectTree::Node& node = tree.nodes[i];
    for (const TrackedValue& value : node.values) {
      std::pair<const void*, std::string> id = id_of(node, value);
      if (restored_.count(id) != 0) continue;
      const std::string key =
          !file_->has_graph() ? key_by_name(value)
          : theirs_[i] < 0    ? ""
                              : file_->graph().objects[static_cast<std::size_t>(theirs_[i])].key_of(
                                    value.attribute);
      if (key.empty()) continue;
      changes.push_back({&value, node.path, key, std::move(id), node.object});
      check(changes.back());
    }
  }
  // An iterator may refuse its state; variables, which were checked, do not.
  std::stable_partition(changes.begin(), changes.end(), [](const Change& change) {
    return change.value->attribute != ObjectGraph::kVariableValue;
  });
  std::vector<std::string> keys;
  for (const Change& change : changes) keys.push_back(change.key);
  read_in_groups(*file_, prefix_, keys, [&](std::size_t i, Tensor value) {
    try {
      changes[i].value->restore(std::move(value));
    } catch (...) {
      std::rethrow_exception(with_line(std::current_exception(),
                                       cat("while '", changes[i].path, "' was restored from ",
                                           changes[i].key, " of checkpoint ", prefix_)));
    }
    used_.insert(changes[i].key);
    restored_.emplace(changes[i].id, changes[i].owner);
  });
}

bool Restoration::is_restored(const ObjectTree::Node& node, const TrackedValue& value) const {
  return restored_.count(id_of(node, value)) != 0;
}

bool Restoration::matched_any() const {
  return std::any_of(used_.begin(), used_.end(),
                     [](const std::string& key) { return key != kCounterKey; });
}

std::vector<std::string> Restoration::unused() const {
  std::vector<std::string> left;
  if (!file_->has_graph()) {
    for (const std::string& key : file_->keys())
      if (used_.count(key) == 0) left.push_back(key);
    return left;
  }
  // One value may have several keys, as one object has several paths.
  for (const ObjectGraph::Object& object : file_->graph().objects) {
    const auto add = [&](const std::string& key) {
      if (!key.empty() && key != kCounterKey && key != kGraphKey && used_.count(key) == 0)
        left.push_back(key);
    };
    add(object.key);
    for (const ObjectGraph::Value& value : object.values) {
      // How a Python object is configured, which is for people.
      if (value.attribute != "OBJECT_CONFIG_JSON") add(value.key);
    }
  }
  return left;
}

bool Restoration::awaits_parts(const ObjectTree& tree, std::size_t node) const {
  if (!file_->has_graph()) return true;
  if (theirs_[node] < 0) return false;
  const auto& stored = file_->graph().objects[static_cast<std::size_t>(theirs_[node])];
  for (const auto& [name, child] : stored.children) {
    bool there = false;
    for (const auto& [ours, number] : tree.nodes[node].children) there = there || ours == name;
    if (!there) return true;
  }
  return !stored.slots.empty();
}

}  // namespace tandem::train::internal
