#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tandem/core/cancellation.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/client/replica_planner.h"
#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

/// Asks parameter servers several times a second whether they are there, and sends them the views
/// that follow from their answers (ReplicaPlanner). Thread-safe.
class ServerWatch {
 public:
  struct Options {
    std::vector<std::pair<std::string, std::shared_ptr<Channel>>> servers = {};  ///< by task
    int replicas = 1;
    /// A server that has not answered for so long is lost; one that cannot be reached is sooner.
    std::chrono::milliseconds heartbeat_timeout{10'000};
    std::function<void(const std::string& line)> on_event = {};
  };
  explicit ServerWatch(Options options);
  /// The channels' network must have ended its calls before this is gone.
  ~ServerWatch();

  /// Goes on with what servers hold; returns the homes of which none holds anything.
  std::vector<std::string> take_over();
  /// Begins with a home's variables, which were created there.
  void begin(const std::string& home);
  /// False if there are not as many replicas as there should be after `patience`.
  bool wait_until_complete(std::chrono::milliseconds patience);
  void stop();

 private:
  void watch();
  void ask(std::size_t server);
  void send_views();

  const Options options_;
  Mutex mutex_;
  std::condition_variable changed_;
  ReplicaPlanner planner_ TANDEM_GUARDED_BY(mutex_);
  std::vector<bool> is_asked_ TANDEM_GUARDED_BY(mutex_);  // by server
  std::vector<bool> was_asked_ TANDEM_GUARDED_BY(mutex_);
  bool hurries_ TANDEM_GUARDED_BY(mutex_) = false;  // a server may be lost: it is asked again soon
  bool stopped_ TANDEM_GUARDED_BY(mutex_) = false;
  const std::shared_ptr<Cancellation> calls_ = std::make_shared<Cancellation>();
  std::thread thread_;
};

}  // namespace tandem::distribute
