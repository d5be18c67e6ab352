#pragma once

#include <memory>
#include <string>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/local/local_loop.h"
#include "tandem/distribute/internal/rpc/local/local_options.h"
#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

/// Calls of tasks on this machine by UNIX sockets and shared memory. Its end cancels calls in
/// progress.
class LocalNetwork {
 public:
  explicit LocalNetwork(const LocalOptions& options);
  ~LocalNetwork();

  /// A channel that goes by a local connection whenever a server of the same user has one at the
  /// address, and else by `fallback`; that itself if the address cannot be of this machine.
  std::shared_ptr<Channel> channel(const std::string& address, std::shared_ptr<Channel> fallback);

  /// The threads of its connections, for a server beside it. Throws UnavailableError if the system
  /// has no room for them.
  std::shared_ptr<LocalLoop> loop();

 private:
  class Calls;
  class ChannelTo;
  const std::shared_ptr<Calls> calls_;
};

}  // namespace tandem::distribute
