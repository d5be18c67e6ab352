#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/master/master_session.h"
#include "tandem/distribute/internal/task/peers.h"

namespace tandem::distribute {

/// Makes sessions for clients, and knows the tasks that they may use. Nothing here blocks.
/// Thread-safe.
class Master {
 public:
  /// What is given by reference must outlive this.
  Master(Worker& worker, const Peers& peers) : worker_(worker), peers_(peers) {}

  struct NewSession {
    std::string_view graph_def;
    std::string_view config;
    std::shared_ptr<const void> owner;  ///< keeps both
    std::shared_ptr<Cancellation> cancellation;
  };
  using Created = std::function<void(std::exception_ptr, std::shared_ptr<MasterSession>)>;
  /// Asks the other tasks for their devices, waiting for those that cannot be reached yet, places
  /// the graph, and makes the session known to them.
  void create_session(NewSession wanted, const Created& created);

  /// Throws AbortedError with TensorFlow's text, and `more` behind, if there is none.
  std::shared_ptr<MasterSession> find(const std::string& handle, const char* more = "") const;
  void close_session(const std::string& handle);
  std::vector<std::shared_ptr<MasterSession>> sessions() const;

  using Devices = std::function<void(std::exception_ptr, std::vector<proto::DeviceAttributes>)>;
  /// The devices of these tasks (GetStatus).
  static void devices_of(const std::vector<SessionTask>& tasks,
                         const std::shared_ptr<Cancellation>& cancellation, const Devices& done);
  /// All tasks but the master's own.
  std::vector<SessionTask> other_tasks(const std::vector<std::string>& device_filters = {}) const;

  /// Closes all sessions and empties containers in all tasks; calls `done` when that is so.
  void reset(const std::vector<std::string>& containers, const std::function<void()>& done);

  Worker& worker() { return worker_; }

 private:
  struct Creation;
  void add_to_tasks(const std::shared_ptr<Creation>& creation,
                    const std::vector<proto::DeviceAttributes>& devices);

  Worker& worker_;
  const Peers& peers_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<MasterSession>> sessions_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
