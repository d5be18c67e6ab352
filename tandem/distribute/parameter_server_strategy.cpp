#include "tandem/distribute/parameter_server_strategy.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/client/blocking_call.h"
#include "tandem/distribute/internal/client/create_parameters.h"
#include "tandem/distribute/internal/client/parameter_client.h"
#include "tandem/distribute/internal/client/parameter_pull.h"
#include "tandem/distribute/internal/client/server_watch.h"
#include "tandem/distribute/internal/parameters/closure_graph.h"
#include "tandem/distribute/internal/parameters/coordinator.h"
#include "tandem/distribute/internal/parameters/parameter_service.h"
#include "tandem/distribute/internal/parameters/sharding.h"
#include "tandem/distribute/internal/rpc/task_network.h"
#include "tandem/distribute/internal/task/member_watch.h"
#include "tandem/distribute/internal/task/peers.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/request_ids.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/distribute/proto/parameters.h"

namespace tandem::distribute {

class ParameterServerStrategy::Function {
 public:
  std::shared_ptr<const std::string> request;  // for RegisterClosure
  std::vector<DType> dtypes;
};

class ParameterServerStrategy::Closure {
 public:
  std::shared_ptr<Coordinator::Closure> closure;
};

namespace {

void check(const ParameterServerStrategy::Options& options) {
  const auto at_least = [](const char* name, auto value, auto least) {
    if (value >= least) return;
    throw InvalidArgumentError(cat("ParameterServerStrategy: ", name, " must be at least ", least,
                                   ", but is ", value, "."));
  };
  at_least("replicas", options.replicas, 1);
  at_least("replicas_to_aggregate", options.replicas_to_aggregate, 0);
  at_least("max_staleness", options.max_staleness, std::int64_t{0});
  at_least("heartbeat_timeout (ms)", options.heartbeat_timeout.count(), std::int64_t{1});
  const Partitioner& partitioner = options.partitioner;
  if (partitioner.kind != Partitioner::kWhole)
    at_least("the partitioner's number", partitioner.value, std::int64_t{1});
  const std::int64_t least_shards = partitioner.kind == Partitioner::kMinSize ? 1 : 0;
  at_least("the partitioner's max_shards", partitioner.max_shards, least_shards);
  if (options.worker_job == options.server_job) {
    throw InvalidArgumentError(cat("ParameterServerStrategy: workers and servers are both job '",
                                   options.worker_job, "'; they are different tasks."));
  }
  const ServerOptimizer& optimizer = options.optimizer;
  for (const auto& [name, value] :
       {std::pair("learning_rate", optimizer.learning_rate),
        std::pair("momentum", optimizer.momentum), std::pair("beta_1", optimizer.beta_1),
        std::pair("beta_2", optimizer.beta_2), std::pair("epsilon", optimizer.epsilon)}) {
    if (std::isfinite(value) && value >= 0) continue;
    throw InvalidArgumentError(cat("ParameterServerStrategy: ", name,
                                   " of the optimizer must be a number from 0 on, but is ", value,
                                   "."));
  }
}

}  // namespace

struct ParameterServerStrategy::Impl {
  explicit Impl(Options given)
      : options((check(given), std::move(given))),
        network(std::make_unique<TaskNetwork>(TlsFiles{
            options.security.certificate, options.security.key, options.security.authority})),
        peers(options.cluster, *network) {
    Coordinator::Options workers;
    const auto& jobs = options.cluster.jobs();
    const auto of_job = [&](const std::string& job) {
      const auto found = jobs.find(job);
      if (found == jobs.end() || found->second.empty())
        throw InvalidArgumentError(cat("The cluster has no tasks of job '", job, "'."));
      return found->second;
    };
    for (const auto& [task, address] : of_job(options.worker_job)) {
      const std::string name = task_name(options.worker_job, task);
      workers.workers.emplace_back(name, peers.channel(name));
    }
    for (const auto& [task, address] : of_job(options.server_job)) {
      const std::string name = task_name(options.server_job, task);
      servers.push_back({name, peers.channel(name), {}, {}});
    }
    workers.replicas_to_aggregate = options.replicas_to_aggregate;
    workers.has_backups = options.drop_stale;
    workers.heartbeat_timeout = options.heartbeat_timeout;
    workers.on_event = options.on_event;
    coordinator.emplace(std::move(workers));
    members.emplace(options.members, [this](const ClusterSpec& now) { learn(now); });
  }
  ~Impl() {
    members->stop();
    coordinator->stop();
    if (watch) watch->stop();
    network.reset();  // ends calls that still refer to the coordinator and the watch
  }

