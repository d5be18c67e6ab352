#include "tandem/distribute/etcd_membership.h"

#include <condition_variable>
#include <thread>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/client/etcd_client.h"

namespace tandem::distribute {
namespace {

EtcdMembership::Options checked(EtcdMembership::Options options) {
  // A cluster of this one task has the checks of its name and address.
  ClusterSpec().set_address(options.job, 0, options.address);
  if (options.lease.count() < 1 || options.patience.count() < 1) {
    throw InvalidArgumentError(
        cat("EtcdMembership: lease and patience must be at least 1 s, but are ",
            options.lease.count(), " and ", options.patience.count(), " s."));
  }
  return options;
}

}  // namespace

struct EtcdMembership::Impl {
  explicit Impl(Options given)
      : options(checked(std::move(given))),
        etcd(options.endpoint, options.cluster_name, options.patience),
        lease(etcd.grant(options.lease)),
        renewed(std::chrono::steady_clock::now()) {
    renewer = std::thread([this] { renew(); });
    try {
      while (!etcd.take(cat("tasks/", options.job, "/", task), options.address, lease)) ++task;
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
    etcd.revoke(lease);
  }

  // Three renewals fit into a lease.
  void renew() {
    MutexLock lock(mutex);
    while (!leaving) {
      lock.wait_until(changed, std::chrono::steady_clock::now() + options.lease / 3.0);
      if (leaving) return;
      lock.unlock();
      const auto asked = std::chrono::steady_clock::now();
      const bool is_renewed = etcd.keep_alive(lease, std::chrono::nanoseconds(options.lease) / 3);
      lock.lock();
      if (is_renewed) renewed = asked;
    }
  }

  const Options options;
  const EtcdClient etcd;
  const std::int64_t lease;
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

ClusterSpec EtcdMembership::members() const { return impl_->etcd.members(); }

ClusterResolver EtcdMembership::wait_for(const ClusterResolver::JobSizes& jobs,
                                         std::chrono::milliseconds patience) const {
  return {impl_->etcd.wait_for(jobs, patience), impl_->options.job, impl_->task};
}

bool EtcdMembership::try_lead() const {
  const char* const key = "leader";
  const std::string own = cat(impl_->options.job, "/", impl_->task);
  if (impl_->etcd.take(key, own, impl_->lease)) return true;
  const auto found = impl_->etcd.list(key);
  return !found.empty() && found.front().lease == impl_->lease;
}

bool EtcdMembership::is_member() const {
  const MutexLock lock(impl_->mutex);
  return std::chrono::steady_clock::now() - impl_->renewed < impl_->options.lease;
}

}  // namespace tandem::distribute
