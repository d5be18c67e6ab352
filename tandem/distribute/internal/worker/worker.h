#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/task/peers.h"
#include "tandem/distribute/internal/worker/step_table.h"
#include "tandem/distribute/internal/worker/worker_session.h"
#include "tandem/distribute/proto/messages.h"
#include "tandem/runtime/runtime.h"

namespace tandem::distribute {

/// Runs parts of steps on the devices of one task: what a master in the same process calls, and
/// what WorkerService (worker_service.h) serves to others. Nothing here blocks. Thread-safe.
class Worker {
 public:
  /// `task`: this one's full name, as the names of the runtime's devices begin. What is given by
  /// reference must outlive this.
  Worker(Runtime& runtime, std::string task, const Peers& peers);
  ~Worker();

  Runtime& runtime() const { return runtime_; }
  const std::string& task() const { return task_; }
  StepTable& steps() { return steps_; }
  std::vector<proto::DeviceAttributes> devices() const;

  /// Does nothing if there is a session of that name.
  std::shared_ptr<WorkerSession> create_session(const std::string& handle, bool isolated);
  /// Null if there is none. An empty handle is the session of those who made none.
  std::shared_ptr<WorkerSession> find_session(const std::string& handle) const;
  void delete_session(const std::string& handle);
  std::vector<std::string> sessions() const;

  /// How a part has run.
  struct Outcome {
    std::exception_ptr error = nullptr;
    std::vector<Array> results = {};
    proto::StepStats stats = {};  ///< if recorded
  };
  using Done = std::function<void(Outcome outcome)>;
  /// Runs a graph as a part of a step. A failure ends what runs of the step in this task.
  void run(const std::shared_ptr<WorkerSession>& session, FunctionRef function,
           std::shared_ptr<WorkerStep> step, std::vector<Array> args, bool record, Done done);
  /// How long a peer may leave a question unanswered before steps do without it.
  std::chrono::milliseconds peer_timeout() const { return peer_timeout_; }
  /// Before the first step.
  void set_peer_timeout(std::chrono::milliseconds timeout) { peer_timeout_ = timeout; }
  int num_running() const { return running_.load(); }

  /// Empties containers of all devices; none means the default one. Other state stays.
  void reset(const std::vector<std::string>& containers);

 private:
  class Run;
  Runtime& runtime_;
  const std::string task_;
  StepTable steps_;
  std::chrono::milliseconds peer_timeout_{10'000};
  std::atomic<int> running_{0};
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<WorkerSession>> sessions_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
