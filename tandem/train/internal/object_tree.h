#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/runtime/saving.h"
#include "tandem/train/trackable.h"

namespace tandem::train::internal {

/// The objects that are reached from a root at one time, numbered breadth first as TensorFlow
/// numbers them, so that keys are the shortest paths.
struct ObjectTree {
  struct Slot {
    int variable;  ///< the node
    int object;    ///< the node of what is kept of it; -1: none
    LegacySlot legacy;
  };
  struct Steps {
    int object;  ///< the node
    LegacySteps legacy;
  };
  struct Node {
    std::shared_ptr<Trackable> object;  ///< null for one that a path leads through
    std::string path;                   ///< "model/_operations/1", escaped as in keys
    std::vector<std::pair<std::string, int>> children;
    std::vector<TrackedValue> values;
    std::vector<Slot> slots;
    std::optional<Steps> steps;
  };
  std::vector<Node> nodes;  ///< the root first

  explicit ObjectTree(const std::shared_ptr<Trackable>& root);

  /// As a checkpoint describes it.
  ObjectGraph graph() const;
  /// "model/w/.ATTRIBUTES/VARIABLE_VALUE"
  static std::string key(const Node& node, const TrackedValue& value);
  /// The name of a node's variable; empty if it is none.
  std::string variable_name(int node) const;
};

}  // namespace tandem::train::internal
