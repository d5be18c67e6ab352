#include "tandem/core/error.h"
#include "tandem/placement/internal/greedy.h"

namespace tandem::placement {
namespace {

bool works_on_host_memory(const Node& node) {
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    if (!input_on_host(node, static_cast<int>(i))) return false;
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (!output_on_host(node, i)) return false;
  }
  return !node.inputs().empty() || node.num_outputs() > 0;
}

bool makes_resource(const Node& node) {
  return node.num_outputs() > 0 &&
         (node.output_dtype(0) == DType::kResource || is_ref(node.output_dtype(0)));
}

}  // namespace

bool Reasons::is_where_asked(const Node& node, int device) const {
  return specs_[colocation_.request(node)].matches(
      devices_.devices[static_cast<std::size_t>(device)].spec);
}

NodePlacement Reasons::of(const Node& node) const {
  const auto id = static_cast<std::size_t>(node.id());
  const int group = greedy_.constraints.group[id];
  NodePlacement p;
  p.device = greedy_.device[id];
  if (colocation_.given(node)) {
    p.by = PlacedBy::kColocation;
    p.reason = "its value is there already";
  } else if (colocation_.request(node) != 0) {
    asked(node, p);
  } else {
    free(node, group, p);
  }
  const KernelSupport::Entry& support = support_.of(node);
  if (support.kinds != support_.all()) p.refused = support.refused;
  const Bonds& bonds = colocation_.bonds(colocation_.root(node.id()));
  if (bonds.narrowed_by >= 0 && bonds.narrowed_by != node.id() && bonds.kinds != support.kinds) {
    const Node& narrow = *colocation_.node(bonds.narrowed_by);
    for (const std::string& refused : support_.of(narrow).refused)
      p.refused.push_back(cat(refused, " ('", narrow.name(), "', colocated)"));
  }
  return p;
}

void Reasons::asked(const Node& node, NodePlacement& p) const {
  const DeviceSpec& request = specs_[colocation_.request(node)];
  if (request.matches(devices_.devices[static_cast<std::size_t>(p.device)].spec)) {
    p.by = PlacedBy::kRequest;
    p.reason = cat("asked for ", node.requested_device());
    return;
  }
  p.by = PlacedBy::kSoft;
  const Bonds& bonds = colocation_.bonds(colocation_.root(node.id()));
  bool exists = false, lost = false, runs = false, all_run = false;
  for (int d = 0; d < devices_.size(); ++d) {
    if (!request.matches(devices_.devices[static_cast<std::size_t>(d)].spec)) continue;
    exists = true;
    lost = lost || !devices_.devices[static_cast<std::size_t>(d)].lost.empty();
    runs = runs || support_.takes(support_.of(node).kinds, d);
    all_run = all_run || support_.takes(bonds.kinds, d);
  }
  p.reason = cat("asked for ", node.requested_device(), ", but ");
  if (!exists) {
    p.reason += "there is no such device";
  } else if (lost) {
    p.reason += "that is lost";
  } else if (!runs) {
    p.reason += "that has no kernel for it";
  } else if (bonds.asked_by >= 0 && bonds.asked_by != node.id() &&
             is_where_asked(*colocation_.node(bonds.asked_by), p.device)) {
    const Node& other = *colocation_.node(bonds.asked_by);
    // That a variable is used where it is, is no news.
    if (colocation_.given(other) || makes_resource(other)) p.by = PlacedBy::kColocation;
    p.reason += cat("it is colocated with '", other.name(),
                    colocation_.given(other) ? "', which is on " : "', which asked for ",
                    specs_[colocation_.request(other)].to_string());
  } else {
    p.reason += all_run ? "nodes colocated with it ask for others"
                        : "a node colocated with it can't be there";
  }
}

void Reasons::free(const Node& node, int group, NodePlacement& p) const {
  const Constraints& constraints = greedy_.constraints;
  const auto g = static_cast<std::size_t>(group);
  const auto& allowed =
      constraints.allowed[static_cast<std::size_t>(constraints.groups[g].allowed)];
  const Bonds& bonds = colocation_.bonds(colocation_.root(node.id()));
  p.by = PlacedBy::kColocation;
  if (bonds.asked_by >= 0) {
    const Node& other = *colocation_.node(bonds.asked_by);
    p.reason = cat("colocated with '", other.name(), "', which ",
                   colocation_.given(other)          ? "is on "
                   : is_where_asked(other, p.device) ? "asked for "
                                                     : "could not have ",
                   specs_[colocation_.request(other)].to_string());
  } else if (greedy_.first[g] != &node) {
    p.reason = cat("colocated with '", greedy_.first[g]->name(), "'");
  } else if (const Node* beside = greedy_.beside[static_cast<std::size_t>(node.id())]) {
    p.by = PlacedBy::kNear;
    p.reason = cat(node.inputs().empty() ? "beside its user '" : "beside its input '",
                   beside->name(), "'");
  } else if (allowed.size() == 1 && devices_.size() > 1) {
    p.by = PlacedBy::kOnlyKernel;
    p.reason = "no other device can run it";
  } else if (devices_.memory_of(p.device) != 0 && works_on_host_memory(node)) {
    p.by = PlacedBy::kHostMemory;
    p.reason = "works on host memory, wherever it runs";
  } else {
    p.by = PlacedBy::kGreedy;
    p.reason = "the first device that has a kernel";
  }
}

}  // namespace tandem::placement
