#include <semaphore.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "tandem/cli/commands.h"
#include "tandem/cli/distribute_library.h"
#include "tandem/core/error.h"

namespace tandem::cli {
namespace {

// For the other tasks of a cluster, which may be started later.
constexpr auto kPatience = std::chrono::minutes(10);

// Raised by the first of these signals. A handler, because libraries have begun threads before
// `main` (OpenBLAS does), and a signal that is blocked elsewhere would end the process by way of
// those.
sem_t ending;

void await_ending_signals() {
  sem_init(&ending, 0, 0);
  struct sigaction action {};
  action.sa_handler = [](int) { sem_post(&ending); };
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGINT}) sigaction(signal, &action, nullptr);
}

// What is given, completed by what the environment says.
distribute::Server::Options options_of(const ServerArguments& arguments,
                                       const distribute::Commands& library) {
  distribute::Server::Options options;
  options.job = arguments.job;
  options.task = arguments.task;
  options.port = arguments.port;
  options.replicas = arguments.replicas;
  options.durable = arguments.durable;
  options.metrics_port = arguments.metrics_port;
  options.heartbeat_timeout = std::chrono::milliseconds(std::llround(arguments.heartbeat * 1000));
  options.security = {arguments.tls_cert, arguments.tls_key, arguments.tls_ca, arguments.insecure};
  if (!arguments.threads.empty()) {
    options.inter_op_threads = arguments.threads[0];
    options.intra_op_threads = arguments.threads[1];
  }
  if (!arguments.etcd.empty()) {
    const char* jobs = std::getenv("TANDEM_CLUSTER_JOBS");
    if (!jobs || arguments.job.empty() || arguments.address.empty()) {
      throw UsageError(
          "--etcd needs --job, --address and, in TANDEM_CLUSTER_JOBS, the tasks to wait for: "
          "ps=1;worker=2");
    }
    distribute::EtcdMembership::Options joining;
    joining.endpoint = arguments.etcd;
    joining.cluster_name = arguments.etcd_cluster;
    joining.job = arguments.job;
    joining.address = arguments.address;
    distribute::Commands::Joined joined = library.join_etcd(joining, jobs, kPatience);
    options.cluster = joined.here.cluster();
    options.task = joined.here.task();
    options.members = std::move(joined.members);
  } else if (!arguments.cluster.empty()) {
    options.cluster = library.parse_cluster(arguments.cluster);
  } else if (!arguments.cluster_file.empty()) {
    options.cluster = library.resolve_file(arguments.cluster_file).cluster();
  } else if (arguments.job.empty()) {
    const distribute::ClusterResolver here = library.resolve_environment();
    if (!here.is_task()) {
      throw UsageError(
          "the environment says which cluster there is, but not which of its tasks this is: give "
          "--job and --task");
    }
    options.cluster = here.cluster();
    options.job = here.job();
    options.task = here.task();
  }
  if (options.job.empty()) throw UsageError("--job and --task are required with a cluster");
  return options;
}

}  // namespace

void run_server(const ServerArguments& arguments) {
  await_ending_signals();
  const distribute::Commands& library = distribute_library();
  library.serve(
      options_of(arguments, library), std::chrono::milliseconds(10'000),
      [](const std::string& description) { std::cout << description << std::endl; },
      [] {
        while (sem_wait(&ending) != 0) continue;  // another signal
        std::cerr << "td: ends after the calls in progress\n";
      });
}

}  // namespace tandem::cli
