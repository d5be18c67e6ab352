#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/eager/eager_programs.h"
#include "tandem/distribute/internal/eager/function_table.h"
#include "tandem/distribute/internal/task/peers.h"
#include "tandem/distribute/internal/worker/worker.h"

namespace tandem::distribute {

class TaskFunctions;

/// What a task keeps for one eager client: the values that its operations have made, by the number
/// of the operation and of its output; its functions; and variables and other resources, which no
/// other context sees. Thread-safe.
class EagerContext {
 public:
  struct Options {
    std::uint64_t id = 0;
    std::uint64_t view = 0;
    std::chrono::seconds keep_alive{0};  ///< without a call for so long it ends; 0: never
    std::shared_ptr<const Peers> peers = {};
    std::vector<proto::DeviceAttributes> devices = {};  ///< of all tasks
  };
  /// `worker` must outlive this.
  EagerContext(Worker& worker, Options options);
  ~EagerContext();
  EagerContext(const EagerContext&) = delete;
  EagerContext& operator=(const EagerContext&) = delete;

  std::uint64_t id() const { return options_.id; }
  std::chrono::seconds keep_alive() const { return options_.keep_alive; }
  Worker& worker() const { return worker_; }
  const std::shared_ptr<WorkerSession>& session() const { return session_; }
  /// Where operations exchange values with other tasks.
  const std::shared_ptr<WorkerStep>& step() const { return step_; }
  FunctionTable& functions() { return functions_; }
  EagerPrograms& programs() { return programs_; }
  TaskFunctions& task_functions() { return *task_functions_; }

  /// The client's cluster changes: tasks have been restarted, say.
  void update(std::uint64_t view, std::shared_ptr<const Peers> peers,
              std::vector<proto::DeviceAttributes> devices);
  std::uint64_t view() const;
  std::shared_ptr<const Peers> peers() const;
  std::vector<proto::DeviceAttributes> devices() const;

  void put(std::int64_t operation, int output, Array value);
  /// Throws InvalidArgumentError with TensorFlow's text if there is none.
  Array get(std::int64_t operation, int output) const;
  bool has(std::int64_t operation, int output) const;
  void remove(std::int64_t operation, int output);

  /// A step of a function, for which values come from the context's tasks as well.
  std::shared_ptr<WorkerStep> function_step(std::int64_t id) const;

  /// Around each call of the client.
  void begin_call();
  void end_call();
  /// Calls back when the calls that have begun are over, perhaps at once.
  void when_idle(std::function<void()> callback);
  /// How long there has been no call; zero while there is one.
  std::chrono::nanoseconds idle_time() const;

  /// Ends what waits, and forgets the values. Does nothing the second time.
  void close();

 private:
  using Clock = std::chrono::steady_clock;

  Worker& worker_;
  const Options options_;
  const std::shared_ptr<WorkerSession> session_;
  const std::shared_ptr<WorkerStep> step_;
  FunctionTable functions_;
  EagerPrograms programs_;
  const std::unique_ptr<TaskFunctions> task_functions_;
  mutable Mutex mutex_;
  std::uint64_t view_ TANDEM_GUARDED_BY(mutex_);
  std::shared_ptr<const Peers> peers_ TANDEM_GUARDED_BY(mutex_);
  std::vector<proto::DeviceAttributes> devices_ TANDEM_GUARDED_BY(mutex_);
  std::map<std::pair<std::int64_t, int>, Array> values_ TANDEM_GUARDED_BY(mutex_);
  int calls_ TANDEM_GUARDED_BY(mutex_) = 0;
  Clock::time_point last_call_ TANDEM_GUARDED_BY(mutex_) = Clock::now();
  std::vector<std::function<void()>> awaiting_idle_ TANDEM_GUARDED_BY(mutex_);
  bool closed_ TANDEM_GUARDED_BY(mutex_) = false;
};

}  // namespace tandem::distribute
