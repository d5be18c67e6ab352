#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "tandem/distribute/internal/rpc/local/local_loop.h"
#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

class ServedCalls;

/// Serves a Service to processes of the same user on this machine, by a UNIX socket and shared
/// memory. What local connections don't carry, streams, goes over gRPC.
class LocalServer {
 public:
  /// Listens at once at a name of `local_name_of_server`. Throws UnavailableError if it is taken,
  /// or there are no such sockets. `service` must outlive this.
  LocalServer(Service& service, const std::string& name, std::shared_ptr<LocalLoop> loop);
  /// Ends calls in progress.
  ~LocalServer();

  /// Takes no more connections and calls; clients go elsewhere with theirs.
  void stop_accepting();
  /// Takes no more connections and calls, and waits for calls in progress; after `patience` they
  /// are cancelled. Does nothing the second time.
  void drain(std::chrono::milliseconds patience);

 private:
  class Listener;
  const std::shared_ptr<ServedCalls> served_;
  std::shared_ptr<Listener> listener_;
};

}  // namespace tandem::distribute
