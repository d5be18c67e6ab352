#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/distribute/cluster_resolver.h"
#include "tandem/distribute/server.h"

namespace tandem::distribute {

/// This process as an eager client of a cluster's tasks, ours or TensorFlow's.
///
///     auto cluster = td::distribute::connect(td::distribute::ClusterResolver::from_environment());
///     td::DeviceScope there("/job:worker/task:1");
///     td::Variable w(td::zeros({1000, 10}));   // lives on that task
///     td::Tensor y = td::matmul(x, w);         // runs there; returns before it has run
///     y.item<float>(…)                         // waits, and fetches the value
///
/// Within the scope of a device of another task eager ops and calls of `td::function`s run there,
/// and so do ops on a variable or other resource that is there, whatever the scope. Values pass
/// from task to task directly. A function's nodes may ask for further tasks. Outside of such scopes
/// a remote value is fetched where an op needs it. Functions cannot use variables of this process
/// there.
///
/// A failure is thrown when a value of the call is asked for, or by the next wait for that task.
/// What was made there is gone when the connection ends: then waiting throws UnavailableError.
/// Thread-safe.
class TANDEM_EXPORT Connection {
 public:
  struct Options {
    Security security = {};
    String job = "client";  ///< by which the tasks know this process
    /// How long the tasks may take to answer at first.
    std::chrono::milliseconds timeout = std::chrono::seconds(60);
    /// A context whose client has not called for so long is ended by its task.
    std::chrono::seconds keep_alive = std::chrono::minutes(10);
  };
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Full names, by task.
  std::vector<std::string> devices() const;
  /// Waits until the tasks have run all calls so far; throws the first failure that nothing has
  /// thrown yet.
  void synchronize() const;

 private:
  friend TANDEM_EXPORT std::unique_ptr<Connection> connect(const ClusterResolver& resolver,
                                                           const Options& options);
  struct Impl;
  explicit Connection(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

/// Connects to all tasks of the resolver's cluster, until the result is destroyed; one at a time in
/// a process (FailedPreconditionError). Throws UnavailableError or DeadlineExceededError naming a
/// task that does not answer, and InvalidArgumentError for a cluster without tasks or options that
/// make no sense.
TANDEM_EXPORT std::unique_ptr<Connection> connect(const ClusterResolver& resolver,
                                                  const Connection::Options& options);
[[nodiscard]] TANDEM_EXPORT std::unique_ptr<Connection> connect(const ClusterResolver& resolver);

}  // namespace tandem::distribute
