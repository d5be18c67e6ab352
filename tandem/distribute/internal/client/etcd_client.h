#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tandem/distribute/cluster_resolver.h"
#include "tandem/distribute/internal/rpc/grpc/grpc_network.h"
#include "tandem/distribute/proto/etcd.h"

namespace tandem::distribute {

/// What etcd (API v3) knows of one cluster, under keys "/tandem/CLUSTER/…": members are
/// "tasks/JOB/NUMBER" with their address, and "leader" is who leads. Thread-safe; functions throw
/// UnavailableError if etcd does not answer for `patience`.
class EtcdClient {
 public:
  /// Throws InvalidArgumentError if `cluster_name` is no name.
  EtcdClient(std::string endpoint, std::string cluster_name, std::chrono::seconds patience);

  /// Id of a new lease.
  std::int64_t grant(std::chrono::seconds lease) const;
  /// False if etcd has not answered in `timeout`, or the lease is gone.
  bool keep_alive(std::int64_t lease, std::chrono::nanoseconds timeout) const;
  /// Its keys go at once, or once it has run out where etcd does not answer.
  void revoke(std::int64_t lease) const;

  /// Makes a key unless there is one; it goes with the lease.
  bool take(const std::string& key, const std::string& value, std::int64_t lease) const;
  /// Keys that begin so, which are full ones.
  std::vector<proto::EtcdKeyValue> list(const std::string& below) const;

  /// The members of now.
  ClusterSpec members() const;
  /// Waits until each job has at least so many members. Throws DeadlineExceededError naming the
  /// members that there are.
  ClusterSpec wait_for(const ClusterResolver::JobSizes& jobs,
                       std::chrono::milliseconds patience) const;

 private:
  template <class Request, class Response>
  void ask(const char* method, const Request& request, Response& response) const;

  const std::string endpoint_, cluster_name_, prefix_;
  const std::chrono::seconds patience_;
  GrpcNetwork network_;
  const std::shared_ptr<Channel> channel_;
};

}  // namespace tandem::distribute
