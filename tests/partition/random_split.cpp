#include "tests/partition/random_split.h"

#include <atomic>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"

namespace tandem::partition_test {
namespace {

std::atomic<Fault> g_fault{Fault::kNone};
std::atomic<void (*)()> g_cancel{nullptr};
std::atomic<bool> g_fired{false};

void faulty(KernelContext& c) {
  const Fault fault = g_fault.load();
  if (fault != Fault::kNone) g_fired = true;
  if (fault == Fault::kThrow) throw DataLossError(kFaultText);
  if (fault == Fault::kCancel) g_cancel.load()();
  c.set_output(0, c.input(0));
}

const OpRegistration kFaulty{
    {.name = "TestFaulty",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: type",
     .traits = {
         .stateful = true, .shares_memory = 1, .retains_inputs = 1, .owns_output_memory = 1}}};
const KernelRegistration kFaultyKernel{{.op = "TestFaulty", .run = faulty}};

// Nodes that must share a device.
class Groups {
 public:
  explicit Groups(int size) : parent_(static_cast<std::size_t>(size)) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  int root(int id) {
    while (at(id) != id) id = at(id) = at(at(id));
    return id;
  }
  void join(int a, int b) { at(root(a)) = root(b); }

 private:
  int& at(int id) { return parent_[static_cast<std::size_t>(id)]; }
  std::vector<int> parent_;
};

bool binds(DType dtype) { return is_ref(dtype) || dtype == DType::kResource; }

// What a node that owns something shared calls it; empty for others.
std::string shared_key(const Node& node) {
  if (!node.op().traits.stateful) return {};
  for (const char* attr : {"shared_name", "var_name"}) {
    const AttrValue* value = node.attrs().find(attr);
    if (!value) continue;
    const auto* name = value->get_if<std::string>();
    return name && !name->empty() ? *name : node.name();
  }
  return {};
}

// What shares a resource or a reference, or is called alike.
Groups groups_of(const Graph& graph) {
  Groups groups(graph.id_limit());
  std::map<std::string, int> owners;
  for (const auto& node : graph.nodes()) {
    for (const Output& in : node->inputs()) {
      if (binds(in.node->output_dtype(in.index))) groups.join(node->id(), in.node->id());
    }
    const std::string key = shared_key(*node);
    if (key.empty()) continue;
    const auto [first, is_new] = owners.emplace(key, node->id());
    if (!is_new) groups.join(node->id(), first->second);
  }
  return groups;
}

}  // namespace

void SharedOwners::add(const MutableFunction& signature) {
  Groups groups = groups_of(signature.graph);
  std::map<int, std::string> first;  // by group
  for (const auto& node : signature.graph.nodes()) {
    const std::string key = shared_key(*node);
    if (key.empty()) continue;
    parent_.emplace(key, key);
    const std::string& other = first.emplace(groups.root(node->id()), key).first->second;
    parent_[root(key)] = root(other);
  }
}

const std::string& SharedOwners::root(const std::string& key) const {
  const std::string* at = &key;
  while (parent_.at(*at) != *at) at = &parent_.at(*at);
  return *at;
}

AssignedGraph assign_at_random(MutableFunction function, const SharedOwners& shared,
                               std::vector<PartitionDevice> devices, std::uint64_t seed) {
  const Graph& graph = function.graph;
  Groups groups = groups_of(graph);
  // A group is known by what it owns, which all signatures call alike, else by its first node.
  std::map<int, std::string> names;
  for (const auto& node : graph.nodes()) {
    if (const std::string key = shared_key(*node); !key.empty())
      names.emplace(groups.root(node->id()), "owner of " + shared.root(key));
  }
  for (const auto& node : graph.nodes()) names.emplace(groups.root(node->id()), node->name());

  std::vector<int> device_of(static_cast<std::size_t>(graph.id_limit()), -1);
  for (const auto& node : graph.nodes()) {
    std::mt19937_64 random(seed ^ std::hash<std::string>()(names.at(groups.root(node->id()))));
    device_of[static_cast<std::size_t>(node->id())] = static_cast<int>(random() % devices.size());
  }
  return {std::move(function), std::move(devices), std::move(device_of)};
}

void arm(Fault fault, void (*cancel)()) {
  g_fired = false;
  g_cancel = cancel;
  g_fault = fault;
}

bool fault_fired() { return g_fired; }

bool add_fault(AssignedGraph& assigned, const OpRegistry& ops, std::mt19937_64& random) {
  Graph& graph = assigned.function.graph;
  std::vector<std::pair<Node*, int>> edges;
  for (const auto& node : graph.nodes()) {
    for (std::size_t i = 0; i < node->inputs().size(); ++i) {
      const Output in = node->inputs()[i];
      const bool back = in.node->kind() == NodeKind::kNextIteration;
      if (!back && !binds(in.node->output_dtype(in.index)))
        edges.emplace_back(node.get(), static_cast<int>(i));
    }
  }
  if (edges.empty()) return false;
  const auto [node, input] = edges[random() % edges.size()];
  const Output value = node->inputs()[static_cast<std::size_t>(input)];
  Node* fault = graph.add({.op = &ops.get("TestFaulty"),
                           .name = "injected_fault",
                           .inputs = {value},
                           .attrs = {},
                           .control_inputs = {},
                           .device = {},
                           .where = {}});
  graph.set_output_shape(fault, 0, value.node->output_shape(value.index));
  graph.set_input(node, input, {fault, 0});
  assigned.device_of.resize(static_cast<std::size_t>(graph.id_limit()), 0);
  assigned.device_of[static_cast<std::size_t>(fault->id())] =
      static_cast<int>(random() % assigned.devices.size());
  return true;
}

}  // namespace tandem::partition_test
