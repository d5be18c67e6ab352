#include "tandem/runtime/partition/partition.h"

#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/device_spec.h"
#include "tandem/graph/internal/frames.h"
#include "tandem/graph/op_registry.h"
#include "tandem/runtime/partition/control_loops.h"

namespace tandem {
namespace {

decltype(auto) at(auto& v, int i) { return v[static_cast<std::size_t>(i)]; }

// Numbers the parts in the order of their devices.
struct Parts {
  Parts(const std::vector<PartitionDevice>& devices, PartitionBy by) {
    std::map<std::string, int> known;
    for (const PartitionDevice& device : devices) {
      std::string name = by == PartitionBy::kDevice
                             ? device.name
                             : DeviceSpec::parse(device.name).task_spec().to_string();
      const auto [found, is_new] = known.emplace(name, static_cast<int>(names.size()));
      if (is_new) names.push_back(std::move(name));
      of_device.push_back(found->second);
    }
  }
  std::vector<std::string> names;
  std::vector<int> of_device;
};

// A constant that is there before anything runs.
bool is_free_constant(const Node& node) {
  return node.kind() == NodeKind::kConst && node.control_inputs().empty();
}

class Cutter {
 public:
  Cutter(AssignedGraph& assigned, const OpRegistry& ops, const Parts& parts)
      : assigned_(assigned),
        graph_(assigned.function.graph),
        ops_(ops),
        parts_(parts),
        live_(!holds_control_flow(graph_)),
        cut_(graph_, assigned.device_of, parts.of_device) {
    colocate_control_flow(cut_);
    loops_.emplace(cut_, ops);
  }

  void cut_edges() {
    std::vector<Node*> nodes;
    for (const auto& node : graph_.nodes()) nodes.push_back(node.get());
    for (Node* node : nodes) {
      for (std::size_t i = 0; i < node->inputs().size(); ++i) {
        const Output value = node->inputs()[i];
        if (cut_.part(*value.node) == cut_.part(*node)) continue;
        graph_.set_input(node, static_cast<int>(i), value_for(value, *node));
      }
      cut_control_inputs(*node);
    }
  }

  GraphPart part(int number, bool may_optimize) const {
    std::vector<Node*> mapped;
    Graph graph = graph_.clone(&mapped);
    GraphPart part;
    part.name = at(parts_.names, number);
    std::vector<Node*> args, effects;
    std::vector<Output> results;
    const auto here = [&](const Node* node) { return cut_.part(*node) == number; };
    const auto copy_of = [&](const Node* node) { return at(mapped, node->id()); };
    const MutableFunction& f = assigned_.function;
    for (std::size_t i = 0; i < f.args.size(); ++i) {
      if (!here(f.args[i])) continue;
      part.args.push_back(static_cast<int>(i));
      args.push_back(copy_of(f.args[i]));
      if (args.back()->attrs().find("index"))
        graph.set_attr(args.back(), "index", static_cast<std::int64_t>(args.size()) - 1);
    }
    for (std::size_t r = 0; r < f.results.size(); ++r) {
      if (!here(f.results[r].node)) continue;
      part.results.push_back(static_cast<int>(r));
      results.push_back({copy_of(f.results[r].node), f.results[r].index});
    }
    for (const Node* effect : f.control_results) {
      if (here(effect)) effects.push_back(copy_of(effect));
    }
    for (const Node* send : sends_) {
      if (here(send)) effects.push_back(copy_of(send));
    }
    std::vector<bool> drop(static_cast<std::size_t>(graph.id_limit()));
    for (const auto& node : graph_.nodes()) {
      Node* copy = copy_of(node.get());
      at(drop, copy->id()) = !here(node.get());
      if (!here(node.get())) continue;
      graph.set_requested_device(copy, at(assigned_.devices, cut_.device(*node)).name);
      // It may name a node of another part; where it goes is settled.
      if (copy->attrs().find("_class")) graph.set_attr(copy, "_class", std::vector<std::string>());
    }
    graph.remove_if(drop);
    part.function =
        std::make_shared<const Function>(part.name, std::move(graph), std::move(args),
                                         std::move(results), std::move(effects), may_optimize);
    return part;
  }

  bool uses(int number) const {
    for (const auto& node : graph_.nodes()) {
      if (cut_.part(*node) == number) return true;
    }
    return false;
  }

 private:
  Output value_for(Output value, const Node& reader) {
    const int part = cut_.part(reader);
    const auto [known, is_new] =
        arrivals_.try_emplace({value.node->id(), value.index, part}, Output{});
    if (!is_new) return known->second;
    const DType dtype = value.node->output_dtype(value.index);
    if (is_ref(dtype) || dtype == DType::kResource) {
      throw InvalidArgumentError(cat(
          value.node->describe(), " gives a ", is_ref(dtype) ? "reference" : "resource's handle",
          " to ", reader.describe(), ", but they are placed on ", device_name(*value.node), " and ",
          device_name(reader), ". Place both on one ",
          device_name(*value.node).find("/task:") == std::string::npos ? "device" : "task", "."));
    }
    Node* arrived = is_free_constant(*value.node) ? copy_constant(*value.node, cut_.device(reader))
                                                  : exchange(value, reader, "_S");
    return known->second = {arrived, 0};
  }

