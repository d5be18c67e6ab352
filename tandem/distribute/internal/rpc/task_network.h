#pragma once

#include <map>
#include <memory>
#include <string>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/grpc/grpc_network.h"
#include "tandem/distribute/internal/rpc/local/local_network.h"

namespace tandem::distribute {

/// Calls of tasks: by local connections where a server of this machine has them, else by gRPC. With
/// certificates by gRPC alone. Its end cancels calls in progress; later ones on its channels end as
/// cancelled.
class TaskNetwork final : public Network {
 public:
  explicit TaskNetwork(const TlsFiles& files = {},
                       const LocalOptions& local = LocalOptions::from_environment());
  ~TaskNetwork() override;
  std::shared_ptr<Channel> channel(const std::string& address) override;

  GrpcNetwork& grpc() { return grpc_; }
  /// Null if there are no local connections.
  LocalNetwork* local() { return local_.get(); }

 private:
  GrpcNetwork grpc_;
  std::unique_ptr<LocalNetwork> local_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Channel>> channels_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
