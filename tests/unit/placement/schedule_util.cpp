#include "tests/unit/placement/schedule_util.h"

namespace tandem::schedule_test {
namespace {

const OpRegistration kWork{
    {.name = "ScheduleWork",
     .inputs = "values: N * float",
     .outputs = "output: float",
     .attrs = "N: int >= 0; flops: float; shape: shape",
     .shape = [](InferenceContext& c) { c.set_output(0, c.attr<PartialShape>("shape")); },
     .flops = [](const Node& node) { return static_cast<double>(node.attr<float>("flops")); }}};
const OpRegistration kVariable{{.name = "ScheduleVariable",
                                .outputs = "handle: resource",
                                .attrs = "shape: shape; dtype: type",
                                .shape = shapes::scalar,
                                .traits = {.kind = NodeKind::kVariable, .stateful = true}}};
const OpRegistration kSame{{.name = "ScheduleSame",
                            .inputs = "x: float",
                            .outputs = "y: float",
                            .shape = shapes::unchanged,
                            .traits = {.shares_memory = 1}}};

void nothing(KernelContext&) {}
const KernelRegistration kWorkKernel{{.op = "ScheduleWork", .run = nothing}};
const KernelRegistration kVariableKernel{{.op = "ScheduleVariable", .run = nothing}};
const KernelRegistration kSameKernel{{.op = "ScheduleSame", .run = nothing}};

PartialShape floats(double bytes) { return PartialShape{static_cast<std::int64_t>(bytes / 4)}; }

}  // namespace

Node* WorkGraph::add(const char* op, const std::string& name, const std::vector<Node*>& inputs,
                     AttrMap attrs, const std::string& device) {
  static const OpRegistry registry;
  Graph::NodeSpec spec;
  spec.op = &registry.get(op);
  spec.name = name;
  for (Node* in : inputs) spec.inputs.push_back({in, 0});
  spec.attrs = std::move(attrs);
  spec.device = device;
  return graph.add(std::move(spec));
}

Node* WorkGraph::work(const std::string& name, double flops, const std::vector<Node*>& inputs,
                      double bytes, const std::string& device) {
  return add("ScheduleWork", name, inputs,
             {{"N", static_cast<std::int64_t>(inputs.size())},
              {"flops", static_cast<float>(flops)},
              {"shape", floats(bytes)}},
             device);
}

Node* WorkGraph::arg(const std::string& name, double bytes) {
  static const OpRegistry registry;
  Graph::NodeSpec spec;
  spec.op = &registry.of_kind(NodeKind::kArg);
  spec.name = name;
  spec.attrs = {{"T", DType::kFloat}, {"index", 0}};
  Node* node = graph.add(std::move(spec));
  graph.set_output_shape(node, 0, floats(bytes));
  return node;
}

Node* WorkGraph::variable(const std::string& name, double bytes) {
  return add("ScheduleVariable", name, {}, {{"shape", floats(bytes)}, {"dtype", DType::kFloat}});
}

Node* WorkGraph::same(const std::string& name, Node* input) {
  return add("ScheduleSame", name, {input}, {});
}

Placement all_on(const Graph& graph, const DeviceSet& devices, int device) {
  Placement placement;
  placement.devices = devices;
  placement.nodes.resize(static_cast<std::size_t>(graph.id_limit()));
  for (NodePlacement& node : placement.nodes) node.device = device;
  return placement;
}

}  // namespace tandem::schedule_test
