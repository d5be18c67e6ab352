#include "tandem/placement/internal/kernel_support.h"

#include <algorithm>
#include <cstring>

#include "tandem/core/error.h"
#include "tandem/placement/placement.h"

namespace tandem::placement {
namespace {

constexpr std::size_t kMaxKinds = 64;
constexpr std::size_t kMaxRefusals = 8;

bool same_kind(const DeviceModel& a, const DeviceModel& b) {
  return a.kernel_class == b.kernel_class && a.spec.type == b.spec.type && a.without == b.without &&
         a.lost.empty() == b.lost.empty();
}

bool has_strings(const Node& node) {
  for (const Output& in : node.inputs()) {
    if (in.node && base_dtype(in.node->output_dtype(in.index)) == DType::kString) return true;
  }
  return std::any_of(node.output_dtypes().begin(), node.output_dtypes().end(),
                     [](DType t) { return base_dtype(t) == DType::kString; });
}

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

std::string short_name(const DeviceSet& devices, int device) {
  const DeviceSpec& spec = devices.devices[static_cast<std::size_t>(device)].spec;
  const DeviceSpec& first = devices.devices.front().spec;
  if (spec.job != first.job || spec.replica != first.replica || spec.task != first.task)
    return spec.to_string();
  return cat(*spec.type, ":", spec.index.value_or(0));
}

KernelSupport::KernelSupport(const DeviceSet& devices, const KernelRegistry& kernels)
    : devices_(devices), kernels_(kernels) {
  for (int d = 0; d < devices.size(); ++d) {
    const DeviceModel& device = devices.devices[static_cast<std::size_t>(d)];
    const auto known =
        std::find_if(representatives_.begin(), representatives_.end(), [&](int other) {
          return same_kind(device, devices.devices[static_cast<std::size_t>(other)]);
        });
    kind_of_.push_back(static_cast<int>(known - representatives_.begin()));
    if (known == representatives_.end()) representatives_.push_back(d);
  }
  if (representatives_.size() > kMaxKinds) {
    throw InvalidArgumentError(cat("The devices are of ", representatives_.size(),
                                   " kinds (types, kernels, ops left out), but a graph can be "
                                   "placed on at most ",
                                   kMaxKinds, "."));
  }
  for (std::size_t k = 0; k < representatives_.size(); ++k) all_ |= Kinds{1} << k;
}

const KernelSupport::Entry& KernelSupport::of(const Node& node) {
  key_.clear();
  append(key_, &node.op());
  // Dtypes follow from these; a call's may hold strings that no attribute of ours names.
  for (const auto& [name, value] : node.attrs()) {
    if (const DType* type = value.get_if<DType>()) {
      append(key_, *type);
    } else if (const auto* types = value.get_if<std::vector<DType>>()) {
      append(key_, types->size());
      for (const DType t : *types) append(key_, t);
    }
  }
  const auto found = by_key_.find(std::string_view(key_));
  if (found != by_key_.end()) return *found->second;
  entries_.push_back(find(node));
  return *by_key_.emplace(key_, &entries_.back()).first->second;
}

KernelSupport::Entry KernelSupport::find(const Node& node) const {
  Entry entry;
  std::vector<std::string> reasons;
  for (std::size_t k = 0; k < representatives_.size(); ++k) {
    const auto& device = devices_.devices[static_cast<std::size_t>(representatives_[k])];
    reasons.push_back(refusal(node, device));
    if (reasons.back().empty()) entry.kinds |= Kinds{1} << k;
  }
  for (int d = 0; d < devices_.size() && entry.refused.size() <= kMaxRefusals; ++d) {
    const std::string& reason =
        reasons[static_cast<std::size_t>(kind_of_[static_cast<std::size_t>(d)])];
    if (reason.empty()) continue;
    entry.refused.push_back(entry.refused.size() == kMaxRefusals
                                ? "and others"
                                : cat(short_name(devices_, d), ": ", reason));
  }
  return entry;
}

// Why the node can't run there; empty if it can.
std::string KernelSupport::refusal(const Node& node, const DeviceModel& device) const {
  if (!device.lost.empty()) return "is lost";
  const bool is_cpu = device.spec.type == "CPU";
  if (!is_cpu && !calls_functions(node.kind())) {
    if (node.op().traits.cpu_only) return cat(node.op().name, " runs on CPUs alone");
    if (has_strings(node)) return "takes or gives strings";
  }
  if (std::find(device.without.begin(), device.without.end(), node.op().name) !=
      device.without.end())
    return cat("has no kernel for ", node.op().name);
  if (needs_device_kernel(node.kind()) &&
      kernels_.find(node.op(), device.kernel_class, node.attrs()) == nullptr) {
    std::string types;
    for (const auto& [name, value] : node.attrs()) {
      if (const DType* type = value.get_if<DType>())
        types += cat(types.empty() ? " with " : ", ", name, "=", *type);
    }
    return cat("has no kernel for ", node.op().name, types);
  }
  return {};
}

}  // namespace tandem::placement