  struct ServerTask {
    std::string task;
    std::shared_ptr<Channel> channel;
    std::shared_ptr<ParameterClient> variables;  // to the task that serves them
    std::string state_id;
  };

  // Tasks that are new, or have moved.
  void learn(const ClusterSpec& now) {
    if (!peers.update(now)) return;
    const auto found = now.jobs().find(options.worker_job);
    if (found == now.jobs().end()) return;
    for (const auto& [task, address] : found->second) {
      const std::string name = task_name(options.worker_job, task);
      coordinator->add_worker(name, peers.channel(name));
    }
  }

  static Bytes call(const ServerTask& server, const char* method, Bytes request) {
    std::promise<std::pair<Status, Bytes>> answer;
    server.variables->call(method, std::move(request), nullptr,
                           [&answer](Status status, Bytes reply) {
                             answer.set_value({std::move(status), std::move(reply)});
                           });
    auto [status, reply] = answer.get_future().get();
    if (!status.ok()) std::rethrow_exception(status.error());
    return std::move(reply);
  }

  static PulledParameters pull(const ServerTask& server, Bytes request) {
    std::promise<std::pair<Status, PulledParameters>> answer;
    pull_parameters(server.variables, std::move(request), nullptr,
                    [&answer](Status status, PulledParameters pulled) {
                      answer.set_value({std::move(status), std::move(pulled)});
                    });
    auto [status, pulled] = answer.get_future().get();
    if (!status.ok()) std::rethrow_exception(status.error());
    return std::move(pulled);
  }

  // What the strategy asks for, or the servers where that is more. Waits for the servers.
  int num_replicas() const {
    struct Answers {
      Mutex mutex;
      std::condition_variable changed;
      std::size_t open TANDEM_GUARDED_BY(mutex);
      int replicas TANDEM_GUARDED_BY(mutex);
      Status error TANDEM_GUARDED_BY(mutex);
    };
    const auto answers = std::make_shared<Answers>();
    {
      const MutexLock lock(answers->mutex);
      answers->open = servers.size();
      answers->replicas = std::max(options.replicas, 1);
    }
    for (const ServerTask& server : servers) {
      server.channel->call(kDescribeParameters, {},
                           {.timeout = ParameterClient::kPatience, .wait_for_ready = true},
                           [answers, task = server.task](Status status, Bytes reply) {
                             proto::DescribeResponse response;
                             try {
                               if (status.ok()) read_message(reply, response);
                             } catch (...) {
                               status = Status::of(std::current_exception());
                             }
                             const MutexLock lock(answers->mutex);
                             --answers->open;
                             answers->replicas = std::max(answers->replicas, response.replicas);
                             if (!status.ok()) {
                               answers->error = status;
                               answers->error.message = cat(task, ": ", status.message);
                             }
                             answers->changed.notify_all();
                           });
    }
    const auto until = std::chrono::steady_clock::now() + options.heartbeat_timeout;
    MutexLock lock(answers->mutex);
    for (;;) {
      // With replicas the others may be enough.
      const bool is_late = std::chrono::steady_clock::now() >= until;
      if (answers->open == 0 || (answers->replicas > 1 && is_late)) break;
      lock.wait_until(answers->changed,
                      is_late ? std::chrono::steady_clock::now() + std::chrono::seconds(1) : until);
    }
    if (answers->replicas == 1 && !answers->error.ok())
      std::rethrow_exception(answers->error.error());
    return std::min(answers->replicas, static_cast<int>(servers.size()));
  }

