// Processes that serve a cluster of bench_cluster: `td server`s, or TensorFlow's own servers.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include <tandem/distribute/cluster_spec.h>

#include "bench/ours/cluster/shaped_network.h"

namespace bench {

enum class Kind { kTandem, kTensorFlow };

/// Tasks of the jobs ps and worker, which end with this.
class Servers {
 public:
  struct Options {
    int ps = 1;
    int workers = 2;
    /// For each `td server` of job ps.
    std::vector<std::string> ps_options = {};
    /// Each task on a host of its own, from host 1 on, instead of on loopback.
    const ShapedNetwork* network = nullptr;
  };
  /// Returns once all listen. Throws std::runtime_error if one does not.
  explicit Servers(Kind kind) : Servers(kind, Options{}) {}
  Servers(Kind kind, const Options& options);
  ~Servers();
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  const tandem::distribute::ClusterSpec& cluster() const { return cluster_; }
  /// For a session whose master is a worker.
  std::string target(int worker) const { return "grpc://" + cluster_.address("worker", worker); }

  /// kill -9 of a task of job ps.
  void kill_ps(int task);
  /// Starts it again at its address; returns at once.
  void restart_ps(int task);

 private:
  struct Process {
    std::pair<std::string, int> task;
    std::vector<std::string> words;
    int host = 0;
    pid_t pid = -1;
    int out = -1;
  };
  void add(const std::string& job, int task, const std::vector<std::string>& options);
  void start(Process& process) const;
  static void wait_until_it_listens(const Process& process);
  Process& ps(int task);

  const Kind kind_;
  const ShapedNetwork* const network_;
  tandem::distribute::ClusterSpec cluster_;
  std::vector<Process> processes_;
};

}  // namespace bench
