#pragma once

#include <chrono>
#include <memory>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/distribute/cluster_resolver.h"

namespace tandem::distribute {

/// A process among the members of a cluster that etcd (API v3) knows: it joins with its address,
/// gets the lowest task number of its job that is free, and is a member as long as it renews its
/// lease. One that dies is gone when its lease has run out, and its number is free again.
///
///     EtcdMembership member({.endpoint = "localhost:2379", .cluster_name = "digits",
///                            .job = "worker", .address = "h3:2222"});
///     const ClusterResolver here = member.wait_for({{"ps", 1}, {"worker", 2}}, 60s);
///     Server server({.cluster = here.cluster(), .job = here.job(), .task = here.task()});
///
/// Thread-safe. Functions that ask etcd throw UnavailableError if it does not answer.
class TANDEM_EXPORT EtcdMembership {
 public:
  struct Options {
    String endpoint = "localhost:2379";
    String cluster_name = "tandem";  ///< clusters of other names do not see each other
    String job = "worker";
    String address = {};                ///< "host:port", by which others reach this process
    std::chrono::seconds lease{10};     ///< without a renewal for so long it is no member
    std::chrono::seconds patience{10};  ///< how long etcd may take to answer
  };
  /// Joins. Throws InvalidArgumentError for a wrong job, address or lease.
  explicit EtcdMembership(Options options);
  /// Leaves at once.
  ~EtcdMembership();
  EtcdMembership(const EtcdMembership&) = delete;
  EtcdMembership& operator=(const EtcdMembership&) = delete;

  int task() const;
  /// The members of now.
  ClusterSpec members() const;
  /// Waits until each job has at least so many members; then the cluster, with this process as its
  /// task. Throws DeadlineExceededError naming the members that there are.
  ClusterResolver wait_for(const ClusterResolver::JobSizes& jobs,
                           std::chrono::milliseconds patience) const;
  /// Whether this member leads the cluster; it takes the lead if no member has it. The lead is lost
  /// with the membership alone.
  bool try_lead() const;
  /// False once a lease has run out, because etcd could not be reached or the process was paused:
  /// others may have this task's number then.
  bool is_member() const;

 private:
  struct Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace tandem::distribute