  void cut_control_inputs(Node& node) {
    std::vector<Node*> before;
    bool changed = false;
    for (Node* first : node.control_inputs()) {
      if (cut_.part(*first) == cut_.part(node)) {
        before.push_back(first);
        continue;
      }
      changed = true;
      if (!is_free_constant(*first)) before.push_back(signal_for(*first, node));
    }
    if (changed) graph_.set_control_inputs(&node, std::move(before));
  }

  // What waits for the Identity waits for `first`; where that is dead, so is the Identity.
  Node* signal_for(Node& first, const Node& then) {
    const auto [known, is_new] =
        arrivals_.try_emplace({first.id(), kControl, cut_.part(then)}, Output{});
    if (!is_new) return known->second.node;
    Node* signal = cut_.add(
        {.op = &ops_.of_kind(NodeKind::kConst),
         .name = new_name(first.name() + "/ctrl", "_S"),
         .inputs = {},
         .attrs = AttrMap{{"dtype", DType::kFloat}, {"value", Array(DType::kFloat, Shape{0})}},
         .control_inputs = {&first},
         .device = {},
         .where = {}},
        cut_.device(first));
    // It is in the frame of what it waits for.
    Node* received = exchange({signal, 0}, then, "_S", &first);
    Node* identity = cut_.add({.op = &ops_.get("Identity"),
                               .name = received->name() + "/id",
                               .inputs = {{received, 0}},
                               .attrs = {},
                               .control_inputs = {},
                               .device = {},
                               .where = {}},
                              cut_.device(then));
    known->second = {identity, 0};
    return identity;
  }

  Node* copy_constant(const Node& constant, int device) {
    return cut_.add({.op = &constant.op(),
                     .name = new_name(constant.name(), "/copy_"),
                     .inputs = {},
                     .attrs = constant.attrs(),
                     .control_inputs = {},
                     .device = {},
                     .where = constant.where()},
                    device);
  }

  // A send and a receive of a value; `maker`, if given, is the node in whose frame it is.
  Node* exchange(Output value, const Node& reader, const char* suffix,
                 const Node* maker = nullptr) {
    if (!maker) maker = value.node;
    const DType dtype = value.node->output_dtype(value.index);
    const PartitionDevice& from = at(assigned_.devices, cut_.device(*value.node));
    const PartitionDevice& to = at(assigned_.devices, cut_.device(reader));
    const bool host = is_object(dtype);
    AttrMap attrs{{"tensor_name", cat("edge_", ++edges_, "_", value.node->name())},
                  {"send_device", from.name},
                  {"send_device_incarnation", static_cast<std::int64_t>(from.incarnation)},
                  {"recv_device", to.name},
                  {"client_terminated", false}};
    Node* send = cut_.add({.op = &ops_.get(host ? "_HostSend" : "_Send"),
                           .name = new_name(value.node->name(), suffix),
                           .inputs = {value},
                           .attrs = attrs,
                           .control_inputs = {},
                           .device = {},
                           .where = value.node->where()},
                          cut_.device(*value.node));
    sends_.push_back(send);
    attrs.set("tensor_type", dtype);
    if (live_) attrs.set(kAlwaysLiveAttr, true);
    std::vector<Node*> before;
    if (Node* pivot = loops_->pivot(*maker, cut_.part(reader))) before.push_back(pivot);
    Node* receive = cut_.add({.op = &ops_.get(host ? "_HostRecv" : "_Recv"),
                              .name = new_name(value.node->name(), suffix),
                              .inputs = {},
                              .attrs = std::move(attrs),
                              .control_inputs = std::move(before),
                              .device = {},
                              .where = value.node->where()},
                             cut_.device(reader));
    graph_.set_output_shape(receive, 0, value.node->output_shape(value.index));
    return receive;
  }

  std::string new_name(const std::string& name, const char* suffix) {
    return cat(name, suffix, assigned_.name_tag, ++names_);
  }
  const std::string& device_name(const Node& node) const {
    return at(assigned_.devices, cut_.device(node)).name;
  }

  static constexpr int kControl = -1;

  AssignedGraph& assigned_;
  Graph& graph_;
  const OpRegistry& ops_;
  const Parts& parts_;
  const bool live_;  // no value is ever dead
  CutGraph cut_;
  std::optional<ControlLoops> loops_;
  std::map<std::tuple<int, int, int>, Output> arrivals_;  // by node, output and part
  std::vector<Node*> sends_;
  int edges_ = 0;
  int names_ = 0;
};

}  // namespace

std::vector<GraphPart> partition(AssignedGraph assigned, const OpRegistry& ops, PartitionBy by,
                                 bool may_optimize) {
  for (const auto& node : assigned.function.graph.nodes()) {
    const auto id = static_cast<std::size_t>(node->id());
    const int device = id < assigned.device_of.size() ? assigned.device_of[id] : -1;
    if (device < 0 || device >= static_cast<int>(assigned.devices.size())) {
      throw InvalidArgumentError(
          cat(node->describe(), " is assigned to no device, so the graph cannot be partitioned."));
    }
  }
  const Parts parts(assigned.devices, by);
  Cutter cutter(assigned, ops, parts);
  cutter.cut_edges();
  std::vector<GraphPart> result;
  for (std::size_t p = 0; p < parts.names.size(); ++p) {
    if (cutter.uses(static_cast<int>(p)))
      result.push_back(cutter.part(static_cast<int>(p), may_optimize));
  }
  return result;
}

}  // namespace tandem
