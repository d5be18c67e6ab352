#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/distribute/cluster_spec.h"
#include "tandem/runtime/runtime.h"

namespace tandem::distribute {

/// How tasks trust each other. Loopback addresses and UNIX sockets are served in the clear.
/// Anything else needs TLS, where both sides show certificates, or `insecure`.
struct Security {
  // Paths of PEM files, which are read again while they are in use.
  String certificate = {};  ///< what this side shows, with its chain
  String key = {};          ///< the certificate's private key
  String authority = {};    ///< whose certificates are accepted, of servers and of clients
  bool insecure = false;    ///< in the clear on any address, where anyone may run anything
};

/// A task of a cluster: its devices, and TensorFlow's services (master, worker and eager) for them
/// on its wire. Clients, masters and workers may be TensorFlow's or ours.
///
///     Server server({.cluster = ClusterSpec::parse("ps=h1:2222;worker=h2:2222,h3:2222"),
///                    .job = "worker", .task = 0});
///     std::cout << server.description() << std::endl;
///     …
///     server.drain(std::chrono::seconds(10));
///
/// Thread-safe. Steps run on threads of the server's own runtime; no call of a client has a thread
/// that waits for it.
class TANDEM_EXPORT Server {
 public:
  struct Options {
    ClusterSpec cluster = {};  ///< all tasks and their addresses, this one's included
    /// The tasks of now, such as `EtcdMembership::members`: asked for twice a second, on a thread
    /// of the server, so that it learns of tasks that are new or have moved to another address.
    /// Empty: they are always those of `cluster`.
    std::function<ClusterSpec()> members = {};
    String job = "localhost";  ///< which of the cluster's jobs this is a task of
    int task = 0;              ///< its number in the job, from 0
    int port = -1;             ///< in place of the one in the cluster; 0 takes a free one
    Security security = {};    ///< towards clients and other tasks
    /// A folder for the variables of a ParameterServerStrategy and each update of them, so that a
    /// server that is started again goes on with them; empty: they are lost with it.
    String durable = {};
    /// How many tasks of the job hold each variable of a ParameterServerStrategy: with 2, kill -9
    /// of one loses nothing, and training goes on at once. A strategy may ask for more.
    int replicas = 1;
    /// Serves Prometheus' figures at http://localhost:PORT/metrics, on loopback; 0: on a free port,
    /// -1: does not.
    int metrics_port = -1;
    /// How long another task may leave a question unanswered before the steps of this one's
    /// sessions that have a part there end with UnavailableError.
    std::chrono::milliseconds heartbeat_timeout = std::chrono::seconds(10);
    int inter_op_threads = 0;   ///< as in Runtime::Options
    int intra_op_threads = 0;   ///< likewise
    DeviceConfig devices = {};  ///< which devices the task has
  };
  /// Listens at once. Throws InvalidArgumentError if the cluster lacks the task, PermissionDenied-
  /// Error if the address would be served in the clear beyond this machine, UnavailableError if it
  /// cannot be had.
  explicit Server(const Options& options);
  /// As `drain` without patience.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// "/job:worker/replica:0/task:0".
  const std::string& task() const;
  /// "h2:2222": the cluster's address of the task, with the real port.
  const std::string& address() const;
  /// For clients: "grpc://h2:2222".
  std::string target() const;
  /// "listening on h2:2222 as /job:worker/replica:0/task:0".
  std::string description() const;
  /// Where the figures are; -1 without.
  int metrics_port() const;
  /// Its devices are this runtime's.
  Runtime& runtime() const;

  /// Takes no more calls and waits until those in progress are over; after `patience` they are
  /// cancelled. Does nothing the second time.
  void drain(std::chrono::milliseconds patience);

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::distribute
