#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/distribute/cluster_spec.h"

namespace tandem::distribute {

/// What a launcher has said of the cluster, and which of its tasks this process is.
///
///     auto here = ClusterResolver::from_environment();   // TF_CONFIG, Slurm, MPI or Kubernetes
///     Server server({.cluster = here.cluster(), .job = here.job(), .task = here.task()});
///
/// A value. All functions throw InvalidArgumentError naming the variable, file or field.
class TANDEM_EXPORT ClusterResolver {
 public:
  /// The value of a variable, "" where it is not set.
  using Environment = std::function<std::string(const char* name)>;
  /// How many tasks each job has, in the order in which ranks are given out: ps before worker.
  using JobSizes = std::vector<std::pair<std::string, int>>;

  /// `task` -1: this process is none of the tasks, such as a client.
  ClusterResolver(ClusterSpec cluster, String job, int task);

  /// By the first of these that is set: TF_CONFIG, Slurm's, MPI's, TANDEM_CLUSTER_JOBS in a
  /// stateful set.
  static ClusterResolver from_environment();
  static ClusterResolver from_environment(const Environment& environment);

  /// TensorFlow's JSON: {"cluster": {"worker": ["host:port", …]}, "task": {"type": "worker",
  /// "index": 0}}. Without "task" this process is none of the tasks.
  static ClusterResolver from_tf_config(StringView json);
  /// A file of TF_CONFIG's JSON, or of JOB=HOST:PORT[,…] in lines.
  static ClusterResolver from_file(const String& path);
  /// A Slurm step: SLURM_PROCID, SLURM_STEP_NODELIST (or SLURM_JOB_NODELIST) and
  /// SLURM_STEP_TASKS_PER_NODE (or SLURM_TASKS_PER_NODE). Ranks are given out to `jobs` in order;
  /// none means that all are workers. Tasks of one node listen on TANDEM_PORT, or else
  /// `first_port`, and the following ones.
  static ClusterResolver from_slurm(const Environment& environment, const JobSizes& jobs = {},
                                    int first_port = 8888);
  /// `mpirun` of Open MPI or MPICH: rank and size of the world. All ranks are on this machine, or
  /// TANDEM_HOSTS lists the hosts by rank, separated by commas. Ports as with Slurm.
  static ClusterResolver from_mpi(const Environment& environment, const JobSizes& jobs = {},
                                  int first_port = 8888);
  /// Pods of stateful sets, each named after its job: TANDEM_CLUSTER_JOBS ("ps=2;worker=4"),
  /// HOSTNAME ("worker-3"), TANDEM_SERVICE (the headless service, by default the job's name) and
  /// TANDEM_PORT (2222).
  static ClusterResolver from_kubernetes(const Environment& environment);

  /// The members of a cluster that an etcd knows (EtcdMembership), once each job has at least so
  /// many. This process is none of the tasks. Throws UnavailableError if etcd does not answer, and
  /// DeadlineExceededError naming the members that there are after `patience`.
  static ClusterResolver from_etcd(const String& endpoint, const JobSizes& jobs,
                                   const String& cluster_name = "tandem",
                                   std::chrono::milliseconds patience = std::chrono::minutes(10));

  /// "ps=2;worker=4".
  static JobSizes parse_job_sizes(StringView text);
  /// Slurm's short form of host names: "n[1-3,7],login" is n1, n2, n3, n7 and login.
  static std::vector<std::string> expand_hosts(StringView list);

  const ClusterSpec& cluster() const { return cluster_; }
  const std::string& job() const { return job_; }
  int task() const { return task_; }
  bool is_task() const { return task_ >= 0; }
  /// Where a client finds a master: "grpc://host:port" of worker 0, or of the first task there is.
  std::string master() const;

 private:
  ClusterSpec cluster_;
  std::string job_;
  int task_ = -1;
};

}  // namespace tandem::distribute
