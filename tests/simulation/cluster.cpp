#include "tests/simulation/cluster.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/client/create_parameters.h"
#include "tandem/distribute/internal/parameters/parameter_service.h"
#include "tandem/distribute/internal/task/peers.h"
#include "tandem/distribute/internal/wire/messages.h"

namespace tandem::simulation {

using distribute::Bytes;
using distribute::ParameterServer;
using distribute::ReplicaPlanner;
using distribute::Status;
using distribute::write_message;

namespace {

constexpr double kPause = 0.1, kShortPause = 0.03;
constexpr double kMeanWriting = 0.005, kLongWriting = 100;  // to the disk
constexpr double kAgain = 10;
constexpr auto kHeartbeatTimeout = std::chrono::seconds(2);
const char* const kChief = "chief";

std::vector<std::string> names(int servers) {
  std::vector<std::string> tasks;
  for (int s = 0; s < servers; ++s) tasks.push_back(distribute::task_name("ps", s));
  return tasks;
}

}  // namespace

Cluster::Cluster(Clock& clock, Network& network, Options options)
    : clock_(clock),
      network_(network),
      options_(std::move(options)),
      tasks_(names(options_.servers)),
      planner_(tasks_, options_.replicas) {
  for (const std::string& task : tasks_) restart(task);
}

Cluster::~Cluster() {
  for (const std::string& task : tasks_) kill(task);
}

std::vector<std::string> Cluster::candidates(const std::string& home) const {
  if (options_.replicas == 1) return {home};
  return planner_.candidates(home);
}

void Cluster::restart(const std::string& task) {
  if (servers_[task].process) return;
  ParameterServer::Options options;
  options.task = task;
  options.replicas = options_.replicas;
  if (options_.durable) options.folder = options_.folder + task;
  options.channel = [this, task](const std::string& other) {
    return network_.channel(task, other);
  };
  options.sizes = options_.sizes;
  options.run_later = [this](std::function<void()> work) {
    clock_.after(clock_.seconds(kMeanWriting), std::move(work));
  };
  const auto process = std::make_shared<ParameterServer>(options);
  const auto methods = std::make_shared<distribute::MethodTable>();
  process->add_to(*methods);
  servers_[task].process = process;
  ++servers_[task].life;
  unseen_.insert(task);
  network_.start(task, methods);
}

void Cluster::kill(const std::string& task) {
  Server& server = servers_[task];
  if (!server.process) return;
  server.process->close();
  network_.stop(task);
  server.process = nullptr;
}

bool Cluster::is_up(const std::string& task) const {
  const auto found = servers_.find(task);
  return found != servers_.end() && found->second.process;
}

std::string Cluster::create(const distribute::proto::CreateParametersRequest& request,
                            const distribute::Parameters& variables,
                            const std::set<std::string>& state) {
  distribute::MethodTable methods;
  servers_[request.home].process->add_to(methods);
  const auto call = [&](const char* method, Bytes bytes) {
    std::optional<Bytes> answer;
    methods.call(method, std::move(bytes), {}, [&answer](const Status& status, Bytes reply) {
      if (!status.ok()) std::rethrow_exception(status.error());
      answer = std::move(reply);
    });
    while (!answer && clock_.step(kLongWriting)) continue;
    return answer.value();
  };
  return distribute::create_parameters(call, request, variables, state,
                                       options_.sizes.max_part_bytes)
      .state_id;
}

void Cluster::watch() {
  if (options_.replicas > 1) replace_chief();
}

void Cluster::replace_chief() {
  planner_ = ReplicaPlanner(tasks_, options_.replicas);
  unknown_ = {tasks_.begin(), tasks_.end()};
  not_found_.clear();
  ++chief_;
  for (const std::string& task : tasks_) ask(chief_, task);
}

// As ServerWatch does: one question to a server at a time, and the next one soon after a failure.
void Cluster::ask(int chief, const std::string& task) {
  if (chief != chief_) return;
  network_.channel(kChief, task)
      ->call(distribute::kDescribeParameters, {}, {.timeout = kHeartbeatTimeout},
             [this, chief, task, life = servers_[task].life](const Status& status, Bytes reply) {
               if (chief != chief_) return;
               if (status.ok() && life == servers_[task].life) unseen_.erase(task);
               const bool is_certain = report(task, status, std::move(reply));
               clock_.after(is_certain ? kPause : kShortPause,
                            [this, chief, task] { ask(chief, task); });
             });
}

bool Cluster::report(const std::string& task, const Status& status, Bytes reply) {
  distribute::proto::DescribeResponse response;
  bool is_certain = true;
  if (status.ok()) {
    read_message(reply, response);
    planner_.report(task, response);
  } else if (status.code == Code::kDeadlineExceeded) {
    planner_.report_silence(task);
  } else {
    is_certain = planner_.report_failure(task);
  }
  if (!unknown_.empty()) {
    if (is_certain) unknown_.erase(task);
    if (!unknown_.empty()) return is_certain;
    const std::vector<std::string> none = planner_.take_over();
    not_found_ = {none.begin(), none.end()};
    // The chief reports that it has not found variables, and is started again.
    clock_.after(kAgain, [this, chief = chief_] {
      if (chief == chief_ && !not_found_.empty()) replace_chief();
    });
  }
  // As add_variables does, which waits for such servers.
  for (const distribute::proto::ReplicaState& state : response.state) {
    const bool serves =
        state.view->epoch == 0 || (state.active && state.view->chain.front() == task);
    const bool begins = state.home == task && !state.state_id.empty() && serves;
    if (begins && not_found_.erase(task) > 0) planner_.begin(task);
  }
  send_views();
  return is_certain;
}

void Cluster::send_views() {
  for (const ReplicaPlanner::Command& command : planner_.plan()) {
    views_[command.home] = command.view;
    network_.channel(kChief, command.task)
        ->call(distribute::kSetView, write_message(ReplicaPlanner::request(command)),
               {.timeout = kHeartbeatTimeout},
               [this, chief = chief_, command](const Status& answer, Bytes bytes) {
                 if (chief != chief_ || !answer.ok()) return;
                 distribute::proto::ReplicaResponse response;
                 read_message(bytes, response);
                 if (response.accepted && planner_.accepted(command)) send_views();
               });
  }
}

std::vector<std::string> Cluster::holders(const std::string& home) const {
  const auto found = views_.find(home);
  return found == views_.end() ? std::vector<std::string>{home} : found->second.chain;
}

}  // namespace tandem::simulation
