#include "tandem/distribute/internal/client/replica_planner.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"

namespace tandem::distribute {

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
  if (!server.incarnation.empty() && server.incarnation != description.incarnation)
    events_.push_back(cat(task, " was started again"));
  server.answers = true;
  server.incarnation = description.incarnation;
  server.held.clear();
  for (const proto::ReplicaState& state : description.state) server.held[state.home] = state;
}

void ReplicaPlanner::report_silence(const std::string& task) { servers_[task].answers = false; }

const proto::ReplicaState* ReplicaPlanner::held(const std::string& task,
                                                const std::string& home) const {
  const Server& server = servers_.at(task);
  const auto found = server.held.find(home);
  if (!server.answers || found == server.held.end() || found->second.state_id.empty())
    return nullptr;
  return &found->second;
}

bool ReplicaPlanner::is_alive(const Member& member) const {
  const Server& server = servers_.at(member.task);
  return server.answers && server.incarnation == member.incarnation;
}

std::vector<std::string> ReplicaPlanner::take_over() {
  std::vector<std::string> none;
  for (const std::string& name : tasks_) {
    // The newest view; of its tasks, those that have been in it all the time come first.
    std::vector<std::pair<std::string, const proto::ReplicaState*>> holders;
    std::int64_t epoch = -1;
    for (const std::string& task : candidates(name)) {
      const proto::ReplicaState* state = held(task, name);
      if (state) epoch = std::max(epoch, state->view->epoch);
    }
    for (const std::string& task : candidates(name)) {
      const proto::ReplicaState* state = held(task, name);
      if (state && state->view->epoch == epoch) holders.emplace_back(task, state);
    }
    if (holders.empty()) {
      none.push_back(name);
      continue;
    }
    std::stable_sort(holders.begin(), holders.end(), [](const auto& one, const auto& other) {
      return one.second->active && !other.second->active;
    });
    Home& home = homes_[name];
    home.epoch = epoch;
    home.renew = true;
    for (const auto& [task, state] : holders) {
      const bool is_in_it = state->active || home.chain.empty();
      if (is_in_it) home.chain.push_back({task, servers_.at(task).incarnation, epoch});
    }
  }
  return none;
}

void ReplicaPlanner::begin(const std::string& home) {
  homes_[home] = {.chain = {{home, servers_.at(home).incarnation}}, .renew = true};
}

bool ReplicaPlanner::is_broken(const std::string& name, const Home& home) const {
  const proto::ReplicaState* state = held(home.chain.front().task, name);
  return state && state->view->epoch == home.epoch && state->broken;
}

std::vector<ReplicaPlanner::Command> ReplicaPlanner::plan() {
  std::vector<Command> commands;
  for (auto& [name, home] : homes_) {
    std::vector<Member> chain;
    for (const Member& member : home.chain) {
      if (is_alive(member)) chain.push_back(member);
    }
    if (chain.empty()) {
      for (const Member& member : home.chain) {
        const proto::ReplicaState* state = held(member.task, name);
        if (!state || state->view->epoch < member.since) continue;
        chain.push_back({member.task, servers_.at(member.task).incarnation, member.since});
        break;
      }
    }
    // Who takes over has to have the state. Where none has it the others may come back.
    const bool takes_over = !chain.empty() && chain.front().task != home.chain.front().task;
    if (takes_over) {
      const auto ready = std::find_if(chain.begin(), chain.end(), [&](const Member& member) {
        const proto::ReplicaState* state = held(member.task, name);
        return state && state->view->epoch >= member.since;
      });
      chain.erase(chain.begin(), ready);
    }
    if (chain.empty()) continue;
    // The first cannot reach the next one, though this process may: it goes on alone for now.
    const bool broken = is_broken(name, home);
    if (broken) chain.resize(1);
    for (const std::string& task : candidates(name)) {
      if (broken || chain.size() >= replicas_) break;
      const bool is_there = std::any_of(chain.begin(), chain.end(),
                                        [&](const Member& member) { return member.task == task; });
      const Server& server = servers_.at(task);
      if (!is_there && server.answers) chain.push_back({task, server.incarnation, home.epoch + 1});
    }
    const auto equal = [](const Member& one, const Member& other) {
      return one.task == other.task && one.incarnation == other.incarnation;
    };
    const bool changed =
        !std::equal(chain.begin(), chain.end(), home.chain.begin(), home.chain.end(), equal);
    if (changed || home.renew) {
      if (!home.chain.empty() && chain.front().task != home.chain.front().task) {
        events_.push_back(cat("lost ", home.chain.front().task, "; ", chain.front().task,
                              " serves the variables of ", name));
      }
      if (chain.size() < replicas_ && chain.size() < home.chain.size())
        events_.push_back(cat("the variables of ", name, " are on ", chain.front().task, " only"));
      ++home.epoch;
      home.chain = std::move(chain);
      home.accepted = home.renew = false;
    }
    if (home.accepted) continue;
    Command& command = commands.emplace_back();
    command.home = name;
    command.task = home.chain.front().task;
    command.view.epoch = home.epoch;
    command.since = home.chain.front().since;
    for (const Member& member : home.chain) command.view.chain.push_back(member.task);
  }
  return commands;
}

proto::SetViewRequest ReplicaPlanner::request(const Command& command) {
  proto::SetViewRequest message;
  message.home = command.home;
  message.since = command.since;
  message.view.make() = command.view;
  return message;
}

void ReplicaPlanner::accepted(const std::string& home, std::int64_t epoch) {
  Home& known = homes_.at(home);
  if (known.epoch == epoch) known.accepted = true;
}

bool ReplicaPlanner::complete() const {
  return std::all_of(homes_.begin(), homes_.end(), [&](const auto& entry) {
    const auto& [name, home] = entry;
    if (!home.accepted || home.chain.size() < replicas_) return false;
    const proto::ReplicaState* state = held(home.chain.front().task, name);
    return state && state->view->epoch == home.epoch && (state->linked || replicas_ == 1);
  });
}

std::vector<std::string> ReplicaPlanner::take_events() { return std::exchange(events_, {}); }

}  // namespace tandem::distribute
