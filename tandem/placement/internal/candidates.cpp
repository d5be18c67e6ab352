#include "tandem/placement/internal/candidates.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "tandem/core/error.h"
#include "tandem/placement/unsatisfiable_request.h"

namespace tandem::placement {
namespace {

constexpr int kMaxMembers = 20;  // shown in an error
constexpr std::size_t kMaxNames = 64;

const DeviceModel& model(const DeviceSet& devices, int d) {
  return devices.devices[static_cast<std::size_t>(d)];
}

}  // namespace

Candidates::Candidates(const DeviceSet& devices, const PlacementOptions& options, SpecTable& specs,
                       KernelSupport& support, const Colocation& colocation, const Graph& graph)
    : devices_(devices),
      options_(options),
      specs_(specs),
      support_(support),
      colocation_(colocation),
      graph_(graph),
      preference_(static_cast<std::size_t>(devices.size())),
      by_root_(static_cast<std::size_t>(graph.id_limit())) {
  const DeviceSpec preferred = DeviceSpec::parse(options.default_device);
  std::vector<std::string> types;  // in the order in which they first occur
  std::vector<std::tuple<bool, bool, std::size_t>> key;
  bool exists = preferred.empty();
  for (const DeviceModel& device : devices.devices) {
    const auto type = std::find(types.begin(), types.end(), *device.spec.type);
    key.emplace_back(preferred.empty() || !preferred.matches(device.spec), device.host_memory,
                     static_cast<std::size_t>(type - types.begin()));
    if (type == types.end()) types.push_back(*device.spec.type);
    exists = exists || preferred.matches(device.spec);
  }
  std::iota(preference_.begin(), preference_.end(), 0);
  std::stable_sort(preference_.begin(), preference_.end(), [&](int a, int b) {
    return key[static_cast<std::size_t>(a)] < key[static_cast<std::size_t>(b)];
  });
  if (exists || options.soft) return;
  std::string supported;
  for (const std::string& type : types) supported += cat(supported.empty() ? "" : ", ", type);
  throw InvalidArgumentError(cat("Could not satisfy device specification '", preferred.to_string(),
                                 "'. enable_soft_placement=0. Supported device types [", supported,
                                 "]. All available devices [", names(preference_), "]."));
}

Candidates::Choice Candidates::of(const Node& node) {
  const int root = colocation_.root(node.id());
  Choice& choice = by_root_[static_cast<std::size_t>(root)];
  if (choice.list < 0) choice = find(colocation_.bonds(root));
  if (choice.list < 0) fail(node);
  return choice;
}

Candidates::Choice Candidates::find(const Bonds& b) {
  const std::array<std::uint64_t, 4> key{static_cast<std::uint64_t>(b.requested),
                                         static_cast<std::uint64_t>(b.resource),
                                         static_cast<std::uint64_t>(b.given), b.kinds};
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  const DeviceSpec &requested = specs_[b.requested], &resource = specs_[b.resource],
                   &given = specs_[b.given];
  Choice choice;
  std::vector<int> list = filter(requested, b.kinds);
  if (list.empty() && options_.soft && b.requested != 0) {
    choice.soft = true;
    list = filter(loosened(requested, {&given, &resource}), b.kinds);
    if (list.empty()) list = filter(loosened(requested, {&given}), b.kinds);
  }
  if (!list.empty()) {
    choice.list = static_cast<int>(lists.size());
    lists.push_back(std::move(list));
  }
  return known_.emplace(key, choice).first->second;
}

std::vector<int> Candidates::filter(const DeviceSpec& spec, KernelSupport::Kinds kinds) const {
  std::vector<int> list;
  for (const int d : preference_) {
    if (support_.takes(kinds, d) && spec.matches(model(devices_, d).spec)) list.push_back(d);
  }
  return list;
}

DeviceSpec Candidates::loosened(DeviceSpec spec, std::initializer_list<const DeviceSpec*> by) {
  bool type = false, index = false;
  for (const DeviceSpec* one : by) {
    type = type || one->type;
    index = index || one->index;
  }
  if (!type) spec.type.reset();
  if (!index) spec.index.reset();
  return spec;
}

// ---- Errors ----

void Candidates::fail(const Node& node) const {
  const int root = colocation_.root(node.id());
  for (const auto& [given, device] : options_.fixed) {
    if (colocation_.root(given->id()) == root) fail_where_it_lies(*given, device);
  }
  const Bonds& b = colocation_.bonds(root);
  const DeviceSpec& asked = specs_[b.requested];
  std::string text = cat("Cannot assign a device for operation ", node.name(), ": ");
  if (colocation_.request(node) != b.requested) {
    text += cat("Could not satisfy explicit device specification '", node.requested_device(),
                "' because the node {{colocation_node ", node.name(),
                "}} was colocated with a group of nodes that required incompatible device '",
                asked.to_string(), "'. All available devices [", names(preference_),
                "]. Devices with kernels for the group: [", names(filter({}, b.kinds)), "]. ",
                members(root));
  } else if (filter(asked, support_.all()).empty()) {
    text += explicitly_assigned(node);
  } else {
    text += cat("Could not satisfy explicit device specification '", node.requested_device(),
                "' because no supported kernel for ", asked.type.value_or("those"),
                " devices is available. Op: ", node.op().name, ". Devices with a kernel: [",
                names(filter({}, b.kinds)), "]. All available devices [", names(preference_), "]. ",
                members(root));
  }
  // TensorFlow's text ends here; it leaves open what would help.
  text += cat("\n\t [[", node.name(), "]]");
  if (filter(asked, support_.all()).empty())
    text += cat("\nDevices with a kernel: [", names(filter({}, b.kinds)), "].");
  throw InvalidArgumentError(text);
}

// For a value that is there already: whatever uses it must run where it lies.
void Candidates::fail_where_it_lies(const Node& value, int device) const {
  const DeviceModel& there = model(devices_, device);
  if (!there.lost.empty()) {
    throw UnavailableError(cat(
        value.name(), " lay in the memory of ", there.name(), ", which is lost: ", there.lost,
        ". Recreate it on another device, and load what was saved.\n\t [[", value.name(), "]]"));
  }
  const int root = colocation_.root(value.id());
  for (const auto& node : graph_.nodes()) {
    if (colocation_.root(node->id()) != root) continue;
    const KernelSupport::Kinds kinds = support_.of(*node).kinds;
    if (support_.takes(kinds, device)) continue;
    const std::vector<int> able = filter({}, colocation_.bonds(root).kinds);
    throw InvalidArgumentError(
        cat("Cannot assign a device for operation ", node->name(), ": it uses ", value.name(),
            ", which lies on ", there.name(), ", and there is no kernel for ", node->op().name,
            " there. Devices with kernels for all that uses it: [", names(able), "].",
            able.empty() ? std::string()
                         : cat(" Make the resource on one of them, in a td::DeviceScope(\"",
                               short_name(devices_, able.front()), "\")."),
            "\n\t [[", node->name(), "]]"));
  }
}

std::string Candidates::explicitly_assigned(const Node& node) const {
  std::vector<int> sorted = preference_;
  std::sort(sorted.begin(), sorted.end(),
            [&](int a, int b) { return model(devices_, a).name() < model(devices_, b).name(); });
  const bool any_gpu = std::any_of(devices_.devices.begin(), devices_.devices.end(),
                                   [](const DeviceModel& d) { return d.spec.type == "GPU"; });
  return unsatisfiable_request(node, names(sorted), any_gpu);
}

std::string Candidates::names(const std::vector<int>& which) const {
  std::string text;
  for (std::size_t i = 0; i < which.size(); ++i) {
    if (i == kMaxNames) return cat(text, " and ", which.size() - i, " more");
    text += cat(i == 0 ? "" : ", ", model(devices_, which[i]).name());
  }
  return text;
}

std::string Candidates::members(int root) const {
  std::string text = "Colocation members and the devices asked for:";
  int shown = 0;
  for (const auto& node : graph_.nodes()) {
    if (colocation_.root(node->id()) != root) continue;
    if (++shown > kMaxMembers) return text + "\n  ...";
    text += cat("\n  ", node->name(), " (", node->op().name, ") ", node->requested_device());
  }
  return text;
}

}  // namespace tandem::placement
