#include "tandem/distribute/internal/rpc/task_network.h"

namespace tandem::distribute {

TaskNetwork::TaskNetwork(const TlsFiles& files, const LocalOptions& local) : grpc_(files) {
  if (local.enabled && files.empty()) local_ = std::make_unique<LocalNetwork>(local);
}

TaskNetwork::~TaskNetwork() = default;

std::shared_ptr<Channel> TaskNetwork::channel(const std::string& address) {
  const MutexLock lock(mutex_);
  std::shared_ptr<Channel>& known = channels_[address];
  if (known) return known;
  known = grpc_.channel(address);
  if (local_) known = local_->channel(address, known);
  return known;
}

}  // namespace tandem::distribute
