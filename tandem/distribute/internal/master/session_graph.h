#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "tandem/distribute/internal/master/cluster_devices.h"
#include "tandem/graph/graph.h"
#include "tandem/graph/kernel.h"

namespace tandem {
class Runtime;
}

namespace tandem::distribute {

/// The graph of a session: what its client has sent so far, as one graph whose nodes ask for the
/// devices that they have been placed on. The whole graph is placed, so that an initializer and a
/// step, which run apart, look for a variable in one place. Immutable.
class SessionGraph {
 public:
  struct Options {
    bool soft_placement = false;
    bool log_placement = false;
  };
  /// Throws InvalidArgumentError, NotFoundError with TensorFlow's texts.
  SessionGraph(std::string_view graph_def, Runtime& runtime, const ClusterDevices& devices,
               const Options& options);
  /// The graph with more nodes; `graph_def` holds these alone, and the whole library.
  std::shared_ptr<const SessionGraph> extend(std::string_view graph_def, Runtime& runtime,
                                             const ClusterDevices& devices,
                                             const Options& options) const;

  const Graph& graph() const { return *graph_; }
  /// How often it was extended.
  std::int64_t version() const { return version_; }

 private:
  SessionGraph() = default;
  void add(std::string_view graph_def);
  void build(Runtime& runtime, const ClusterDevices& devices, const Options& options);

  std::string nodes_;  // serialized, as fields of a GraphDef
  std::string library_;
  std::string versions_;
  std::set<std::string> names_;
  std::shared_ptr<const Graph> graph_;
  std::int64_t version_ = 0;
};

}  // namespace tandem::distribute
