#include "tandem/runtime/execute/device_fusion.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/foreign_kernels.h"
#include "tandem/graph/internal/frames.h"

namespace tandem {
namespace {

bool is_everywhere(const Node& node) {
  return node.kind() == NodeKind::kConst || node.kind() == NodeKind::kArg;
}

std::string joined(const std::vector<std::string>& ops) {
  std::string text;
  for (const std::string& op : ops) text += cat(text.empty() ? "" : " + ", op);
  return text;
}

}  // namespace

DeviceFusion::DeviceFusion(Placement& placement, const KernelRegistry& kernels, bool any_kernel)
    : placement_(placement), kernels_(kernels), any_kernel_(any_kernel) {}

bool DeviceFusion::together(const Node& a, const Node& b) const {
  return is_everywhere(a) || is_everywhere(b) || placement_.device(a) == placement_.device(b);
}

std::string DeviceFusion::refusal(const Node& node, int device) const {
  if (!needs_device_kernel(node.kind())) return {};
  const DeviceModel& model = placement_.devices.devices[static_cast<std::size_t>(device)];
  const auto& without = model.without;
  const bool left_out = std::find(without.begin(), without.end(), node.op().name) != without.end();
  if (!left_out && kernels_.find(node.op(), model.kernel_class, node.attrs()) != nullptr) {
    const std::string why = fused_refusal(node, model.kernel_class);
    return why.empty() ? why : cat("class ", model.kernel_class, ": ", why);
  }
  return cat("class ", model.kernel_class, " has no kernel for ", node.op().name,
             left_out || kernels_.all(node.op().name).empty() ? "" : " of these types");
}

namespace {

// A Reshape around a fused op is no part of it.
bool is_view(const Node& node) { return node.op().traits.shares_memory != 0; }

const Node& main_of(std::span<Node* const> fused) {
  const auto found =
      std::find_if(fused.rbegin(), fused.rend(), [](const Node* node) { return !is_view(*node); });
  return found == fused.rend() ? *fused.back() : **found;
}

}  // namespace

bool DeviceFusion::accepts(std::span<Node* const> fused, std::span<const Node* const> replaced) {
  std::vector<std::string> parts;
  const Node* last = nullptr;
  for (const Node* node : replaced) {
    if (is_everywhere(*node)) continue;
    const auto known = parts_.find(node->id());
    if (known == parts_.end()) {
      if (!is_view(*node)) parts.push_back(node->op().name);
    } else {
      parts.insert(parts.end(), known->second.begin(), known->second.end());
    }
    last = node;
  }
  if (last == nullptr) return true;
  const int device = placement_.device(*last);
  for (const Node* node : replaced) {
    if (together(*node, *last)) continue;
    note({.ops = joined(parts),
          .node = last->name(),
          .op = main_of(fused).op().name,
          .device = device,
          .reason = cat("'", node->name(), "' runs on another device than '", last->name(), "'")});
    return false;
  }
  if (!any_kernel_) {
    for (const Node* node : fused)
      if (!is_everywhere(*node) && !refusal(*node, device).empty()) return false;
  }
  const NodePlacement where = placement_.of(*last);
  for (const Node* node : fused) {
    const auto id = static_cast<std::size_t>(node->id());
    if (placement_.nodes.size() <= id) placement_.nodes.resize(id + 1);
    placement_.nodes[id] = where;
  }
  parts_[main_of(fused).id()] = std::move(parts);
  return true;
}

FusionTarget::Elementwise DeviceFusion::elementwise(const Node& node) const {
  if (any_kernel_ || is_everywhere(node)) return Elementwise::kLarge;
  const auto device = static_cast<std::size_t>(placement_.device(node));
  const std::string& kernel_class = placement_.devices.devices[device].kernel_class;
  switch (fuses(node.op().name, kernel_class)) {
    case Fuses::kAnySize: return Elementwise::kAnySize;
    case Fuses::kNo: return Elementwise::kNo;
    case Fuses::kLarge:
    case Fuses::kAsCpu: break;
  }
  return Elementwise::kLarge;
}

bool DeviceFusion::launches_cost_time(const Node& node) const {
  if (is_everywhere(node)) return false;
  const auto device = static_cast<std::size_t>(placement_.device(node));
  return tandem::launches_cost_time(placement_.devices.devices[device].kernel_class);
}

void DeviceFusion::keep_apart(const Node& node, const Node& reader, const std::string& why) {
  if (!together(node, reader)) return;
  const auto known = parts_.find(node.id());
  std::vector<std::string> parts =
      known == parts_.end() ? std::vector<std::string>{node.op().name} : known->second;
  parts.push_back(reader.op().name);
  note({.ops = joined(parts),
        .node = reader.name(),
        .device = placement_.device(reader),
        .reason = cat("'", node.name(), "': ", why)});
}

// Passes ask again in each round.
void DeviceFusion::note(Fusion fusion) {
  const auto same = [&](const Fusion& other) {
    return other.node == fusion.node && other.reason == fusion.reason;
  };
  const auto known = std::find_if(kept_apart_.begin(), kept_apart_.end(), same);
  if (known == kept_apart_.end()) {
    kept_apart_.push_back(std::move(fusion));
  } else {
    *known = std::move(fusion);
  }
}

std::vector<Fusion> DeviceFusion::made(const Graph& graph) const {
  std::vector<Fusion> fusions;
  for (const auto& node : graph.nodes()) {
    const auto found = parts_.find(node->id());
    if (found == parts_.end()) continue;
    fusions.push_back({.ops = joined(found->second),
                       .node = node->name(),
                       .op = node->op().name,
                       .device = placement_.device(*node),
                       .made = true,
                       .reason = {}});
  }
  return fusions;
}

namespace {

// What could be fused if each device had all kernels, and cannot for want of one.
std::vector<Fusion> lacking_kernels(const MutableFunction& function, const Placement& placed,
                                    const OpRegistry& ops, const KernelRegistry& kernels,
                                    Evaluator& evaluator, const OptimizerOptions& options) {
  MutableFunction trial = function.clone();
  Placement placement = placed;
  DeviceFusion target(placement, kernels, true);
  trial.target = &target;
  fuse_ops(trial, ops, evaluator, options);
  std::vector<Fusion> lacking;
  for (Fusion& fusion : target.made(trial.graph)) {
    const Node* node = trial.graph.find(fusion.node);
    fusion.reason = target.refusal(*node, fusion.device);
    fusion.made = false;
    if (!fusion.reason.empty()) lacking.push_back(std::move(fusion));
  }
  return lacking;
}

}  // namespace

void fuse_placed(MutableFunction& function, Placement& placement, const OpRegistry& ops,
                 const KernelRegistry& kernels, Evaluator& evaluator,
                 const OptimizerOptions& wanted, std::vector<Fusion>* fusions) {
  if (wanted.disable_meta_optimizer) return;
  OptimizerOptions options = wanted;
  if (holds_control_flow(function.graph)) options.elementwise_fusion = options.image_fusion = false;
  std::vector<Fusion> lacking;
  if (fusions) lacking = lacking_kernels(function, placement, ops, kernels, evaluator, options);
  DeviceFusion target(placement, kernels);
  function.target = &target;
  fuse_ops(function, ops, evaluator, options);
  function.target = nullptr;
  placement.nodes.resize(static_cast<std::size_t>(function.graph.id_limit()));
  if (!fusions) return;
  *fusions = target.made(function.graph);
  fusions->insert(fusions->end(), lacking.begin(), lacking.end());
  // What was refused on the way does not matter for what is one op now.
  for (const Fusion& apart : target.kept_apart()) {
    if (function.graph.find(apart.node)) fusions->push_back(apart);
  }
}

}  // namespace tandem
