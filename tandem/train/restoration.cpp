#include "tandem/train/internal/restoration.h"

#include <algorithm>
#include <cstddef>
#include <deque>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/ops/operators.h"
#include "tandem/train/internal/grouped_read.h"
#include "tandem/train/internal/legacy_names.h"

namespace tandem::train::internal {
namespace {

constexpr const char* kCounterKey = "save_counter/.ATTRIBUTES/VARIABLE_VALUE";
constexpr const char* kGlobalStep = "global_step";
constexpr const char* kGraphKey = "_CHECKPOINTABLE_OBJECT_GRAPH";

// What tf.keras called parts of its optimizers before Keras 3.
const std::map<std::string, std::string> kFormerNames{{"_iterations", "iter"},
                                                      {"_learning_rate", "learning_rate"}};

std::function<Tensor(const Tensor&)> scaled(const LegacySlot& slot) {
  return [factor = slot.factor](const Tensor& value) { return value * factor(); };
}

std::pair<const void*, std::string> id_of(const ObjectTree::Node& node, const TrackedValue& value) {
  return {node.object->identity(), value.attribute};
}

}  // namespace

Restoration::Restoration(const std::string& prefix, const RestoreOptions& options)
    : prefix_(prefix),
      renamed_(options.renamed),
      check_first_(options.check_first),
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
  legacy_.clear();
  if (!file_->has_graph()) {
    match_slots_by_name(tree);
    return match_steps(tree);
  }
  const ObjectGraph& graph = file_->graph();
  const auto match_child = [&](int object, const ObjectTree::Node& child, const std::string& name) {
    const auto renamed = renamed_.find(child.path);
    if (renamed == renamed_.end()) {
      const int found = graph.child(object, name);
      const auto former = kFormerNames.find(name);
      return found >= 0 || former == kFormerNames.end() ? found
                                                        : graph.child(object, former->second);
    }
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
  match_steps(tree);
}

// What an old optimizer kept of a variable lies at no path, but beside it.
void Restoration::match_slots(const ObjectTree& tree) {
  const ObjectGraph& graph = file_->graph();
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    if (theirs_[at] < 0) continue;
    const auto& stored = graph.objects[static_cast<std::size_t>(theirs_[at])].slots;
    // Those of tf.keras count their steps, and keep what ours keep.
    const bool of_keras = graph.child(theirs_[at], "iter") >= 0;
    for (const ObjectTree::Slot& slot : tree.nodes[at].slots) {
      if (slot.object < 0) continue;
      const int variable = theirs_[static_cast<std::size_t>(slot.variable)];
      for (const ObjectGraph::Slot& other : stored) {
        const auto& names = slot.legacy.slots;
        if (other.variable != variable ||
            std::find(names.begin(), names.end(), other.name) == names.end())
          continue;
        theirs_[static_cast<std::size_t>(slot.object)] = other.object;
        matched_.insert(other.object);
        if (!of_keras && slot.legacy.factor) {
          legacy_[static_cast<std::size_t>(slot.object)] = {
              graph.objects[static_cast<std::size_t>(other.object)].key, scaled(slot.legacy)};
        }
      }
    }
  }
}

void Restoration::match_slots_by_name(const ObjectTree& tree) {
  for (const ObjectTree::Node& node : tree.nodes) {
    for (const ObjectTree::Slot& slot : node.slots) {
      const std::string variable = renamed(tree.variable_name(slot.variable));
      for (const std::string& pattern : slot.legacy.names) {
        std::string key = legacy_name(pattern, variable);
        if (!file_->contains(key)) continue;
        if (slot.object < 0) {
          used_.insert(key);
        } else {
          const bool of_keras = &pattern != &slot.legacy.names.front();
          legacy_[static_cast<std::size_t>(slot.object)] = {
              std::move(key), of_keras || !slot.legacy.factor ? nullptr : scaled(slot.legacy)};
        }
        break;
      }
    }
  }
}

