// The rows `replication`, `recovery_replicated` and `recovery_durable`.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "bench/common/serve.h"
#include "bench/ours/cluster/mlp_training.h"
#include "bench/ours/cluster/servers.h"

namespace bench {

/// Training on two parameter servers that hold each other's variables.
class Replicated {
 public:
  explicit Replicated(const std::vector<Batch>& batches);
  /// Steps a second / those on two servers that do not.
  Answer speed();
  /// Milliseconds from kill -9 of a server until the next step is done.
  Answer recovery();

 private:
  Servers servers_{Kind::kTandem, {.ps = 2, .ps_options = {"--replicas", "2"}}};
  Servers plain_servers_{Kind::kTandem, {.ps = 2}};
  MlpTraining training_, plain_;
};

/// One parameter server with a log, and 1 GB of state.
class Durable {
 public:
  Durable();
  ~Durable();
  /// Milliseconds from kill -9 of the server, which is started again at once, until the next step
  /// is done.
  Answer recovery();

 private:
  std::filesystem::path folder_;
  std::unique_ptr<Servers> servers_;
  std::unique_ptr<tandem::distribute::ParameterServerStrategy> strategy_;
  std::shared_ptr<const tandem::distribute::ParameterServerStrategy::Function> step_;
  double steps_ = 0;
};

}  // namespace bench
