#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/cli/model_signature.h"
#include "tandem/cli/whole_graph.h"
#include "tandem/placement/cost_profile.h"
#include "tandem/placement/device_set.h"
#include "tandem/placement/placement.h"

namespace tandem::cli {

/// The arguments of explain and simulate: the step and where it would run.
struct StepArguments {
  std::string graph;
  SavedModelArguments saved_model;  ///< instead of a graph
  std::string devices;              ///< a file in JSON
  std::string policy;               ///< "greedy", "cost" or nothing
  std::string costs;
  std::vector<std::string> feeds;  ///< "x=32,784"
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  std::vector<std::string> inits;  ///< in the order in which they run; of explain
  bool hard_placement = false;

  /// The graph, or a signature of the SavedModel, as one function. Nodes that cannot run are an
  /// error if the step needs them. Throws UsageError for a feed that is none, or if there is no
  /// graph.
  WholeFunction step() const;
  /// Throws an error that names the file.
  DeviceSet read_devices() const;
  /// Null if no file was given.
  std::shared_ptr<const CostProfile> read_costs() const;
  /// `otherwise`: the policy if none is named.
  PlacementOptions placement(PlacementPolicy otherwise) const;
};

}  // namespace tandem::cli
