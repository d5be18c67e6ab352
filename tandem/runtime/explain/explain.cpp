#include "tandem/runtime/explain.h"

#include <ostream>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/resource_handle.h"
#include "tandem/device/memory_space.h"
#include "tandem/fs/file_system.h"
#include "tandem/placement/cost_model.h"
#include "tandem/placement/cost_profile.h"
#include "tandem/runtime/config/default_options.h"
#include "tandem/runtime/execute/device_fusion.h"
#include "tandem/runtime/execute/function_executor.h"
#include "tandem/runtime/execute/kernel_evaluator.h"
#include "tandem/runtime/execute/placed_function.h"
#include "tandem/runtime/optimized.h"
#include "tandem/runtime/plan_stats.h"
#include "tandem/runtime/remote_calls.h"
#include "tandem/runtime/runtime.h"

namespace tandem {
namespace {

// Those that were not made first.
std::vector<Explanation::Fusion> explained(const std::vector<Fusion>& fusions,
                                           const Explanation& explanation) {
  std::vector<Explanation::Fusion> result;
  for (const bool made : {false, true}) {
    for (const Fusion& fusion : fusions) {
      if (fusion.made != made) continue;
      const std::string& device =
          explanation.devices[static_cast<std::size_t>(fusion.device)].short_name;
      result.push_back(
          {.ops = fusion.ops,
           .node = fusion.node,
           .op = fusion.op,
           .device = fusion.device,
           .made = made,
           .reason = fusion.reason,
           .text = made ? cat(fusion.ops, ": fused into ", fusion.op, " '", fusion.node, "' on ",
                              device)
                        : cat(fusion.ops, ": not fused on ", device, ", ", fusion.reason)});
    }
  }
  return result;
}

// `body`: of `function`, simplified. `places`: for each argument the device where the caller has
// it, or -1.
Explanation explain_body(MutableFunction body, const Function& function,
                         const ExplainOptions& options, const DeviceSet& devices,
                         const std::vector<int>& places, const std::string& default_device = {}) {
  Runtime& runtime = Runtime::current();
  // Placed like in a call.
  const PlacementChoice choice = FunctionExecutor::placement_choice(function, runtime);
  PlacementOptions placement;
  if (options.placement) {
    placement = *options.placement;
  } else {
    placement.policy = choice.policy;
    placement.soft = runtime.soft_placement();
  }
  if (!default_device.empty()) placement.default_device = default_device;
  std::shared_ptr<const CostProfile> costs = options.costs ? options.costs : choice.profile;
  placement.log = false;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] >= 0) placement.fixed.emplace_back(body.args[i], places[i]);
  }
  Placement placed = place(body.graph, CostModel(devices, costs), runtime.kernels(), placement);
  std::vector<Fusion> fusions;
  KernelEvaluator evaluator(runtime);
  OptimizerOptions optimizer = default_options().optimizer();
  if (!function.may_optimize()) optimizer.disable_meta_optimizer = true;
  fuse_placed(body, placed, runtime.ops(), runtime.kernels(), evaluator, optimizer, &fusions);
  // What was just measured says more than what the placer knew.
  if (!options.costs && options.profile)
    costs = std::make_shared<const CostProfile>(options.profile->costs());
  const CostModel model(devices, std::move(costs));
  Explanation explanation =
      explain_placement(body.graph, placed, model, runtime.kernels(), function.name(), placement,
                        options.profile ? &*options.profile : nullptr, options.advice);
  explanation.fusions = explained(fusions, explanation);
  return explanation;
}

DeviceSet devices_of(const ExplainOptions& options) {
  return options.devices ? *options.devices : device_set_of(Runtime::current());
}

// Another task of a cluster that would run a call, if one would.
std::optional<RemoteTarget> task_of_call(std::span<const Tensor> args,
                                         const ExplainOptions& options) {
  if (options.devices || !RemoteCalls::active()) return std::nullopt;
  return remote_target(args, CallKind::kFunction);
}

