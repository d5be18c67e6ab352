#include "tandem/runtime/execute/placed_function.h"

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/device.h"
#include "tandem/graph/op_registry.h"
#include "tandem/placement/cost_profile.h"
#include "tandem/placement/unsatisfiable_request.h"
#include "tandem/runtime/eager/eager_choice.h"
#include "tandem/runtime/eager/soft_placement.h"
#include "tandem/runtime/execute/device_fusion.h"
#include "tandem/runtime/execute/kernel_evaluator.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/trace/called_functions.h"

namespace tandem {
namespace {

// Puts copies where a value is wanted in another memory than the one that it lies in.
class Cut {
 public:
  Cut(PlacedFunction& placed, const OpRegistry& ops)
      : placed_(placed),
        to_host_(ops.of_kind(NodeKind::kCopyToHost)),
        to_device_(ops.of_kind(NodeKind::kCopyToDevice)) {}

  void operator()() {
    std::vector<Node*> nodes;
    for (const auto& node : placed_.function.graph.nodes()) nodes.push_back(node.get());
    for (Node* node : nodes) {
      for (int i = 0; i < static_cast<int>(node->inputs().size()); ++i) {
        const Output value = node->inputs()[static_cast<std::size_t>(i)];
        const int to = placed_.placement.input_memory(*node, i);
        if (placed_.placement.output_memory(*value.node, value.index) == to) continue;
        const DType dtype = value.node->output_dtype(value.index);
        if (is_object(dtype) || is_ref(dtype)) continue;
        placed_.function.graph.set_input(node, i, {arrival(value, to), 0});
      }
    }
  }

 private:
  Node* arrival(Output value, int to) {
    Node*& there = arrivals_[{value.node->id(), value.index, to}];
    // A constant is made where it is read, but for one whose values are on the host wherever it is.
    const bool twin =
        value.node->kind() == NodeKind::kConst && !output_on_host(*value.node, value.index);
    if (!there) there = twin ? constant(value, to) : copy(value, to);
    return there;
  }

  Node* constant(Output value, int to) {
    return add({.op = &value.node->op(),
                .name = value.node->name(),
                .inputs = {},
                .attrs = value.node->attrs(),
                .control_inputs = {value.node->control_inputs()},
                .device = {},
                .where = {}},
               to, cat("a constant that ", name(to), " needs"));
  }

  Node* copy(Output value, int to) {
    const int from = placed_.placement.output_memory(*value.node, value.index);
    return add({.op = to == 0 ? &to_host_ : &to_device_,
                .name = cat(value.node->name(), "/to_", short_name(to)),
                .inputs = {value},
                .attrs = {},
                .control_inputs = {},
                .device = {},
                .where = {}},
               to == 0 ? from : to, cat("copy from ", name(from), " to ", name(to)));
  }

  Node* add(Graph::NodeSpec spec, int device, std::string reason) {
    Node* node = placed_.function.graph.add(std::move(spec));
    auto& nodes = placed_.placement.nodes;
    nodes.resize(static_cast<std::size_t>(placed_.function.graph.id_limit()));
    NodePlacement& p = nodes[static_cast<std::size_t>(node->id())];
    p.device = device;
    p.by = PlacedBy::kNear;
    p.reason = std::move(reason);
    return node;
  }

  std::string name(int device) const {
    return placed_.placement.devices.devices[static_cast<std::size_t>(device)].name();
  }
  std::string short_name(int device) const {
    const DeviceSpec& spec =
        placed_.placement.devices.devices[static_cast<std::size_t>(device)].spec;
    return cat(*spec.type, "_", *spec.index);
  }