  // Where each home's variables are, or will be: the homes that have none yet are returned.
  std::set<std::string> find_variables() {
    const int replicas = num_replicas();
    std::vector<std::string> tasks;
    for (const ServerTask& server : servers) tasks.push_back(server.task);
    for (std::size_t s = 0; s < servers.size(); ++s) {
      std::vector<ParameterClient::Replica> known;
      for (std::size_t r = 0; r < (replicas > 1 ? servers.size() : 1); ++r) {
        const ServerTask& replica = servers[(s + r) % servers.size()];
        known.push_back({replica.task, replica.channel.get()});
      }
      servers[s].variables = std::make_shared<ParameterClient>(std::move(known));
    }
    if (replicas == 1) return {};
    ServerWatch::Options watching;
    for (const ServerTask& server : servers)
      watching.servers.emplace_back(server.task, server.channel);
    watching.replicas = replicas;
    watching.heartbeat_timeout = options.heartbeat_timeout;
    watching.on_event = options.on_event;
    watch.emplace(std::move(watching));
    const std::vector<std::string> none = watch->take_over();
    return {none.begin(), none.end()};
  }

  std::shared_ptr<const Function> make(const Body& body, const std::vector<Tensor>& examples,
                                       bool trains) {
    if (!body)
      throw InvalidArgumentError("The step of a ParameterServerStrategy is an empty function.");
    for (std::size_t i = 0; i < examples.size(); ++i) {
      if (!examples[i].defined()) {
        throw InvalidArgumentError(
            cat("Example ", i, " of the step's inputs is an undefined tensor."));
      }
    }
    if (trains && variables.empty())
      throw FailedPreconditionError("add_variables comes before the first train_function.");
    const ClosureGraph graph =
        make_closure_graph(body, examples, variables, trains ? num_trainable : 0, trains);
    proto::RegisterClosureRequest request;
    request.graph_def = graph.graph_def;
    request.coordinator = chief;
    request.drop_stale = options.drop_stale;
    request.input = graph.inputs;
    request.output = graph.outputs;
    for (const ServerTask& server : servers) {
      proto::ClosureServer& known = request.server.emplace_back();
      known.task = server.task;
      known.state_id = server.state_id;
      if (!server.variables) continue;  // there are none
      for (const auto& replica : server.variables->replicas())
        known.replica.push_back(replica.task);
    }
    for (std::size_t v = 0; v < variables.size(); ++v) {
      if (graph.parameters[v].empty()) continue;
      proto::ClosureParameter& parameter = request.parameter.emplace_back();
      parameter.feed = graph.parameters[v];
      parameter.gradient = graph.gradients[v];
      parameter.index = graph.indices[v];
      parameter.change = graph.changes[v].tensor;
      parameter.change_adds = graph.changes[v].adds;
      for (const Shard& shard : shards[v]) {
        proto::ParameterShard& part = parameter.shard.emplace_back();
        part.name = shard.name;
        part.server = shard.server;
        part.begin = shard.begin;
        part.end = shard.end;
      }
    }
    // Only servers that hold something of it are asked.
    std::set<int> used;
    for (const proto::ClosureParameter& parameter : request.parameter) {
      for (const proto::ParameterShard& shard : parameter.shard) used.insert(shard.server);
    }
    std::vector<proto::ClosureServer> kept;
    std::vector<int> position(servers.size(), 0);
    for (const int s : used) {
      position[static_cast<std::size_t>(s)] = static_cast<int>(kept.size());
      kept.push_back(request.server[static_cast<std::size_t>(s)]);
    }
    request.server = std::move(kept);
    for (proto::ClosureParameter& parameter : request.parameter) {
      for (proto::ParameterShard& shard : parameter.shard)
        shard.server = position[static_cast<std::size_t>(shard.server)];
    }
    auto function = std::make_shared<Function>();
    function->request = std::make_shared<const std::string>(io::proto::WireWriter::write(request));
    for (const Tensor& example : examples) function->dtypes.push_back(example.dtype());
    return function;
  }

  void flush() {
    if (options.replicas_to_aggregate == 0) return;
    proto::FlushRequest request;
    request.coordinator = chief;
    request.below = coordinator->next_number();
    request.unfinished = coordinator->unfinished();
    for (const ServerTask& server : servers) {
      if (server.state_id.empty()) continue;
      request.state_id = server.state_id;
      request.home = server.task;
      call(server, kFlushGradients, write_message(request));
    }
  }

