#include "tandem/train/internal/legacy_names.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/ops/operators.h"

namespace tandem::train::internal {
namespace {

constexpr const char* kGlobalStep = "global_step";

class Collector {
 public:
  explicit Collector(const ObjectTree& tree) : tree_(tree) {}

  std::vector<CheckpointContents::Item> collect() {
    for (const ObjectTree::Node& node : tree_.nodes) {
      for (const ObjectTree::Slot& slot : node.slots) add_slot(slot);
    }
    for (std::size_t i = 0; i < tree_.nodes.size(); ++i) add_values(i);
    for (const ObjectTree::Node& node : tree_.nodes)
      if (node.steps) add_steps(node.steps->legacy, node.path);
    return std::move(items_);
  }

 private:
  void add(const std::string& name, Tensor value, const std::string& path) {
    const auto [other, added] = paths_.emplace(name, path);
    if (!added) {
      throw InvalidArgumentError(cat("'", other->second, "' and '", path, "' are both named '",
                                     name,
                                     "': a checkpoint with legacy_names needs a name of its "
                                     "own for each variable."));
    }
    items_.push_back({name, std::move(value)});
  }

  void add_slot(const ObjectTree::Slot& slot) {
    const LegacySlot& legacy = slot.legacy;
    if (legacy.names.empty()) return;
    const std::string name = legacy_name(legacy.names.front(), tree_.variable_name(slot.variable));
    if (slot.object < 0) {
      const Array zeros = Array::zeros(legacy.variable.dtype(), legacy.variable.shape().to_shape());
      return add(name, Tensor(zeros), name);
    }
    const double factor = legacy.factor ? legacy.factor() : 1;
    Tensor value = legacy.value.read_value();
    if (factor != 1 && factor != 0) value = value * (1 / factor);
    add(name, std::move(value), tree_.nodes[static_cast<std::size_t>(slot.object)].path);
    slots_.insert(slot.object);
  }

  void add_values(std::size_t number) {
    const ObjectTree::Node& node = tree_.nodes[number];
    if (slots_.count(static_cast<int>(number)) != 0) return;
    for (const TrackedValue& value : node.values) {
      if (value.attribute != ObjectGraph::kVariableValue || value.name.empty()) {
        throw InvalidArgumentError(cat("'", node.path,
                                       "' has no name, and can't be saved with "
                                       "legacy_names: give a variable a name, and save the state "
                                       "of iterators and counters without that option."));
      }
      add(value.name, value.save(), node.path);
    }
  }

  // Optimizers that take steps together have the powers together.
  void add_steps(const LegacySteps& steps, const std::string& path) {
    const auto count = steps.steps.read_value().item<std::int64_t>();
    for (const auto& [name, decay] : steps.powers) {
      const double power = std::pow(decay, static_cast<double>(count + 1));
      add(name, Tensor(static_cast<float>(power)), path);
    }
    if (paths_.count(kGlobalStep) == 0) add(kGlobalStep, Tensor(count), path);
  }

  const ObjectTree& tree_;
  std::vector<CheckpointContents::Item> items_;
  std::map<std::string, std::string> paths_;  // of the objects by name
  std::set<int> slots_;                       // nodes that are saved as slots
};

}  // namespace

std::string legacy_name(const std::string& pattern, const std::string& variable) {
  const std::size_t at = pattern.find("{}");
  return at == std::string::npos ? pattern
                                 : cat(pattern.substr(0, at), variable, pattern.substr(at + 2));
}

std::int64_t steps_of_power(double power, double decay) {
  // Far from where floats lose their precision.
  constexpr double kSmallest = 1e-30;
  if (!(power > kSmallest) || power >= 1 || !(decay > 0) || decay >= 1) return -1;
  return std::max<std::int64_t>(std::llround(std::log(power) / std::log(decay)) - 1, 0);
}

std::int64_t steps_of_no_powers(const LegacySteps& steps) {
  double most = 0;
  for (const auto& [name, decay] : steps.powers) {
    if (decay > 0 && decay < 1)
      most = std::max(most, std::log(std::numeric_limits<float>::min()) / std::log(decay));
  }
  return static_cast<std::int64_t>(std::ceil(most));
}

std::vector<CheckpointContents::Item> legacy_items(const ObjectTree& tree) {
  return Collector(tree).collect();
}

}  // namespace tandem::train::internal
