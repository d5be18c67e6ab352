// Processes that serve the cluster of bench_cluster: `td server`s, or TensorFlow's own servers.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include <tandem/distribute/cluster_spec.h>

namespace bench {

enum class Kind { kTandem, kTensorFlow };

/// One task of job ps and two of job worker on loopback, which end with this.
class Servers {
 public:
  /// Returns once all listen. Throws std::runtime_error if one does not.
  explicit Servers(Kind kind);
  ~Servers();
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  const tandem::distribute::ClusterSpec& cluster() const { return cluster_; }
  /// For a session whose master is a worker.
  std::string target(int worker) const { return "grpc://" + cluster_.address("worker", worker); }

 private:
  void start(const std::vector<std::string>& words);

  tandem::distribute::ClusterSpec cluster_;
  std::vector<pid_t> processes_;
};

}  // namespace bench
