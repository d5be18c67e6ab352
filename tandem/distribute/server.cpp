#include "tandem/distribute/server.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/distribute/internal/eager/eager_service.h"
#include "tandem/distribute/internal/master/master.h"
#include "tandem/distribute/internal/master/master_service.h"
#include "tandem/distribute/internal/parameters/closure_service.h"
#include "tandem/distribute/internal/parameters/parameter_server.h"
#include "tandem/distribute/internal/rpc/grpc/grpc_server.h"
#include "tandem/distribute/internal/rpc/local/local_server.h"
#include "tandem/distribute/internal/rpc/local/local_socket.h"
#include "tandem/distribute/internal/rpc/task_network.h"
#include "tandem/distribute/internal/server/metrics_server.h"
#include "tandem/distribute/internal/server/profiler_service.h"
#include "tandem/distribute/internal/server/status_service.h"
#include "tandem/distribute/internal/task/member_watch.h"
#include "tandem/distribute/internal/worker/worker_service.h"

namespace tandem::distribute {
namespace {

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

// Where a task listens that others know by `address`.
struct Listening {
  std::string host;  // as others know it
  std::string bind;  // "127.0.0.1:2222"
  bool local = false;
};

Listening listening_at(const std::string& address, int port) {
  if (address.starts_with("unix:")) return {address, address, true};
  const std::size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  const std::string number = port >= 0 ? std::to_string(port) : address.substr(colon + 1);
  if (!is_loopback(host)) return {host, "0.0.0.0:" + number, false};
  return {host, cat(host == "localhost" ? "127.0.0.1" : host, ":", number), true};
}

TlsFiles tls_files(const Security& security) {
  return {security.certificate, security.key, security.authority};
}

std::string checked_bind(const Listening& listening, const Security& security) {
  if (!listening.local && !security.insecure && tls_files(security).empty()) {
    throw PermissionDeniedError(
        cat("The server would listen in the clear on ", listening.bind,
            ", and anyone who reaches it could run anything. Give it certificates (--tls-cert, "
            "--tls-key, --tls-ca), or say --insecure if the network is trusted."));
  }
  return listening.bind;
}

Runtime::Options runtime_options(const Server::Options& options) {
  return {.inter_op_threads = options.inter_op_threads,
          .intra_op_threads = options.intra_op_threads,
          .devices = options.devices,
          .task = task_name(options.job, options.task)};
}

// Tasks may share the folder that they are given.
std::string durable_folder(const Server::Options& options) {
  if (options.durable.empty()) return {};
  return cat(options.durable, "/", options.job, "-", options.task);
}

void check(const Server::Options& options) {
  const auto at_least = [](const char* name, auto value, auto least) {
    if (value >= least) return;
    throw InvalidArgumentError(
        cat("A server's ", name, " must be at least ", least, ", but is ", value, "."));
  };
  at_least("task", options.task, 0);
  at_least("port", options.port, -1);
  at_least("metrics_port", options.metrics_port, -1);
  at_least("replicas", options.replicas, 1);
  at_least("inter_op_threads", options.inter_op_threads, 0);
  at_least("intra_op_threads", options.intra_op_threads, 0);
  at_least("heartbeat_timeout (ms)", options.heartbeat_timeout.count(), std::int64_t{1});
  for (const int port : {options.port, options.metrics_port}) {
    if (port > 65535) throw InvalidArgumentError(cat("There is no port ", port, "."));
  }
  const int files = !options.security.certificate.empty() + !options.security.key.empty() +
                    !options.security.authority.empty();
  if (files != 0 && files != 3) {
    throw InvalidArgumentError(
        "A server with certificates needs all three files: certificate, key and authority.");
  }
}

ClusterSpec completed(const Server::Options& options) {
  check(options);
  ClusterSpec cluster = options.cluster;
  if (cluster.empty()) cluster.set_address(options.job, options.task, "localhost:0");
  if (cluster.num_tasks(options.job) == 0 ||
      !cluster.jobs().find(options.job)->second.contains(options.task)) {
    throw InvalidArgumentError(cat("The cluster has no task ", options.task, " of job '",
                                   options.job, "'; it is ", cluster.to_string(), "."));
  }
  return cluster;
}

}  // namespace

struct Server::Impl {
  explicit Impl(const Options& options)
      : cluster(completed(options)),
        task(task_name(options.job, options.task)),
        listening(listening_at(cluster.address(options.job, options.task), options.port)),
        bind(checked_bind(listening, options.security)),
        runtime(runtime_options(options)),
        network(tls_files(options.security)),
        peers(cluster, network),
        worker(runtime, task, peers),
        master(worker, peers),
        worker_service(worker),
        master_service(master),
        eager_service(worker, network),
        parameters({task, durable_folder(options), options.replicas,
                    [this](const std::string& name) { return peers.find(name); }}),
        closures(master, peers) {
    worker.set_peer_timeout(options.heartbeat_timeout);
    worker_service.add_to(methods);
    master_service.add_to(methods);
    eager_service.add_to(methods);
    parameters.add_to(methods);
    closures.add_to(methods);
    status_service.emplace(master, parameters, peers);
    status_service->add_to(methods);
    profiler_service.add_to(methods);
    status_service->show_local(local_figures());
    server.emplace(methods, bind, tls_files(options.security));
    server->lend_poller(network.grpc());
    listen_locally();
    if (options.metrics_port >= 0)
      metrics.emplace(options.metrics_port, [this] { return status_service->metrics(); });
    address = listening.host;
    if (!address.starts_with("unix:")) address += cat(":", server->port());
    members.emplace(options.members,
                    [this](const ClusterSpec& now) { static_cast<void>(peers.update(now)); });
  }

