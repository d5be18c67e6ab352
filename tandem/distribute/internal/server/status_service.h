#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "tandem/distribute/internal/master/master.h"
#include "tandem/distribute/internal/parameters/parameter_server.h"
#include "tandem/distribute/internal/rpc/method_table.h"
#include "tandem/distribute/internal/task/peers.h"

namespace tandem::distribute {

inline constexpr const char* kStatusMethod = "/tandem.ClusterService/Status";

/// What `td cluster status` asks of a task: one method, which answers with a JSON object.
///
///     {"task", "version", "cluster": {JOB: {TASK: ADDRESS}}, "uptime_s", "running_steps",
///      "devices": [{"name", "type", "incarnation", "memory_used", "memory_peak", "memory_limit"}],
///      "sessions": [HANDLE], "master_sessions": [{"handle", "steps"}],
///      "parameters": {"count", "bytes", "updates", "waiting", "durable"},
///      "local": {"connections", "calls", "shared_bytes"}}
class StatusService {
 public:
  /// What is given by reference must outlive this, and this the table's calls.
  StatusService(Master& master, const ParameterServer& parameters, const Peers& peers)
      : master_(master), parameters_(parameters), peers_(peers) {}
  void add_to(MethodTable& methods);
  /// How many clients have a local connection, how many calls have come through these, and how much
  /// memory is shared for messages.
  struct LocalFigures {
    std::size_t connections = 0;
    std::uint64_t calls = 0;
    std::size_t shared_bytes = 0;
  };
  /// Without it there are no local connections. Call it before the first call.
  void show_local(std::function<LocalFigures()> local) { local_ = std::move(local); }
  /// The figures as Prometheus' text.
  std::string metrics() const;

 private:
  std::string status() const;

  Master& master_;
  const ParameterServer& parameters_;
  const Peers& peers_;
  std::function<LocalFigures()> local_;
  const MethodTable* methods_ = nullptr;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace tandem::distribute
