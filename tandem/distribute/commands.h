#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/distribute/cluster_resolver.h"
#include "tandem/distribute/cluster_status.h"
#include "tandem/distribute/etcd_membership.h"
#include "tandem/distribute/remote_session.h"
#include "tandem/distribute/server.h"

namespace tandem::distribute {

/// What `td` uses of libtandem_distribute.so. Programs link the library (`tandem::distribute`) and
/// call these functions themselves; the tool opens it only for the commands that need it.
struct Commands {
  /// Serves until `wait` returns; `ready` gets the server's description once it listens. Then it
  /// drains for at most `patience`.
  void (*serve)(const Server::Options& options, std::chrono::milliseconds patience,
                const std::function<void(const std::string& description)>& ready,
                const std::function<void()>& wait);
  ClusterSpec (*parse_cluster)(StringView text);
  ClusterResolver (*resolve_file)(const String& path);
  ClusterResolver (*resolve_environment)();
  /// Joins, and waits until the jobs ("ps=1;worker=2") have their members.
  struct Joined {
    ClusterResolver here;
    std::function<ClusterSpec()> members;  ///< those of now; the membership ends with this
  };
  Joined (*join_etcd)(const EtcdMembership::Options& options, StringView jobs,
                      std::chrono::milliseconds patience);
  std::vector<TaskStatus> (*cluster_status)(const String& target, const Security& security);
  DeviceSet (*cluster_devices)(const String& target, const Security& security);
  std::unique_ptr<RemoteSession> (*open_session)(const std::string& target,
                                                 std::string_view graph_def,
                                                 const RemoteSession::Options& options);
};

/// The name by which the tool finds the library's one `const Commands* ()`.
inline constexpr const char* kCommandsSymbol = "tandem_distribute_commands";

}  // namespace tandem::distribute
