#include "tandem/distribute/internal/client/replica_planner.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"

namespace tandem::distribute {
namespace {

constexpr std::int64_t kEpochsOfAChief = std::int64_t{1} << 32;

}  // namespace

ReplicaPlanner::ReplicaPlanner(std::vector<std::string> tasks, int replicas)
    : tasks_(std::move(tasks)),
      replicas_(std::min(static_cast<std::size_t>(std::max(replicas, 1)), tasks_.size())) {
  for (const std::string& task : tasks_) servers_[task];
}

std::vector<std::string> ReplicaPlanner::candidates(const std::string& home) const {
  std::vector<std::string> ring = tasks_;
  const auto first = std::find(ring.begin(), ring.end(), home);
  if (first == ring.end()) return {};
  std::rotate(ring.begin(), first, ring.end());
  return ring;
}

void ReplicaPlanner::report(const std::string& task, const proto::DescribeResponse& description) {
  Server& server = servers_[task];
  if (server.incarnation == description.incarnation) {
    server.loss.answered(server.failures);
  } else if (!server.incarnation.empty()) {
    events_.push_back(cat(task, " was started again"));
  }
  server.answers = true;
  server.lost = false;
  server.failures = 0;
  server.incarnation = description.incarnation;
  server.held.clear();
  for (const proto::ReplicaState& state : description.state) server.held[state.home] = state;
}

void ReplicaPlanner::report_silence(const std::string& task) {
  Server& server = servers_[task];
  server.answers = false;
  server.lost = true;
}

int ReplicaPlanner::patience(const Server& server) {
  return server.incarnation.empty() ? kMaxFailuresOfUnknown : server.loss.patience();
}

bool ReplicaPlanner::report_failure(const std::string& task) {
  Server& server = servers_[task];
  const int needed = patience(server);
  if (server.failures < needed) ++server.failures;
  if (server.failures >= needed) report_silence(task);
  return server.lost;
}

const proto::ReplicaState* ReplicaPlanner::held(const std::string& task,
                                                const std::string& home) const {
  return servers_.at(task).answers ? last_held(task, home) : nullptr;
}

const proto::ReplicaState* ReplicaPlanner::last_held(const std::string& task,
                                                     const std::string& home) const {
  const Server& server = servers_.at(task);
  const auto found = server.held.find(home);
  if (found == server.held.end() || found->second.state_id.empty()) return nullptr;
  return &found->second;
}

bool ReplicaPlanner::is_alive(const Member& member) const {
  const Server& server = servers_.at(member.task);
  return server.answers && server.incarnation == member.incarnation;
}

bool ReplicaPlanner::go_on(const std::string& name, const std::string& state_id) {
  std::vector<std::pair<std::string, const proto::ReplicaState*>> holders;
  std::int64_t newest = 0, epoch = -1;
  for (const std::string& task : candidates(name)) {
    // One that is silent now may have gone on alone since: it is waited for.
    const proto::ReplicaState* state = last_held(task, name);
    if (!state) continue;
    newest = std::max(newest, state->view->epoch);
    if (!state_id.empty() && state->state_id != state_id) continue;
    epoch = std::max(epoch, state->view->epoch);
    holders.emplace_back(task, state);
  }
  if (holders.empty()) return false;
  // The newest view; of its tasks, those that have been in it all the time come first.
  std::erase_if(holders, [&](const auto& holder) { return holder.second->view->epoch != epoch; });
  std::stable_sort(holders.begin(), holders.end(), [](const auto& one, const auto& other) {
    return one.second->active && !other.second->active;
  });
  Home home;
  // What an earlier chief has sent and what arrives only now is older than any view of this one.
  home.epoch = (newest / kEpochsOfAChief + 1) * kEpochsOfAChief;
  home.renew = true;
  for (const auto& [task, state] : holders) {
    const bool is_in_it = state->active || home.chain.empty();
    if (is_in_it) home.chain.push_back({task, servers_.at(task).incarnation, epoch});
  }
  home.accepted_chain = home.chain;
  homes_[name] = std::move(home);
  return true;
}

std::vector<std::string> ReplicaPlanner::take_over() {
  std::vector<std::string> none;
  for (const std::string& name : tasks_) {
    if (!go_on(name, {})) none.push_back(name);
  }
  return none;
}

void ReplicaPlanner::begin(const std::string& home) { begun_.insert(home); }

void ReplicaPlanner::go_on_with_begun() {
  std::erase_if(begun_, [&](const std::string& home) {
    const proto::ReplicaState* state = held(home, home);
    return state && go_on(home, state->state_id);
  });
}

std::size_t ReplicaPlanner::num_reached(const std::string& name, const Home& home) const {
  for (std::size_t m = 0; m < home.chain.size(); ++m) {
    const proto::ReplicaState* state = held(home.chain[m].task, name);
    if (state && state->view->epoch == home.epoch && state->broken) return m + 1;
  }
  return home.chain.size();
}

// Those of a view that can go on with it; none if the others may come back.
std::vector<ReplicaPlanner::Member> ReplicaPlanner::survivors(
    const std::string& name, const std::vector<Member>& members) const {
  const auto is_ready = [&](const Member& member) {
    const proto::ReplicaState* state = held(member.task, name);
    return state && state->view->epoch >= member.since;
  };
  std::vector<Member> chain;
  for (const Member& member : members) {
    if (is_alive(member)) chain.push_back(member);
  }
  // Who takes over has to have the state.
  if (!chain.empty() && chain.front().task != members.front().task)
    chain.erase(chain.begin(), std::find_if(chain.begin(), chain.end(), is_ready));
  if (!chain.empty()) return chain;
  const auto restored = std::find_if(members.begin(), members.end(), is_ready);
  if (restored == members.end()) return {};
  return {{restored->task, servers_.at(restored->task).incarnation, restored->since}};
}

ReplicaPlanner::Command ReplicaPlanner::command(const std::string& name, const Home& home,
                                                const std::string& task) {
  Command command;
  command.home = name;
  command.task = task;
  command.view.epoch = home.epoch;
  command.since = home.chain.front().since;
  command.confirmed = home.accepted;
  for (const Member& member : home.chain) command.view.chain.push_back(member.task);
  return command;
}

std::vector<ReplicaPlanner::Command> ReplicaPlanner::plan() {
  go_on_with_begun();
  std::vector<Command> commands;
  for (auto& [name, home] : homes_) {
    std::vector<Member> chain = survivors(name, home.chain);
    if (chain.empty() && !home.accepted) chain = survivors(name, home.accepted_chain);
    if (chain.empty()) continue;
    // A task cannot reach the next one, though this process may: those before go on without it for
    // now.
    const std::size_t reached = num_reached(name, home);
    const bool broken = reached < home.chain.size();
    if (broken) chain.resize(std::min(chain.size(), reached));
    const auto equal = [](const Member& one, const Member& other) {
      return one.task == other.task && one.incarnation == other.incarnation;
    };
    const auto is_changed = [&, &home = home] {
      return !std::equal(chain.begin(), chain.end(), home.chain.begin(), home.chain.end(), equal);
    };
    // A view that nothing is acknowledged in yet is not replaced to add tasks: the first one may
    // need to go on alone, where the others cannot be reached from it.
    const bool may_grow = !broken && (is_changed() || home.renew || home.confirmed);
    for (const std::string& task : candidates(name)) {
      if (!may_grow || chain.size() >= replicas_) break;
      const bool is_there = std::any_of(chain.begin(), chain.end(),
                                        [&](const Member& member) { return member.task == task; });
      const Server& server = servers_.at(task);
      if (!is_there && server.answers) chain.push_back({task, server.incarnation, home.epoch + 1});
    }
    if (is_changed() || home.renew) {
      if (!home.chain.empty() && chain.front().task != home.chain.front().task) {
        events_.push_back(cat("lost ", home.chain.front().task, "; ", chain.front().task,
                              " serves the variables of ", name));
      }
      if (chain.size() < replicas_ && chain.size() < home.chain.size())
        events_.push_back(cat("the variables of ", name, " are on ", chain.front().task, " only"));
      ++home.epoch;
      home.chain = std::move(chain);
      home.accepted = home.confirmed = home.renew = false;
    }
    const std::string& first = home.chain.front().task;
    if (!home.confirmed) commands.push_back(command(name, home, first));
    // One that others have gone on without does not find out by itself: it would answer pulls.
    for (const std::string& task : candidates(name)) {
      const proto::ReplicaState* state = held(task, name);
      const bool serves = state && state->active && state->view->epoch < home.epoch &&
                          !state->view->chain.empty() && state->view->chain.front() == task;
      if (home.accepted && serves && task != first) commands.push_back(command(name, home, task));
    }
  }
  return commands;
}

proto::SetViewRequest ReplicaPlanner::request(const Command& command) {
  proto::SetViewRequest message;
  message.home = command.home;
  message.since = command.since;
  message.view.make() = command.view;
  message.confirmed = command.confirmed;
  return message;
}

bool ReplicaPlanner::accepted(const Command& command) {
  Home& home = homes_.at(command.home);
  if (home.epoch != command.view.epoch) return false;
  if (command.confirmed) home.confirmed = true;
  if (home.accepted) return false;
  home.accepted = true;
  home.accepted_chain = home.chain;
  return true;
}

bool ReplicaPlanner::complete() const {
  return begun_.empty() && std::all_of(homes_.begin(), homes_.end(), [&](const auto& entry) {
           const auto& [name, home] = entry;
           if (!home.confirmed || home.chain.size() < replicas_) return false;
           const proto::ReplicaState* state = held(home.chain.front().task, name);
           return state && state->view->epoch == home.epoch && (state->linked || replicas_ == 1);
         });
}

std::vector<std::string> ReplicaPlanner::take_events() { return std::exchange(events_, {}); }

}  // namespace tandem::distribute