// The key of something that an optimizer keeps: its child, or the only name that ends so.
std::string Restoration::legacy_key(std::size_t optimizer, const std::string& name) const {
  if (file_->has_graph()) {
    if (theirs_[optimizer] < 0) return "";
    const int child = file_->graph().child(theirs_[optimizer], name);
    return child < 0 ? "" : file_->graph().objects[static_cast<std::size_t>(child)].key;
  }
  if (file_->contains(name)) return name;
  std::string found;
  for (const std::string& key : file_->keys()) {
    if (!key.ends_with("/" + name)) continue;
    if (!found.empty()) return "";
    found = key;
  }
  return found;
}

void Restoration::match_steps(const ObjectTree& tree) {
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    if (!tree.nodes[at].steps) continue;
    const auto& [object, steps] = *tree.nodes[at].steps;
    const auto number = static_cast<std::size_t>(object);
    if (theirs_[number] >= 0 || file_->contains(tree.variable_name(object))) continue;
    for (const std::string& counter : steps.counters) {
      if (legacy_.count(number) != 0 || !file_->contains(counter)) continue;
      legacy_[number] = {counter};
    }
    std::string power_key;
    std::int64_t count = -1;
    for (const auto& [name, decay] : steps.powers) {
      const std::string key = legacy_key(at, name);
      if (key.empty() || file_->shape(key).rank() != 0 || file_->dtype(key) != DType::kFloat)
        continue;
      power_key = key;
      used_.insert(key);
      if (count < 0) count = steps_of_power(file_->read(key).item<float>(), decay);
    }
    if (legacy_.count(number) != 0) continue;
    const bool global = !file_->has_graph() && file_->contains(kGlobalStep) &&
                        file_->dtype(kGlobalStep) == DType::kInt64;
    if (global && (count < 0 || power_key.empty())) {
      legacy_[number] = {kGlobalStep};
    } else if (!power_key.empty()) {
      if (count < 0) count = steps_of_no_powers(steps);
      legacy_[number] = {power_key, [count](const Tensor&) { return Tensor(count); }, false};
    }
    if (global) used_.insert(kGlobalStep);
  }
}

std::string Restoration::renamed(const std::string& name) const {
  for (const auto& [ours, theirs] : renamed_)
    if (name.starts_with(ours)) return theirs + name.substr(ours.size());
  return name;
}

std::string Restoration::key_by_name(const TrackedValue& value) const {
  const std::string name = renamed(value.name);
  return !name.empty() && file_->contains(name) ? name : "";
}

std::string Restoration::key_of(std::size_t number, const TrackedValue& value) const {
  if (!file_->has_graph()) return key_by_name(value);
  const int theirs = theirs_[number];
  return theirs < 0
             ? ""
             : file_->graph().objects[static_cast<std::size_t>(theirs)].key_of(value.attribute);
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
      const auto legacy = legacy_.find(i);
      const bool in_legacy = legacy != legacy_.end();
      std::string key = in_legacy ? legacy->second.key : key_of(i, value);
      if (key.empty()) continue;
      changes.push_back({&value, node.path, std::move(key), std::move(id), node.object, {}});
      if (in_legacy) changes.back().convert = legacy->second.convert;
      if (!in_legacy || legacy->second.same_type) check(changes.back());
    }
  }
  // An iterator may refuse its state; variables, which were checked, do not.
  std::stable_partition(changes.begin(), changes.end(), [](const Change& change) {
    return change.value->attribute != ObjectGraph::kVariableValue;
  });
  std::vector<std::string> keys;
  for (const Change& change : changes) keys.push_back(change.key);
  const Check check = check_first_ ? Check::kAllFirst : Check::kEachGroup;
  read_in_groups(*file_, prefix_, keys, check, [&](std::size_t i, Tensor value) {
    try {
      const Change& change = changes[i];
      change.value->restore(change.convert ? change.convert(value) : value);
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
