#include "tandem/distribute/internal/eager/task_function.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/master/cluster_devices.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/request_ids.h"
#include "tandem/graph/expand_functions.h"
#include "tandem/graph/op_registry.h"
#include "tandem/io/graph_export.h"
#include "tandem/placement/placement.h"
#include "tandem/runtime/execute/prepare.h"
#include "tandem/runtime/runtime.h"

namespace tandem::distribute {
namespace {

std::vector<proto::DeviceAttributes> devices_of_others(const EagerContext& context) {
  std::vector<proto::DeviceAttributes> others = context.devices();
  std::erase_if(others, [&](const proto::DeviceAttributes& device) {
    return task_of_device(device.name) == context.worker().task();
  });
  return others;
}

// The first device of a task, in whose host's memory its arguments are.
int host_of(const ClusterDevices& devices, std::string_view task) {
  for (std::size_t i = 0; i < devices.devices().size(); ++i) {
    if (task_of_device(devices.devices()[i].name) == task) return static_cast<int>(i);
  }
  throw InvalidArgumentError(
      cat("A function takes a value that is in ", task, ", which is no task of the cluster."));
}

// Serialized FunctionDefs of a graph of one call, and the name of the function called.
std::pair<std::string, std::string> definitions_of(const FunctionRef& function, Runtime& runtime) {
  Graph graph;
  Graph::NodeSpec call;
  call.op = &runtime.ops().get("StatefulPartitionedCall");
  call.name = "call";
  for (const Node* arg : function->args()) {
    Graph::NodeSpec placeholder;
    placeholder.op = &runtime.ops().of_kind(NodeKind::kArg);
    placeholder.name = cat("arg_", call.inputs.size());
    placeholder.attrs = AttrMap{{"T", arg->output_dtype(0)},
                                {"index", static_cast<std::int64_t>(call.inputs.size())}};
    call.inputs.push_back({graph.add(std::move(placeholder)), 0});
  }
  call.attrs = AttrMap{{"f", function}, {"Tout", function->result_dtypes()}};
  graph.add(std::move(call));
  io::ImportedGraph imported;
  imported.graph = std::make_shared<const Graph>(std::move(graph));
  imported.producer = io::kGraphDefVersion;
  const std::string bytes = io::export_graph_def(imported).bytes;
  proto::GraphParts parts;
  read_part(bytes, parts);
  std::string name;
  for (const std::string_view node_bytes : parts.node) {
    proto::FunctionNode node;
    read_part(node_bytes, node);
    for (const proto::AttrEntry& attr : node.attr) {
      if (attr.key == "f") name = attr.value->func->name;
    }
  }
  return {std::string(parts.library), std::move(name)};
}

}  // namespace

TaskFunction::TaskFunction(const Function& function, const std::vector<TaskInput>& inputs,
                           const EagerContext& context, const std::string& device) {
  Runtime& runtime = context.session()->runtime();
  const RuntimeScope scope(runtime);
  const std::shared_ptr<const Peers> peers = context.peers();
  const ClusterDevices devices(runtime, devices_of_others(context),
                               peers ? peers->addresses() : std::map<std::string, std::string>());
  MutableFunction f(function);
  passes::expand_functions(f, runtime.ops());
  passes::prune(f);
  prepare(f, runtime.ops());

  PlacementOptions options;
  options.policy = runtime.placement_policy();
  options.default_device = device.empty() ? context.worker().task() : device;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    options.fixed.emplace_back(f.args[i],
                               inputs[i].task.empty() ? 0 : host_of(devices, inputs[i].task));
  const Placement placement = place(f.graph, CostModel(devices.set()), runtime.kernels(), options);
  std::vector<int> device_of(static_cast<std::size_t>(f.graph.id_limit()), -1);
  for (const auto& node : f.graph.nodes())
    device_of[static_cast<std::size_t>(node->id())] = placement.device(*node);
  const int num_own = static_cast<int>(runtime.devices().size());
  for (Output& result : f.results) {
    if (placement.device(*result.node) < num_own) continue;
    Graph::NodeSpec spec;
    spec.op = &runtime.ops().get("Identity");
    spec.name = cat("_result_", result.node->name(), "_", result.index);
    spec.inputs = {result};
    spec.device = devices.devices().front().name;
    result = {f.graph.add(std::move(spec)), 0};
    device_of.resize(static_cast<std::size_t>(f.graph.id_limit()), -1);
    device_of[static_cast<std::size_t>(result.node->id())] = 0;
  }
  const std::string tag = new_handle() + "_";
  std::vector<GraphPart> parts =
      partition({std::move(f), devices.devices(), std::move(device_of), tag}, runtime.ops());
  for (GraphPart& part : parts) {
    if (part.name == context.worker().task()) {
      own_ = std::move(part);
      continue;
    }
    const int host = host_of(devices, part.name);
    Remote& remote = remotes_.emplace_back();
    remote.task = part.name;
    remote.device = devices.devices()[static_cast<std::size_t>(host)].name;
    remote.args = part.args;
    // No other function of the context has its name.
    const Function& made = *part.function;
    std::vector<Node*> mapped;
    Graph body = made.body().clone(&mapped);
    const auto at = [&](const Node* node) { return mapped[static_cast<std::size_t>(node->id())]; };
    std::vector<Node*> args, effects;
    std::vector<Output> results;
    for (const Node* arg : made.args()) args.push_back(at(arg));
    for (const Output& result : made.results()) results.push_back({at(result.node), result.index});
    for (const Node* effect : made.control_results()) effects.push_back(at(effect));
    std::tie(remote.definition, remote.name) = definitions_of(
        std::make_shared<const Function>(cat("tandem_part_", tag, remotes_.size()), std::move(body),
                                         std::move(args), std::move(results), std::move(effects)),
        runtime);
  }
}

std::shared_ptr<const TaskFunction> TaskFunctions::get(
    const std::shared_ptr<const EagerProgram>& program, const std::vector<TaskInput>& inputs,
    const EagerContext& context, const std::string& device) {
  std::string key = cat(reinterpret_cast<std::uintptr_t>(program.get()), '\n', device);
  for (const TaskInput& input : inputs) key += cat('\n', input.task);
  {
    const MutexLock lock(mutex_);
    if (const auto found = functions_.find(key); found != functions_.end())
      return found->second.function;
  }
  auto made = std::make_shared<const TaskFunction>(*program->function, inputs, context, device);
  const MutexLock lock(mutex_);
  if (functions_.size() >= kMaxFunctions) functions_.clear();
  return functions_.emplace(key, Entry{program, std::move(made)}).first->second.function;
}

bool TaskFunctions::is_registered(const TaskFunction::Remote& remote) const {
  const MutexLock lock(mutex_);
  return registered_.contains(cat(remote.task, '\n', remote.name));
}

void TaskFunctions::set_registered(const TaskFunction::Remote& remote) {
  const MutexLock lock(mutex_);
  registered_.insert(cat(remote.task, '\n', remote.name));
}

void TaskFunctions::clear() {
  const MutexLock lock(mutex_);
  functions_.clear();
  registered_.clear();
}

}  // namespace tandem::distribute