// Where an argument is: a variable's handle gives the variable's place.
int device_of_argument(const Tensor& tensor, const DeviceSet& devices) {
  if (tensor.is_symbolic()) return -1;
  if (const RemoteValue* remote = remote_value_of(tensor)) return devices.find(remote->device());
  // Only handles are looked at: other values may lie on a device, or not even be computed.
  if (tensor.dtype() != DType::kResource) return devices.find(tensor.device());
  const Array array = tensor.array();
  if (array.on_host() && array.num_elements() == 1) {
    const ResourceHandle& handle = *array.data<ResourceHandle>();
    return handle.empty() ? -1 : devices.find(handle.info().device);
  }
  const Device* device = device_of(array);
  return device ? devices.find(device->name()) : 0;
}

// `all`: with what the function captured.
void check_arguments(const ConcreteFunction& function, const std::vector<Tensor>& all) {
  const std::vector<Node*>& params = function.function()->args();
  if (all.size() != params.size()) {
    const std::size_t captured = function.captures().size();
    throw InvalidArgumentError(cat("Function '", function.name(), "' takes ",
                                   params.size() - captured, " arguments but got ",
                                   all.size() - captured, "."));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const DType dtype = params[i]->output_dtype(0);
    const PartialShape& shape = params[i]->output_shape(0);
    if (all[i].dtype() == dtype && all[i].partial_shape().is_compatible(shape)) continue;
    throw InvalidArgumentError(cat("Function '", function.name(), "': argument ", i, " must be ",
                                   dtype, shape, " but is ", all[i].dtype(), all[i].partial_shape(),
                                   "."));
  }
}

}  // namespace

Explanation explain_function(const Function& function, const std::vector<PartialShape>& arg_shapes,
                             const ExplainOptions& options) {
  MutableFunction body = simplified(function, arg_shapes);
  std::vector<int> places;
  for (const Node* arg : body.args) {
    const DType dtype = arg->output_dtype(0);
    places.push_back(dtype == DType::kResource || is_ref(dtype) ? -1 : 0);
  }
  return explain_body(std::move(body), function, options, devices_of(options), places);
}

Explanation explain_call(const ConcreteFunction& function, std::span<const Tensor> args,
                         const ExplainOptions& options) {
  if (!function.function()) throw InvalidArgumentError("An empty function has nothing to explain.");
  std::vector<Tensor> all(args.begin(), args.end());
  all.insert(all.end(), function.captures().begin(), function.captures().end());
  std::vector<PartialShape> shapes;
  shapes.reserve(all.size());
  for (const Tensor& t : all) shapes.push_back(t.partial_shape());
  check_arguments(function, all);
  MutableFunction body = simplified(*function.function(), shapes);
  DeviceSet devices = devices_of(options);
  const std::optional<RemoteTarget> task = task_of_call(all, options);
  if (task) task->calls->add_devices(devices);
  std::vector<int> places;
  for (std::size_t i = 0; i < all.size() && i < body.args.size(); ++i) {
    places.push_back(device_of_argument(all[i], devices));
  }
  Explanation explanation = explain_body(std::move(body), *function.function(), options, devices,
                                         places, task ? task->device : std::string());
  const PlanStats plans = plan_stats(function);
  explanation.plans_made = plans.made;
  explanation.plans_shared = plans.shared;
  return explanation;
}

double Explanation::copied_bytes() const {
  double sum = 0;
  for (const Copy& copy : copies) sum += copy.bytes * copy.per_step;
  return sum;
}

double Explanation::copy_seconds() const {
  double sum = 0;
  for (const Copy& copy : copies) sum += copy.seconds * copy.per_step;
  return sum;
}

double Explanation::network_bytes() const {
  double sum = 0;
  for (const Transfer& transfer : network) sum += transfer.bytes;
  return sum;
}

double Explanation::network_seconds() const {
  double sum = 0;
  for (const Transfer& transfer : network) sum += transfer.seconds;
  return sum;
}

void Explanation::save_html(const std::string& path) const { fs::write_file(path, to_html()); }

std::ostream& operator<<(std::ostream& out, const Explanation& explanation) {
  return out << explanation.to_text();
}

}  // namespace tandem
