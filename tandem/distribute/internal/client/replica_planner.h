#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tandem/distribute/internal/rpc/loss_estimate.h"
#include "tandem/distribute/proto/parameters.h"

namespace tandem::distribute {

/// Decides which tasks hold each home's variables: the chief's part of replication, without clock
/// and network. Its input is what servers answer and which do not, its output the views to send.
///
/// A view has a task of the one before it first, one that has not been started again since, or one
/// that has read the state from its folder where none else is left. Where all of these are lost
/// before the first one has answered that it has the view, nothing was acknowledged in it, and
/// tasks of the last view that was accepted go on. A task that has come back, or
/// another one of the job, joins at the end. Not thread-safe.
class ReplicaPlanner {
 public:
  /// `tasks` are all parameter servers; each is a home, with the next ones as its replicas.
  ReplicaPlanner(std::vector<std::string> tasks, int replicas);

  /// The tasks that may hold a home's variables, it itself first.
  std::vector<std::string> candidates(const std::string& home) const;

  void report(const std::string& task, const proto::DescribeResponse& description);
  /// The task has not answered for as long as it may take: it is taken for lost.
  void report_silence(const std::string& task);
  /// A question to the task has failed sooner. A few of them may be chance: silence is as many with
  /// no answer between as its LossEstimate says, three where most are answered. True if the task is
  /// taken for lost.
  bool report_failure(const std::string& task);
  /// That many are silence of a task that has never answered. It may serve in a newer view than
  /// others know of, which would be lost if a new chief went on without it.
  static constexpr int kMaxFailuresOfUnknown = 30;
  /// Goes on with what servers hold, by what was reported: the first view of each home. Homes of
  /// which none holds anything are not managed; they are returned.
  std::vector<std::string> take_over();
  /// Begins with a home's variables, which it serves: they were created there, or it had been
  /// silent when this chief took over. Its next report has them.
  void begin(const std::string& home);

  struct Command {
    std::string home;
    std::string task;  ///< gets the view
    proto::ReplicaView view;
    std::int64_t since = 0;  ///< see SetViewRequest
    bool confirmed = false;  ///< see SetViewRequest
  };
  static proto::SetViewRequest request(const Command& command);
  std::vector<Command> plan();
  /// The task has taken the view. True if `plan` has a confirmation for it now.
  bool accepted(const Command& command);

  /// Whether all homes are served by as many tasks as there should be.
  bool complete() const;
  /// Lines on what has changed since the last call.
  std::vector<std::string> take_events();

 private:
  struct Server {
    bool answers = false;
    bool lost = false;  // at first it neither answers nor is lost
    LossEstimate loss = {};
    int failures = 0;  // since the last answer, up to those that mean silence
    std::string incarnation = {};
    std::map<std::string, proto::ReplicaState> held = {};  // by home
  };
  struct Member {
    std::string task;
    std::string incarnation;
    std::int64_t since = 0;  // the epoch in which it joined: before it gets that it has old values
  };
  struct Home {
    std::int64_t epoch = 0;
    std::vector<Member> chain = {};
    bool accepted = false;   // by the first of the chain
    bool confirmed = false;  // which knows that this is known
    std::vector<Member> accepted_chain = {};
    bool renew = false;  // the next view is due, even with equal tasks
  };
  /// Goes on with the newest view of a home's variables, those of that id if it is not empty. False
  /// if none is known to hold them.
  bool go_on(const std::string& name, const std::string& state_id);
  void go_on_with_begun();
  bool is_alive(const Member& member) const;
  std::vector<Member> survivors(const std::string& name, const std::vector<Member>& members) const;
  /// The home's view for a task.
  static Command command(const std::string& name, const Home& home, const std::string& task);
  static int patience(const Server& server);
  /// What a task holds of a home's variables; null if that is nothing, or the task is silent.
  const proto::ReplicaState* held(const std::string& task, const std::string& home) const;
  /// What it held when it answered last.
  const proto::ReplicaState* last_held(const std::string& task, const std::string& home) const;
  /// How many tasks of a home's chain the records of its first one reach; all, as far as is known.
  std::size_t num_reached(const std::string& name, const Home& home) const;

  std::vector<std::string> tasks_;
  std::size_t replicas_;
  std::map<std::string, Server> servers_;
  std::map<std::string, Home> homes_;
  std::set<std::string> begun_;  // homes of which there is no view yet
  std::vector<std::string> events_;
};

}  // namespace tandem::distribute