  const Options options;
  const std::string chief = new_handle();  // its name as a coordinator
  std::unique_ptr<TaskNetwork> network;
  Peers peers;
  std::vector<ServerTask> servers;
  std::vector<Variable> variables;  // the trainable ones first
  std::size_t num_trainable = 0;
  std::vector<std::vector<Shard>> shards;  // by variable
  std::int64_t num_updates = 0;
  std::optional<Coordinator> coordinator;
  std::optional<ServerWatch> watch;  // of replicas
  std::optional<MemberWatch> members;
};

ParameterServerStrategy::ParameterServerStrategy(Options options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
ParameterServerStrategy::~ParameterServerStrategy() = default;

void ParameterServerStrategy::add_variables(const std::vector<Variable>& trainable,
                                            const std::vector<Variable>& state) {
  std::vector<Variable> variables = trainable;
  variables.insert(variables.end(), state.begin(), state.end());
  if (!impl_->variables.empty())
    throw FailedPreconditionError("The strategy has its variables already.");
  std::vector<ShardedVariable> sharded;
  std::vector<Array> values;
  std::set<std::string> names;
  for (const Variable& variable : variables) {
    Array value = variable.read_value().array();
    const std::int64_t rows = value.rank() == 0 ? 1 : std::max<std::int64_t>(value.dim(0), 1);
    std::string name = variable.name();
    for (int i = 1; !names.insert(name).second; ++i) name = cat(variable.name(), "_", i);
    sharded.push_back({name, rows, static_cast<std::int64_t>(value.num_bytes())});
    values.push_back(std::move(value));
  }
  const auto shards = shard_variables(sharded, static_cast<int>(impl_->servers.size()),
                                      impl_->options.partitioner, impl_->options.placement);
  const ServerOptimizer& optimizer = impl_->options.optimizer;
  const std::set<std::string> without = impl_->find_variables();
  for (std::size_t s = 0; s < impl_->servers.size(); ++s) {
    proto::CreateParametersRequest message;
    proto::OptimizerSpec& spec = message.optimizer.make();
    spec.name = optimizer.name;
    spec.learning_rate = optimizer.learning_rate;
    spec.momentum = optimizer.momentum;
    spec.beta_1 = optimizer.beta_1;
    spec.beta_2 = optimizer.beta_2;
    spec.epsilon = optimizer.epsilon;
    message.replicas_to_aggregate = impl_->options.replicas_to_aggregate;
    message.max_staleness = impl_->options.max_staleness;
    message.home = impl_->servers[s].task;
    message.replicas_have_it = impl_->watch && !without.contains(message.home);
    Parameters parameters;
    std::set<std::string> names_of_state;
    std::size_t size = 0;
    for (std::size_t v = 0; v < shards.size(); ++v) {
      for (const Shard& shard : shards[v]) {
        if (shard.server != static_cast<int>(s)) continue;
        Array& value = parameters[shard.name].value;
        value = shards[v].size() == 1 ? values[v] : values[v].slice_outer(shard.begin, shard.end);
        size += value.num_bytes();
        if (v >= trainable.size()) names_of_state.insert(shard.name);
      }
    }
    const Impl::ServerTask& server = impl_->servers[s];
    // A server that is to keep them in a folder writes all of them before it answers.
    constexpr std::size_t kMinBytesPerSecond = std::size_t{16} << 20;
    const auto timeout =
        ParameterClient::kPatience + std::chrono::seconds(size / kMinBytesPerSecond);
    const auto call = [&](const char* method, Bytes request) {
      return without.contains(server.task)
                 ? blocking_call(*server.channel, method, std::move(request),
                                 {.timeout = timeout, .wait_for_ready = true})
                 : impl_->call(server, method, std::move(request));
    };
    const proto::CreateParametersResponse response =
        create_parameters(call, message, parameters, names_of_state);
    if (without.contains(server.task)) impl_->watch->begin(server.task);
    impl_->servers[s].state_id = response.state_id;
    impl_->num_updates = std::max(impl_->num_updates, response.num_updates);
  }
  if (!wait_until_replicated(impl_->options.heartbeat_timeout) && impl_->options.on_event)
    impl_->options.on_event("not all variables have as many replicas as they should");
  impl_->variables = std::move(variables);
  impl_->num_trainable = trainable.size();
  impl_->shards = shards;
}

bool ParameterServerStrategy::wait_until_replicated(std::chrono::milliseconds patience) const {
  return !impl_->watch || impl_->watch->wait_until_complete(patience);
}

const ParameterServerStrategy::Options& ParameterServerStrategy::options() const {
  return impl_->options;
}

bool ParameterServerStrategy::has_variables() const { return !impl_->variables.empty(); }

std::int64_t ParameterServerStrategy::num_updates() const { return impl_->num_updates; }

void ParameterServerStrategy::read_variables() {
  std::map<std::string, Array> values;
  for (std::size_t s = 0; s < impl_->servers.size(); ++s) {
    proto::PullRequest request;
    request.state_id = impl_->servers[s].state_id;
    request.home = impl_->servers[s].task;
    for (const auto& shards : impl_->shards) {
      for (const Shard& shard : shards) {
        if (shard.server == static_cast<int>(s)) request.name.push_back(shard.name);
      }
    }
    PulledParameters pulled = impl_->pull(impl_->servers[s], write_message(request));
    impl_->num_updates = std::max(impl_->num_updates, pulled.version);
    values.merge(pulled.values);
  }
  for (std::size_t v = 0; v < impl_->variables.size(); ++v) {
    const std::vector<Shard>& shards = impl_->shards[v];
    Array value = std::exchange(values.at(shards.front().name), {});
    if (shards.size() > 1) {
      Array whole(value.dtype(), impl_->variables[v].read_value().shape());
      auto* to = static_cast<char*>(whole.raw_data());
      for (const Shard& shard : shards) {
        const Array part =
            &shard == &shards.front() ? value : std::exchange(values.at(shard.name), {});
        std::memcpy(to, part.raw_data(), part.num_bytes());
        to += part.num_bytes();
      }
      value = std::move(whole);
    }
    impl_->variables[v].assign(Tensor(value.writable_in_place() ? value : value.clone()));
  }
}

std::shared_ptr<const ParameterServerStrategy::Function> ParameterServerStrategy::train_function(
    const Body& body, const std::vector<Tensor>& examples) {
  return impl_->make(body, examples, true);
}

std::shared_ptr<const ParameterServerStrategy::Function> ParameterServerStrategy::function(
    const Body& body, const std::vector<Tensor>& examples) {
  return impl_->make(body, examples, false);
}

ParameterServerStrategy::RemoteValue ParameterServerStrategy::schedule(
    const std::shared_ptr<const Function>& function, std::vector<Tensor> inputs) {
  if (!function) {
    throw InvalidArgumentError(
        "schedule was given no function: make one with train_function or function.");
  }
  if (inputs.size() != function->dtypes.size()) {
    throw InvalidArgumentError(
        cat("The function takes ", function->dtypes.size(), " inputs, not ", inputs.size(), "."));
  }
  std::vector<Array> arrays;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined())
      throw InvalidArgumentError(cat("Input ", i, " of the function is an undefined tensor."));
    if (inputs[i].dtype() != function->dtypes[i]) {
      throw InvalidArgumentError(cat("Input ", i, " of the function is ", function->dtypes[i],
                                     ", not ", inputs[i].dtype(), "."));
    }
    arrays.push_back(inputs[i].array());
  }
  auto value = std::make_shared<Closure>();
  value->closure = impl_->coordinator->schedule(function->request, std::move(arrays));
  return value;
}

void ParameterServerStrategy::join() {
  // A server that is started again meanwhile does not know that nothing more will come.
  do {
    impl_->flush();
  } while (!impl_->coordinator->join_for(std::chrono::milliseconds(500)));
}

bool ParameterServerStrategy::done() const { return impl_->coordinator->done(); }

std::vector<Tensor> ParameterServerStrategy::fetch(const RemoteValue& value) {
  if (!value) throw InvalidArgumentError("fetch was given nothing that was scheduled.");
  std::vector<Tensor> results;
  for (const Array& result : impl_->coordinator->fetch(value->closure))
    results.push_back(Tensor(result));
  return results;
}

}  // namespace tandem::distribute
