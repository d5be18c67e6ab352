#include "tandem/distribute/parameter_server_strategy.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/client/blocking_call.h"
#include "tandem/distribute/internal/parameters/closure_graph.h"
#include "tandem/distribute/internal/parameters/coordinator.h"
#include "tandem/distribute/internal/parameters/parameter_service.h"
#include "tandem/distribute/internal/parameters/sharding.h"
#include "tandem/distribute/internal/rpc/grpc/grpc_network.h"
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

struct ParameterServerStrategy::Impl {
  explicit Impl(Options given)
      : options(std::move(given)),
        network(std::make_unique<GrpcNetwork>(TlsFiles{
            options.security.certificate, options.security.key, options.security.authority})) {
    Coordinator::Options workers;
    const auto& jobs = options.cluster.jobs();
    const auto of_job = [&](const std::string& job) {
      const auto found = jobs.find(job);
      if (found == jobs.end() || found->second.empty())
        throw InvalidArgumentError(cat("The cluster has no tasks of job '", job, "'."));
      return found->second;
    };
    for (const auto& [task, address] : of_job(options.worker_job)) {
      workers.workers.emplace_back(task_name(options.worker_job, task), network->channel(address));
    }
    for (const auto& [task, address] : of_job(options.server_job)) {
      servers.push_back({task_name(options.server_job, task), network->channel(address), {}});
    }
    workers.replicas_to_aggregate = options.replicas_to_aggregate;
    workers.heartbeat_timeout = options.heartbeat_timeout;
    workers.on_event = options.on_event;
    coordinator.emplace(std::move(workers));
  }
  ~Impl() {
    coordinator->stop();
    network.reset();  // ends calls that still refer to the coordinator
  }

  struct ServerTask {
    std::string task;
    std::shared_ptr<Channel> channel;
    std::string state_id;
  };

  Bytes call(const ServerTask& server, const char* method, Bytes request) const {
    try {
      return blocking_call(*server.channel, method, std::move(request),
                           {.timeout = std::chrono::seconds(60), .wait_for_ready = true});
    } catch (const Error& error) {
      throw_error(error.code(), cat(server.task, ": ", error.what()));
    }
  }

  std::shared_ptr<const Function> make(const Body& body, const std::vector<Tensor>& examples,
                                       bool trains) {
    if (trains && variables.empty())
      throw FailedPreconditionError("add_variables comes before the first train_function.");
    const ClosureGraph graph = make_closure_graph(body, examples, variables, trains);
    proto::RegisterClosureRequest request;
    request.graph_def = graph.graph_def;
    request.coordinator = name;
    request.input = graph.inputs;
    request.output = graph.outputs;
    for (const ServerTask& server : servers) {
      proto::ClosureServer& known = request.server.emplace_back();
      known.task = server.task;
      known.state_id = server.state_id;
    }
    for (std::size_t v = 0; v < variables.size(); ++v) {
      if (graph.parameters[v].empty()) continue;
      proto::ClosureParameter& parameter = request.parameter.emplace_back();
      parameter.feed = graph.parameters[v];
      parameter.gradient = graph.gradients[v];
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
    request.coordinator = name;
    request.below = coordinator->next_number();
    for (const ServerTask& server : servers) {
      if (server.state_id.empty()) continue;
      request.state_id = server.state_id;
      call(server, kFlushGradients, write_message(request));
    }
  }

  const Options options;
  const std::string name = new_handle();  // of this chief
  std::unique_ptr<GrpcNetwork> network;
  std::vector<ServerTask> servers;
  std::vector<Variable> variables;
  std::vector<std::vector<Shard>> shards;  // by variable
  std::int64_t num_updates = 0;
  std::optional<Coordinator> coordinator;
};

ParameterServerStrategy::ParameterServerStrategy(Options options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
ParameterServerStrategy::~ParameterServerStrategy() = default;

void ParameterServerStrategy::add_variables(const std::vector<Variable>& variables) {
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
    Bytes request = write_message(message);
    for (std::size_t v = 0; v < shards.size(); ++v) {
      for (const Shard& shard : shards[v]) {
        if (shard.server != static_cast<int>(s)) continue;
        append_named_tensor_field(
            request, 1, shard.name,
            shards[v].size() == 1 ? values[v] : values[v].slice_outer(shard.begin, shard.end));
      }
    }
    Bytes reply = impl_->call(impl_->servers[s], kCreateParameters, std::move(request));
    proto::CreateParametersResponse response;
    read_message(reply, response);
    impl_->servers[s].state_id = response.state_id;
    impl_->num_updates = std::max(impl_->num_updates, response.num_updates);
  }
  impl_->variables = variables;
  impl_->shards = shards;
}

std::int64_t ParameterServerStrategy::num_updates() const { return impl_->num_updates; }

void ParameterServerStrategy::read_variables() {
  std::map<std::string, Array> values;
  for (std::size_t s = 0; s < impl_->servers.size(); ++s) {
    proto::PullRequest request;
    request.state_id = impl_->servers[s].state_id;
    for (const auto& shards : impl_->shards) {
      for (const Shard& shard : shards) {
        if (shard.server == static_cast<int>(s)) request.name.push_back(shard.name);
      }
    }
    Bytes reply = impl_->call(impl_->servers[s], kPullParameters, write_message(request));
    proto::PullResponse response;
    read_message(reply, response);
    impl_->num_updates = std::max(impl_->num_updates, response.version);
    for (const proto::NamedValue& value : response.parameter)
      values[value.name] = read_tensor(value.value, reply.owner());
  }
  for (std::size_t v = 0; v < impl_->variables.size(); ++v) {
    const std::vector<Shard>& shards = impl_->shards[v];
    Array value = values.at(shards.front().name);
    if (shards.size() > 1) {
      Array whole(value.dtype(), impl_->variables[v].read_value().shape());
      auto* to = static_cast<char*>(whole.raw_data());
      for (const Shard& shard : shards) {
        const Array& part = values.at(shard.name);
        std::memcpy(to, part.raw_data(), part.num_bytes());
        to += part.num_bytes();
      }
      value = std::move(whole);
    }
    impl_->variables[v].assign(Tensor(value.clone()));
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
  if (inputs.size() != function->dtypes.size()) {
    throw InvalidArgumentError(
        cat("The function takes ", function->dtypes.size(), " inputs, not ", inputs.size(), "."));
  }
  std::vector<Array> arrays;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
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
  std::vector<Tensor> results;
  for (const Array& result : impl_->coordinator->fetch(value->closure))
    results.push_back(Tensor(result));
  return results;
}

}  // namespace tandem::distribute
