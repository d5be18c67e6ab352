#include "tandem/distribute/etcd_membership.h"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <thread>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/client/blocking_call.h"
#include "tandem/distribute/internal/rpc/grpc/grpc_network.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/proto/etcd.h"

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

EtcdMembership::Options checked(EtcdMembership::Options options) {
  // A cluster of this one task has the checks of its name and address.
  ClusterSpec().set_address(options.job, 0, options.address);
  if (options.lease.count() < 1 || options.patience.count() < 1) {
    throw InvalidArgumentError(
        cat("EtcdMembership: lease and patience must be at least 1 s, but are ",
            options.lease.count(), " and ", options.patience.count(), " s."));
  }
  if (options.cluster_name.empty() || options.cluster_name.find('/') != std::string::npos) {
    throw InvalidArgumentError(
        cat("EtcdMembership: '", options.cluster_name,
            "' is no name of a cluster: it must not be empty or contain '/'."));
  }
  return options;
}

}  // namespace

struct EtcdMembership::Impl {
  explicit Impl(Options given)
      : options(checked(std::move(given))),
        prefix(cat("/tandem/", options.cluster_name, "/")),
        channel(network.channel(address_of_target(options.endpoint))) {
    proto::EtcdLeaseGrantRequest grant;
    grant.ttl = options.lease.count();
    proto::EtcdLeaseGrantResponse granted;
    ask(kLeaseGrant, grant, granted);
    lease = granted.id;
    renewed = std::chrono::steady_clock::now();
    renewer = std::thread([this] { renew(); });
    try {
      while (!take(cat(prefix, "tasks/", options.job, "/", task), options.address)) ++task;
    } catch (...) {
      leave();
      throw;
    }
  }
  ~Impl() { leave(); }

  void leave() {
    {
      const MutexLock lock(mutex);
      leaving = true;
      changed.notify_all();
    }
    if (renewer.joinable()) renewer.join();
    proto::EtcdLeaseRevokeRequest revoke;
    revoke.id = lease;
    try {
      blocking_call(*channel, kLeaseRevoke, write_message(revoke), {.timeout = options.patience});
    } catch (const Error&) {  // it runs out by itself
    }
  }

  template <class Request, class Response>
  void ask(const char* method, const Request& request, Response& response) const {
    try {
      Bytes reply = blocking_call(*channel, method, write_message(request),
                                  {.timeout = options.patience, .wait_for_ready = true});
      read_message(reply, response);
    } catch (const Error& error) {
      if (error.code() != Code::kUnavailable && error.code() != Code::kDeadlineExceeded)
        throw_error(error.code(), cat("etcd at ", options.endpoint, ": ", error.what()));
      throw UnavailableError(cat("etcd at ", options.endpoint, " does not answer: ", error.what(),
                                 " Is it running, and is that its address for clients?"));
    }
  }

  // Makes a key unless there is one; it goes with the lease.
  bool take(const std::string& key, const std::string& value) const {
    proto::EtcdTxnRequest request;
    proto::EtcdCompare& compare = request.compare.emplace_back();
    compare.result = kEqual;
    compare.target = kCreateRevision;
    compare.key = key;
    proto::EtcdPutRequest& put = request.success.emplace_back().request_put.make();
    put.key = key;
    put.value = value;
    put.lease = lease;
    proto::EtcdTxnResponse response;
    ask(kTxn, request, response);
    return response.succeeded;
  }

  std::vector<proto::EtcdKeyValue> list(const std::string& below) const {
    proto::EtcdRangeRequest request;
    request.key = below;
    request.range_end = below;
    ++request.range_end.back();
    proto::EtcdRangeResponse response;
    ask(kRange, request, response);
    return response.kvs;
  }

  // Three renewals fit into a lease.
  void renew() {
    MutexLock lock(mutex);
    while (!leaving) {
      lock.wait_until(changed, std::chrono::steady_clock::now() + options.lease / 3.0);
      if (leaving) return;
      lock.unlock();
      proto::EtcdLeaseKeepAliveRequest request;
      request.id = lease;
      proto::EtcdLeaseKeepAliveResponse response;
      const auto asked = std::chrono::steady_clock::now();
      try {
        Bytes reply = blocking_call(*channel, kLeaseKeepAlive, write_message(request),
                                    {.timeout = std::chrono::nanoseconds(options.lease) / 3});
        read_message(reply, response);
      } catch (const Error&) {  // the next time, perhaps
      }
      lock.lock();
      if (response.ttl > 0) renewed = asked;
    }
  }

  const Options options;
  const std::string prefix;
  GrpcNetwork network;
  const std::shared_ptr<Channel> channel;
  std::int64_t lease = 0;
  int task = 0;
  mutable Mutex mutex;
  std::condition_variable changed;
  bool leaving TANDEM_GUARDED_BY(mutex) = false;
  std::chrono::steady_clock::time_point renewed TANDEM_GUARDED_BY(mutex);
  std::thread renewer;
};

EtcdMembership::EtcdMembership(Options options)
    : impl_(std::make_shared<Impl>(std::move(options))) {}
EtcdMembership::~EtcdMembership() = default;

int EtcdMembership::task() const { return impl_->task; }

ClusterSpec EtcdMembership::members() const {
  ClusterSpec cluster;
  const std::string below = impl_->prefix + "tasks/";
  for (const proto::EtcdKeyValue& member : impl_->list(below)) {
    const std::string name = member.key.substr(below.size());
    const std::size_t slash = name.rfind('/');
    int task = -1;
    if (slash != std::string::npos)
      std::from_chars(name.data() + slash + 1, name.data() + name.size(), task);
    if (task >= 0) cluster.set_address(name.substr(0, slash), task, member.value);
  }
  return cluster;
}

ClusterResolver EtcdMembership::wait_for(const ClusterResolver::JobSizes& jobs,
                                         std::chrono::milliseconds patience) const {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    ClusterSpec cluster = members();
    const bool complete = std::all_of(jobs.begin(), jobs.end(), [&](const auto& job) {
      return cluster.num_tasks(job.first) >= job.second;
    });
    if (complete) return {std::move(cluster), impl_->options.job, impl_->task};
    if (std::chrono::steady_clock::now() >= until) {
      throw DeadlineExceededError(cat("The cluster '", impl_->options.cluster_name,
                                      "' is not complete; its members are ", cluster.to_string(),
                                      "."));
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

bool EtcdMembership::try_lead() const {
  const std::string key = impl_->prefix + "leader";
  const std::string own = cat(impl_->options.job, "/", impl_->task);
  if (impl_->take(key, own)) return true;
  const auto found = impl_->list(key);
  return !found.empty() && found.front().lease == impl_->lease;
}

bool EtcdMembership::is_member() const {
  const MutexLock lock(impl_->mutex);
  return std::chrono::steady_clock::now() - impl_->renewed < impl_->options.lease;
}

}  // namespace tandem::distribute
