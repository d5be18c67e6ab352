#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/core/string_list.h"
#include "tandem/distribute/server.h"

namespace tandem::distribute {

/// A session of a master, ours or TensorFlow's: a graph that runs on the devices of its cluster.
/// Tensors are named "node" or "node:1".
///
///     auto session = RemoteSession::open("grpc://localhost:2222", graph_def);
///     auto y = session->run({{"x", x}}, {"logits"});
///
/// Errors are the server's, with its codes and texts; UnavailableError if it cannot be reached.
/// Thread-safe.
class TANDEM_EXPORT RemoteSession {
 public:
  struct Options {
    Security security = {};       ///< certificates, where the server asks for them
    bool isolate_state = false;   ///< variables and queues of its own
    bool soft_placement = false;  ///< nodes go elsewhere where the device they ask for can't be had
    StringList device_filters = {};  ///< the tasks that it may use; none: all
    /// How long the session may take to begin; none: until all tasks of the cluster answer.
    std::optional<std::chrono::nanoseconds> timeout = {};
  };
  /// `target`: "grpc://HOST:PORT" or "HOST:PORT"; `graph_def`: a serialized GraphDef.
  static std::unique_ptr<RemoteSession> open(const String& target, StringView graph_def);
  static std::unique_ptr<RemoteSession> open(const String& target, StringView graph_def,
                                             const Options& options);
  /// Closes it, if the server can be reached.
  virtual ~RemoteSession();
  RemoteSession(const RemoteSession&) = delete;
  RemoteSession& operator=(const RemoteSession&) = delete;

  /// Adds nodes; `graph_def` holds these alone, and all functions.
  virtual void extend(StringView graph_def) = 0;

  using Feed = std::pair<String, Array>;
  struct RunOptions {
    std::optional<std::chrono::nanoseconds> timeout = {};
  };
  /// One step: the values of the fetches, in their order.
  virtual std::vector<Array> run(const std::vector<Feed>& feeds, const StringList& fetches,
                                 const StringList& targets, const RunOptions& options) = 0;
  std::vector<Array> run(const std::vector<Feed>& feeds, const StringList& fetches,
                         const StringList& targets = {}) {
    return run(feeds, fetches, targets, {});
  }

 protected:
  RemoteSession() = default;
};

}  // namespace tandem::distribute
