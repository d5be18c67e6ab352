// The row `embedding`: a table of 1,000,000 x 64 on two parameter servers, of which each step looks
// up 1,000 rows and changes them.
#pragma once

#include <memory>
#include <vector>

#include <tandem/distribute/parameter_server_strategy.h>
#include <tandem/distribute/remote_session.h>
#include <tandem/tandem.h>

#include "bench/common/serve.h"
#include "bench/ours/cluster/servers.h"

namespace bench {

/// By ParameterServerStrategy on `td server`s.
class Embedding {
 public:
  Embedding();
  ~Embedding();
  Answer run();

 private:
  Servers servers_{Kind::kTandem, {.ps = 2}};
  const std::vector<tandem::Tensor> ids_;
  tandem::distribute::ParameterServerStrategy strategy_;
  std::shared_ptr<const tandem::distribute::ParameterServerStrategy::Function> step_;
};

/// By a session for each worker, of the graphs embedding_N.pb (bench/peers/export_cluster.py).
class EmbeddingBySessions {
 public:
  explicit EmbeddingBySessions(Kind kind);
  Answer run();

 private:
  Servers servers_;
  const std::vector<tandem::Tensor> ids_;
  std::vector<std::unique_ptr<tandem::distribute::RemoteSession>> sessions_;
};

}  // namespace bench
