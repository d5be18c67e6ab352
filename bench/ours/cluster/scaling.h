// How steps on one parameter server scale with workers, on a network and on loopback.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/common/serve.h"
#include "bench/ours/cluster/mlp_training.h"
#include "bench/ours/cluster/servers.h"
#include "bench/ours/cluster/shaped_network.h"

namespace bench {

/// The rows scaling_*. Each task and this process, the client, is on a host of its own of a
/// ShapedNetwork, where one can be made; else rows that need it are skipped. Servers of a row run
/// until a row asks for others.
class Scaling {
 public:
  /// Moves the calling thread to a host of the network: to be called before there are others.
  Scaling();
  ~Scaling();
  Rows rows();

 private:
  struct Place {
    Kind kind;
    bool shaped;
    int workers;
    bool operator==(const Place&) const = default;
  };
  class Cluster;
  Cluster& cluster(const Place& place);
  const ShapedNetwork& network() const;
  Answer round_trip() const;

  std::string why_not_;  // there is no network
  const std::unique_ptr<const ShapedNetwork> network_;
  const std::vector<Batch> batches_ = mlp_batches();
  std::unique_ptr<Cluster> cluster_;
};

}  // namespace bench
