#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tandem/distribute/internal/client/replica_planner.h"
#include "tandem/distribute/internal/parameters/parameter_server.h"

#include "tests/simulation/clock.h"
#include "tests/simulation/network.h"

namespace tandem::simulation {

/// Parameter servers and the chief's watch of them: the real ones, on a simulated network.
class Cluster {
 public:
  struct Options {
    int servers = 1;
    int replicas = 1;
    bool durable = true;
    std::string folder;  ///< of logs, on a file system in memory
    distribute::StateSizes sizes;
  };
  Cluster(Clock& clock, Network& network, Options options);
  ~Cluster();

  const std::vector<std::string>& tasks() const { return tasks_; }
  std::vector<std::string> candidates(const std::string& home) const;
  /// Puts variables on a server, as before a training: nothing is lost yet. Returns the state's id.
  std::string create(const distribute::proto::CreateParametersRequest& request,
                     const distribute::Parameters& variables, const std::set<std::string>& state);
  /// Begins to watch, once all homes have variables.
  void watch();

  void kill(const std::string& task);
  void restart(const std::string& task);
  bool is_up(const std::string& task) const;
  /// Another chief in place of the one that is.
  void replace_chief();
  /// Whether each variable is on as many servers as it should be, since the last restart of any.
  bool complete() const {
    return options_.replicas == 1 ||
           (unknown_.empty() && not_found_.empty() && unseen_.empty() && planner_.complete());
  }
  /// The tasks that hold a home's variables, by the last view.
  std::vector<std::string> holders(const std::string& home) const;
  std::vector<std::string> take_events() { return planner_.take_events(); }

 private:
  struct Server {
    std::shared_ptr<distribute::ParameterServer> process;
    int life = 0;
  };
  void ask(int chief, const std::string& task);
  /// Whether it is known now if the task is there.
  bool report(const std::string& task, const distribute::Status& status, distribute::Bytes reply);
  void send_views();

  Clock& clock_;
  Network& network_;
  const Options options_;
  std::vector<std::string> tasks_;
  std::map<std::string, Server> servers_;
  distribute::ReplicaPlanner planner_;
  int chief_ = 0;                    // the how-manieth
  std::set<std::string> unseen_;     // started, and the chief does not know it yet
  std::set<std::string> unknown_;    // what a new chief has not heard of
  std::set<std::string> not_found_;  // homes that were away then, and are not in a view yet
  std::map<std::string, distribute::proto::ReplicaView> views_;
};

}  // namespace tandem::simulation
