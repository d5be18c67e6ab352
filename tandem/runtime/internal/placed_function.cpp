#include "tandem/runtime/internal/placed_function.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/device.h"
#include "tandem/graph/op_registry.h"
#include "tandem/placement/cost_profile.h"
#include "tandem/runtime/internal/called_functions.h"
#include "tandem/runtime/internal/soft_placement.h"
#include "tandem/runtime/runtime.h"

namespace tandem {
namespace {

// Puts copies where a value is wanted in another memory than the one that it lies in.
class Cut {
 public:
  Cut(PlacedFunction& placed, const OpRegistry& ops)
      : placed_(placed),
        to_host_(ops.of_kind(NodeKind::kSend)),
        to_device_(ops.of_kind(NodeKind::kRecv)) {}

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
    if (!there)
      there = value.node->kind() == NodeKind::kConst ? constant(value, to) : copy(value, to);
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

PlacementChoice PlacementChoice::of(const Runtime& runtime) {
  PlacementChoice choice{.policy = runtime.placement_policy(), .profile = nullptr};
  if (const std::string path = runtime.placement_profile(); !path.empty())
    choice.profile = std::make_shared<const CostProfile>(CostProfile::load(path));
  return choice;
}

Placement place_nodes(Runtime& runtime, const MutableFunction& function, const ArgPlaces& args,
                      int default_device, const PlacementChoice& choice) {
  PlacementOptions options;
  options.policy = choice.policy;
  options.soft = runtime.soft_placement();
  options.log = runtime.log_placement();
  const DeviceSet devices = DeviceSet::of(runtime.devices());
  if (default_device >= 0)
    options.default_device = devices.devices[static_cast<std::size_t>(default_device)].name();
  for (std::size_t i = 0; i < args.size(); ++i) {
    options.fixed.emplace_back(function.args[i], args[i]);
  }
  Placement placement =
      place(function.graph, CostModel(devices, choice.profile), runtime.kernels(), options);
  tell_soft_placement(runtime, soft_placement_line(function.graph, placement));
  return placement;
}

PlacedFunction place_function(Runtime& runtime, MutableFunction function, const ArgPlaces& args,
                              int default_device, const PlacementChoice& choice) {
  PlacedFunction placed{std::move(function), {}};
  placed.placement = place_nodes(runtime, placed.function, args, default_device, choice);
  Cut(placed, runtime.ops())();
  return placed;
}

void check_requests(Runtime& runtime, const MutableFunction& function) {
  const auto& devices = runtime.devices();
  std::string met;  // the last one that was: nodes ask alike
  const auto is_met = [&](const std::string& request) {
    if (request.empty() || request == met) return true;
    if (!runtime.soft_placement()) return false;  // there may be no kernel
    const DeviceSpec spec = DeviceSpec::parse(request);
    if (std::none_of(devices.begin(), devices.end(),
                     [&](const auto& device) { return spec.matches(device->spec()); }))
      return false;
    met = request;
    return true;
  };
  const auto check = [&](const Graph& graph) {
    if (std::all_of(graph.nodes().begin(), graph.nodes().end(),
                    [&](const auto& node) { return is_met(node->requested_device()); }))
      return;
    PlacementOptions options;
    options.soft = runtime.soft_placement();
    try {
      const Placement placement =
          place(graph, CostModel(DeviceSet::of(devices)), runtime.kernels(), options);
      tell_soft_placement(runtime, soft_placement_line(graph, placement));
    } catch (const UnimplementedError&) {
      // An op without a kernel may be one that never runs.
    }
  };
  check(function.graph);
  for (const Function* called : called_functions(function.graph)) check(called->body());
}

bool on_one_cpu(const PlacedFunction& placed) {
  const auto& nodes = placed.function.graph.nodes();
  return std::all_of(nodes.begin(), nodes.end(),
                     [&](const auto& node) { return placed.placement.device(*node) == 0; });
}

}  // namespace tandem
