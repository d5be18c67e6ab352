#pragma once

#include <map>
#include <memory>
#include <string>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/grpc/grpc_poller.h"
#include "tandem/distribute/internal/rpc/grpc/security.h"
#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

/// Calls by gRPC. Its end cancels calls in progress; later ones on its channels end as cancelled.
class GrpcNetwork final : public Network {
 public:
  explicit GrpcNetwork(const TlsFiles& files = {});
  ~GrpcNetwork() override;
  std::shared_ptr<Channel> channel(const std::string& address) override;

  /// Has calls answered by a poller of someone else's, until `use_own_poller`, which returns when
  /// no more calls begin there. See GrpcServer::lend_poller.
  void use_poller(GrpcPoller& poller);
  void use_own_poller();

 private:
  class Calls;
  class ChannelTo;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  const std::shared_ptr<Calls> calls_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Channel>> channels_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
