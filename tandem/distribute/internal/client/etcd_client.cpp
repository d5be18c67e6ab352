#include "tandem/distribute/internal/client/etcd_client.h"

#include <algorithm>
#include <charconv>
#include <thread>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/client/blocking_call.h"
#include "tandem/distribute/internal/wire/messages.h"

namespace tandem::distribute {
namespace {

constexpr const char* kRange = "/etcdserverpb.KV/Range";
constexpr const char* kTxn = "/etcdserverpb.KV/Txn";
constexpr const char* kLeaseGrant = "/etcdserverpb.Lease/LeaseGrant";
constexpr const char* kLeaseRevoke = "/etcdserverpb.Lease/LeaseRevoke";
constexpr const char* kLeaseKeepAlive = "/etcdserverpb.Lease/LeaseKeepAlive";  // a stream of one
constexpr auto kBetweenLooks = std::chrono::milliseconds(100);

constexpr int kEqual = 0;           // Compare.result
constexpr int kCreateRevision = 1;  // Compare.target

std::string prefix_of(const std::string& cluster_name) {
  if (cluster_name.empty() || cluster_name.find('/') != std::string::npos) {
    throw InvalidArgumentError(cat("etcd: '", cluster_name,
                                   "' is no name of a cluster: it must not be empty or contain "
                                   "'/'."));
  }
  return cat("/tandem/", cluster_name, "/");
}

}  // namespace

EtcdClient::EtcdClient(std::string endpoint, std::string cluster_name,
                       std::chrono::seconds patience)
    : endpoint_(std::move(endpoint)),
      cluster_name_(std::move(cluster_name)),
      prefix_(prefix_of(cluster_name_)),
      patience_(patience),
      channel_(network_.channel(address_of_target(endpoint_))) {}

template <class Request, class Response>
void EtcdClient::ask(const char* method, const Request& request, Response& response) const {
  try {
    Bytes reply = blocking_call(*channel_, method, write_message(request),
                                {.timeout = patience_, .wait_for_ready = true});
    read_message(reply, response);
  } catch (const Error& error) {
    if (error.code() != Code::kUnavailable && error.code() != Code::kDeadlineExceeded)
      throw_error(error.code(), cat("etcd at ", endpoint_, ": ", error.what()));
    throw UnavailableError(cat("etcd at ", endpoint_, " does not answer: ", error.what(),
                               " Is it running, and is that its address for clients?"));
  }
}

std::int64_t EtcdClient::grant(std::chrono::seconds lease) const {
  proto::EtcdLeaseGrantRequest request;
  request.ttl = lease.count();
  proto::EtcdLeaseGrantResponse response;
  ask(kLeaseGrant, request, response);
  return response.id;
}

bool EtcdClient::keep_alive(std::int64_t lease, std::chrono::nanoseconds timeout) const {
  proto::EtcdLeaseKeepAliveRequest request;
  request.id = lease;
  proto::EtcdLeaseKeepAliveResponse response;
  try {
    Bytes reply =
        blocking_call(*channel_, kLeaseKeepAlive, write_message(request), {.timeout = timeout});
    read_message(reply, response);
  } catch (const Error&) {
    return false;
  }
  return response.ttl > 0;
}

void EtcdClient::revoke(std::int64_t lease) const {
  proto::EtcdLeaseRevokeRequest request;
  request.id = lease;
  try {
    blocking_call(*channel_, kLeaseRevoke, write_message(request), {.timeout = patience_});
  } catch (const Error&) {  // it runs out by itself
  }
}

bool EtcdClient::take(const std::string& key, const std::string& value, std::int64_t lease) const {
  proto::EtcdTxnRequest request;
  proto::EtcdCompare& compare = request.compare.emplace_back();
  compare.result = kEqual;
  compare.target = kCreateRevision;
  compare.key = prefix_ + key;
  proto::EtcdPutRequest& put = request.success.emplace_back().request_put.make();
  put.key = compare.key;
  put.value = value;
  put.lease = lease;
  proto::EtcdTxnResponse response;
  ask(kTxn, request, response);
  return response.succeeded;
}

std::vector<proto::EtcdKeyValue> EtcdClient::list(const std::string& below) const {
  proto::EtcdRangeRequest request;
  request.key = prefix_ + below;
  request.range_end = request.key;
  ++request.range_end.back();
  proto::EtcdRangeResponse response;
  ask(kRange, request, response);
  return response.kvs;
}

ClusterSpec EtcdClient::members() const {
  ClusterSpec cluster;
  const std::string below = "tasks/";
  for (const proto::EtcdKeyValue& member : list(below)) {
    const std::string name = member.key.substr(prefix_.size() + below.size());
    const std::size_t slash = name.rfind('/');
    int task = -1;
    if (slash != std::string::npos)
      std::from_chars(name.data() + slash + 1, name.data() + name.size(), task);
    if (task >= 0) cluster.set_address(name.substr(0, slash), task, member.value);
  }
  return cluster;
}

ClusterSpec EtcdClient::wait_for(const ClusterResolver::JobSizes& jobs,
                                 std::chrono::milliseconds patience) const {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    ClusterSpec cluster = members();
    const bool complete = std::all_of(jobs.begin(), jobs.end(), [&](const auto& job) {
      return cluster.num_tasks(job.first) >= job.second;
    });
    if (complete) return cluster;
    if (std::chrono::steady_clock::now() >= until) {
      throw DeadlineExceededError(cat("The cluster '", cluster_name_,
                                      "' is not complete; its members are ", cluster.to_string(),
                                      "."));
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace tandem::distribute