  std::function<StatusService::LocalFigures()> local_figures() {
    if (!network.local()) return {};
    return [loop = network.local()->loop()] {
      return StatusService::LocalFigures{loop->num_connections().load(), loop->num_calls().load(),
                                         loop->memory().used()};
    };
  }

  // Tasks of this machine find it here; without it they use gRPC, as others do.
  void listen_locally() {
    if (!network.local()) return;
    const std::string name = local_name_of_server(bind, server->port());
    if (name.empty()) return;
    try {
      local_server.emplace(methods, name, network.local()->loop());
    } catch (const UnavailableError& error) {
      log(LogLevel::kWarning, cat(error.what(), " Tasks of this machine use gRPC."));
    }
  }

  void drain(std::chrono::milliseconds patience) {
    members->stop();
    parameters.close();
    profiler_service.close();
    const auto until = std::chrono::steady_clock::now() + patience;
    if (local_server) local_server->stop_accepting();
    server->drain(patience);
    if (local_server) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          until - std::chrono::steady_clock::now());
      local_server->drain(std::max(left, std::chrono::milliseconds(0)));
    }
    eager_service.close();
    for (const auto& session : master.sessions()) session->close();
  }

  const ClusterSpec cluster;
  const std::string task;
  const Listening listening;
  const std::string bind;
  Runtime runtime;
  TaskNetwork network;
  Peers peers;
  Worker worker;
  Master master;
  WorkerService worker_service;
  MasterService master_service;
  EagerService eager_service;
  ParameterServer parameters;
  ClosureService closures;
  std::optional<StatusService> status_service;
  ProfilerService profiler_service;
  MethodTable methods;
  std::optional<GrpcServer> server;
  std::optional<LocalServer> local_server;
  std::optional<MetricsServer> metrics;
  std::string address;
  std::optional<MemberWatch> members;
};

Server::Server(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
Server::~Server() { impl_->drain(std::chrono::milliseconds(0)); }

const std::string& Server::task() const { return impl_->task; }
const std::string& Server::address() const { return impl_->address; }
std::string Server::target() const { return "grpc://" + impl_->address; }
std::string Server::description() const {
  return cat("listening on ", impl_->address, " as ", impl_->task);
}
int Server::metrics_port() const { return impl_->metrics ? impl_->metrics->port() : -1; }
Runtime& Server::runtime() const { return impl_->runtime; }
void Server::drain(std::chrono::milliseconds patience) { impl_->drain(patience); }

}  // namespace tandem::distribute
