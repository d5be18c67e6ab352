#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tandem/distribute/internal/master/cluster_devices.h"
#include "tandem/distribute/internal/master/session_graph.h"
#include "tandem/distribute/internal/master/step_signature.h"
#include "tandem/graph/rendezvous_key.h"
#include "tandem/runtime/partition/partition.h"

namespace tandem {
class Runtime;
}

namespace tandem::distribute {

/// What a step runs, cut into the parts that each task runs. The master's own part, if there is
/// one, takes the feeds as arguments and returns the fetches; in a partial run it receives and
/// sends them, each under its own name (`client_key`).
struct StepGraph {
  std::vector<GraphPart> parts;
  std::vector<DType> feed_dtypes;
  /// In a partial run: for each fetch the feeds that it needs.
  std::vector<std::set<std::string>> needed_feeds;
};

/// Prunes the session's graph to what the step needs, places what is new in it and cuts it. Throws
/// with TensorFlow's codes and texts. `number` differs for each graph of a session: names of sends
/// and receives contain it.
StepGraph make_step_graph(const SessionGraph& session, const StepSignature& signature,
                          Runtime& runtime, const ClusterDevices& devices, std::int64_t number);

/// Under what a partial run exchanges a value with its client.
RendezvousKey client_key(const ClusterDevices& devices, const std::string& tensor);

}  // namespace tandem::distribute
