#pragma once

#include <map>
#include <memory>
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
    int variable;
    std::string name;
    int object;
  };
  struct Node {
    std::shared_ptr<Trackable> object;  ///< null for one that a path leads through
    std::string path;                   ///< "model/_operations/1", escaped as in keys
    std::vector<std::pair<std::string, int>> children;
    std::vector<TrackedValue> values;
    std::vector<Slot> slots;
  };
  std::vector<Node> nodes;  ///< the root first

  explicit ObjectTree(const std::shared_ptr<Trackable>& root);

  /// As a checkpoint describes it.
  ObjectGraph graph() const;
  /// "model/w/.ATTRIBUTES/VARIABLE_VALUE"
  static std::string key(const Node& node, const TrackedValue& value);
};

}  // namespace tandem::train::internal
