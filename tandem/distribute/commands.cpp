#include "tandem/distribute/commands.h"

using namespace tandem::distribute;

extern "C" TANDEM_EXPORT const Commands* tandem_distribute_commands() {
  static constexpr Commands commands{
      .serve =
          [](const Server::Options& options, std::chrono::milliseconds patience,
             const std::function<void(const std::string&)>& ready,
             const std::function<void()>& wait) {
            Server server(options);
            ready(server.description());
            wait();
            server.drain(patience);
          },
      .parse_cluster = &ClusterSpec::parse,
      .resolve_file = &ClusterResolver::from_file,
      .resolve_environment = [] { return ClusterResolver::from_environment(); },
      .join_etcd =
          [](const EtcdMembership::Options& options, tandem::StringView jobs,
             std::chrono::milliseconds patience) {
            const auto sizes = ClusterResolver::parse_job_sizes(jobs);
            const auto member = std::make_shared<const EtcdMembership>(options);
            ClusterResolver here = member->wait_for(sizes, patience);
            return Commands::Joined{std::move(here), [member] { return member->members(); }};
          },
      .cluster_status = &cluster_status,
      .cluster_devices = &cluster_devices,
      .open_session =
          [](const std::string& target, std::string_view graph_def,
             const RemoteSession::Options& options) {
            return RemoteSession::open(target, graph_def, options);
          }};
  return &commands;
}
