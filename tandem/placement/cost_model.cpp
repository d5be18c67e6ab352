#include "tandem/placement/cost_model.h"

#include <algorithm>

#include "tandem/placement/cost_profile.h"

namespace tandem {
namespace {

double elements(const PartialShape& shape) {
  if (!shape.has_rank()) return 1;
  double product = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape.dim(i) >= 0) product *= static_cast<double>(shape.dim(i));
  }
  return product;
}

const PartialShape& shape_of(const Output& value) { return value.node->output_shape(value.index); }

// Strings and handles count as their references.
double element_bytes(DType dtype) {
  const std::size_t size = dtype_size(base_dtype(dtype));
  return size > 0 ? static_cast<double>(size) : 16;
}

bool shares(const Node& node) { return (node.op().traits.shares_memory & 1) != 0; }

// Weights that are packed: the first step does it and keeps them.
bool made_once(const Node& node) {
  const auto& inputs = node.inputs();
  return node.op().traits.keeps_state && !node.op().traits.stateful && !inputs.empty() &&
         std::all_of(inputs.begin(), inputs.end(), [](const Output& in) {
           return in.node && in.node->kind() == NodeKind::kConst;
         });
}

bool same_speed(const DeviceModel& a, const DeviceModel& b) {
  return a.flops == b.flops && a.memory_bandwidth == b.memory_bandwidth &&
         a.launch_overhead == b.launch_overhead && a.computes == b.computes &&
         a.spec.type == b.spec.type;
}

}  // namespace

CostModel::CostModel(const DeviceSet& devices, std::shared_ptr<const CostProfile> profile)
    : devices_(devices), profile_(std::move(profile)) {
  for (int d = 0; d < devices_.size(); ++d) {
    const auto like = std::find_if(representatives_.begin(), representatives_.end(), [&](int r) {
      return same_speed(devices_.devices[static_cast<std::size_t>(r)],
                        devices_.devices[static_cast<std::size_t>(d)]);
    });
    classes_.push_back(static_cast<int>(like - representatives_.begin()));
    if (like == representatives_.end()) representatives_.push_back(d);
  }
}

bool CostModel::has_work(const Node& node) {
  switch (node.kind()) {
    case NodeKind::kConst:
    case NodeKind::kArg:
    case NodeKind::kRetval:
    case NodeKind::kVariable: return false;
    default: return (node.num_outputs() > 0 || !node.inputs().empty()) && !made_once(node);
  }
}

double CostModel::flops(const Node& node) {
  if (!has_work(node) || shares(node)) return 0;
  if (node.op().flops != nullptr) {
    const double reported = node.op().flops(node);
    if (reported >= 0) return reported;
  }
  double most = 0;
  for (const Output& in : node.inputs()) {
    if (in.node) most = std::max(most, elements(shape_of(in)));
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    most = std::max(most, elements(node.output_shape(i)));
  }
  return most;
}

double CostModel::output_bytes(const Node& node, int output) {
  return elements(node.output_shape(output)) * element_bytes(node.output_dtype(output));
}

double CostModel::bytes(const Node& node) {
  if (!has_work(node) || shares(node)) return 0;
  double sum = 0;
  for (const Output& in : node.inputs()) {
    if (in.node) sum += output_bytes(*in.node, in.index);
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    if ((node.op().traits.owns_output_memory & (1u << std::min(i, 31))) == 0) {
      sum += output_bytes(node, i);
    }
  }
  return sum;
}

bool CostModel::makes_no_floats(const Node& node) {
  if (calls_functions(node.kind())) return false;  // what is inside may
  for (int i = 0; i < node.num_outputs(); ++i) {
    const bool host = i < 32 && ((node.op().traits.host_outputs >> i) & 1) != 0;
    if (!host && is_inexact(base_dtype(node.output_dtype(i)))) return false;
  }
  return node.num_outputs() != 0;
}

void CostModel::seconds_by_class(const Node& node, std::vector<double>& out) const {
  out.assign(representatives_.size(), 0.0);
  if (!has_work(node)) return;
  const double operations = flops(node);
  const double moved = bytes(node);
  for (std::size_t c = 0; c < out.size(); ++c) {
    out[c] = estimate(node, operations, moved,
                      devices_.devices[static_cast<std::size_t>(representatives_[c])]);
  }
  if (!profile_) return;
  const std::string key = CostProfile::key(node);
  for (std::size_t c = 0; c < out.size(); ++c) {
    const DeviceModel& device = devices_.devices[static_cast<std::size_t>(representatives_[c])];
    if (const auto known = profile_->seconds(key, CostProfile::kind(device))) out[c] = *known;
  }
}

double CostModel::seconds(const Node& node, int device) const {
  if (!has_work(node)) return 0;
  const DeviceModel& model = devices_.devices[static_cast<std::size_t>(device)];
  if (profile_) {
    if (const auto known = profile_->seconds(CostProfile::key(node), CostProfile::kind(model))) {
      return *known;
    }
  }
  return estimate(node, flops(node), bytes(node), model);
}

bool CostModel::measured(const Node& node, int device) const {
  return profile_ && has_work(node) &&
         profile_
             ->seconds(CostProfile::key(node),
                       CostProfile::kind(devices_.devices[static_cast<std::size_t>(device)]))
             .has_value();
}

}  // namespace tandem