  PlacedFunction& placed_;
  const OpDef& to_host_;
  const OpDef& to_device_;
  std::map<std::tuple<int, int, int>, Node*> arrivals_;
};

}  // namespace

DeviceSet device_set_of(const Runtime& runtime) {
  DeviceSet set = DeviceSet::of(runtime.devices());
  std::map<std::string, int> numbers;
  for (std::size_t d = 0; d < set.devices.size(); ++d) {
    const std::string& physical = runtime.physical_device(*runtime.devices()[d]).name;
    set.devices[d].physical = numbers.emplace(physical, static_cast<int>(d)).first->second;
  }
  return set;
}

PlacementChoice PlacementChoice::of(const Runtime& runtime) {
  PlacementChoice choice{.policy = runtime.placement_policy(), .profile = nullptr};
  if (const std::string path = runtime.placement_profile(); !path.empty()) {
    try {
      choice.profile = std::make_shared<const CostProfile>(CostProfile::load(path));
    } catch (...) {
      std::rethrow_exception(
          with_line(std::current_exception(),
                    "in reading the placement profile, which is in force "
                    "(td::config::set_placement_profile or TANDEM_PLACEMENT_PROFILE)"));
    }
  }
  return choice;
}

Placement place_nodes(Runtime& runtime, const MutableFunction& function, const ArgPlaces& args,
                      int default_device, const PlacementChoice& choice) {
  PlacementOptions options;
  options.policy = choice.policy;
  options.soft = runtime.soft_placement();
  options.log = runtime.log_placement();
  const DeviceSet devices = device_set_of(runtime);
  if (default_device >= 0)
    options.default_device = devices.devices[static_cast<std::size_t>(default_device)].name();
  for (std::size_t i = 0; i < args.size(); ++i) {
    options.fixed.emplace_back(function.args[i], args[i]);
  }
  Placement placement =
      place(function.graph, CostModel(devices, choice.profile), runtime.kernels(), options);
  report_soft_placement(runtime, soft_placement_line(function.graph, placement));
  return placement;
}

PlacedFunction place_function(Runtime& runtime, MutableFunction function, const ArgPlaces& args,
                              int default_device, const PlacementChoice& choice,
                              const OptimizerOptions& options) {
  PlacedFunction placed{std::move(function), {}};
  placed.placement = place_nodes(runtime, placed.function, args, default_device, choice);
  KernelEvaluator evaluator(runtime);
  fuse_placed(placed.function, placed.placement, runtime.ops(), runtime.kernels(), evaluator,
              options);
  Cut(placed, runtime.ops())();
  return placed;
}

namespace {

// What a call needs: the rest is pruned, whatever it asks for.
std::vector<const Node*> needed(const std::vector<Output>& results,
                                const std::vector<Node*>& effects) {
  std::vector<const Node*> nodes;
  std::set<const Node*> seen;
  const auto need = [&](const Node* node) {
    if (node && seen.insert(node).second) nodes.push_back(node);
  };
  for (const Output& result : results) need(result.node);
  for (const Node* effect : effects) need(effect);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = *nodes[i];
    for (const Output& in : node.inputs()) need(in.node);
    for (const Node* before : node.control_inputs()) need(before);
  }
  return nodes;
}

DeviceSpec request_of(const Node& node) {
  try {
    return DeviceSpec::parse(node.requested_device());
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(cat("Malformed device specification '", node.requested_device(),
                                   "' in node: ", node.describe(), ". ", error.what()));
  }
}

// The placer's text for such a node, which may not be there any more when it is asked.
[[noreturn]] void refuse_request(const Runtime& runtime, const Node& node) {
  std::string available, able;
  bool any_gpu = false;
  for (const auto& device : runtime.devices()) {
    available += cat(available.empty() ? "" : ", ", device->name());
    any_gpu = any_gpu || device->type() == "GPU";
    if (runtime.kernels().find(node.op(), device->kernel_class(), node.attrs()))
      able += cat(able.empty() ? "" : ", ", device->name());
  }
  throw InvalidArgumentError(cat("Cannot assign a device for operation ", node.name(), ": ",
                                 placement::unsatisfiable_request(node, available, any_gpu),
                                 "\n\t [[", node.name(), "]]\nDevices with a kernel: [", able,
                                 "]."));
}

}  // namespace

void check_requests(Runtime& runtime, const MutableFunction& function) {
  const auto& devices = runtime.devices();
  const std::string* met = nullptr;  // the last one that was: nodes ask alike
  struct Unmet {
    const Node* first;
    int others;
  };
  std::map<std::string, Unmet> unmet;
  const auto check = [&](const Node& node) {
    const std::string& request = node.requested_device();
    if (request.empty() || (met && request == *met)) return;
    const DeviceSpec spec = request_of(node);
    if (std::any_of(devices.begin(), devices.end(),
                    [&](const auto& device) { return spec.matches(device->spec()); })) {
      met = &request;
      return;
    }
    if (!runtime.soft_placement() || names_other_task(runtime, spec)) refuse_request(runtime, node);
    // With several devices the placer says where it goes.
    if (devices.size() > 1) return;
    const auto [at, is_first] = unmet.try_emplace(request, Unmet{&node, 0});
    if (!is_first) ++at->second.others;
  };
  for (const Node* node : needed(function.results, function.control_results)) check(*node);
  for (const Function* called : called_functions(function.graph)) {
    for (const Node* node : needed(called->results(), called->control_results())) check(*node);
  }
  for (const auto& [request, nodes] : unmet) {
    std::string line =
        cat("Soft placement: '", nodes.first->name(), "' (", nodes.first->op().name, ") asked for ",
            request, ", but there is no such device; it runs on ", runtime.default_device().name());
    if (nodes.others > 0) line += cat(" (and ", nodes.others, " more)");
    report_soft_placement(runtime, line + '.');
  }
}

bool on_one_cpu(const PlacedFunction& placed) {
  const auto& nodes = placed.function.graph.nodes();
  return std::all_of(nodes.begin(), nodes.end(),
                     [&](const auto& node) { return placed.placement.device(*node) == 0; });
}

}  // namespace tandem
