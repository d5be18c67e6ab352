#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "tandem/distribute/internal/rpc/grpc/security.h"
#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

class GrpcNetwork;

/// Serves a Service by gRPC, and gRPC's health service.
class GrpcServer {
 public:
  /// Listens on "host:port" or "unix:PATH" at once; port 0 takes a free one. Throws
  /// UnavailableError if the address cannot be had. `service` must outlive this.
  GrpcServer(Service& service, const std::string& address, const TlsFiles& files = {});
  /// Ends calls in progress.
  ~GrpcServer();

  /// Has the network's calls answered by the threads that wait for this server's: a thread that
  /// calls another task has no other one woken by the answer. The network must outlive this.
  void lend_poller(GrpcNetwork& network);
  /// The port that it listens on; 0 for a socket of a path.
  int port() const;
  /// Takes no more calls, and waits for those in progress; after `patience` they are cancelled.
  /// Does nothing the second time.
  void drain(std::chrono::milliseconds patience);

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::distribute
