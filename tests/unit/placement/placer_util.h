#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tandem/graph/graph.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"
#include "tandem/placement/placement.h"

namespace tandem::placer_test {

/// CPUs, then GPUs that run the CPU's kernels as emulated ones do.
inline DeviceSet devices(int cpus, int gpus = 0) {
  DeviceSet set;
  for (int i = 0; i < cpus + gpus; ++i) {
    DeviceModel device;
    device.spec = DeviceSpec::parse("/job:localhost/replica:0/task:0/device:CPU:0");
    device.spec.type = i < cpus ? "CPU" : "GPU";
    device.spec.index = i < cpus ? i : i - cpus;
    device.host_memory = i < cpus;
    device.flops = 1e9;
    device.memory_bandwidth = 1e9;
    if (i >= cpus) {
      device.link_bandwidth = 1e9;
      device.link_latency = 1e-6;
    }
    set.devices.push_back(std::move(device));
  }
  return set;
}

/// A graph made line by line, and where its nodes go.
class Scene {
 public:
  explicit Scene(DeviceSet set) : devices(std::move(set)) {}

  Node* add(const char* op, std::string name, std::vector<Output> inputs = {},
            std::string device = "", AttrMap attrs = {}, std::vector<Node*> controls = {}) {
    Graph::NodeSpec spec;
    spec.op = &ops().get(op);
    spec.name = std::move(name);
    spec.inputs = std::move(inputs);
    spec.attrs = std::move(attrs);
    spec.control_inputs = std::move(controls);
    spec.device = std::move(device);
    return graph.add(std::move(spec));
  }
  /// A float that no node makes from others.
  Node* source(std::string name, std::string device = "", DType dtype = float32,
               PartialShape shape = Shape{2, 3}) {
    return add("Placeholder", std::move(name), {}, std::move(device),
               {{"dtype", dtype}, {"shape", std::move(shape)}});
  }
  /// Not a source, so that it is placed before its users are.
  Node* value(const std::string& name, std::string device = "", DType dtype = float32) {
    return add("Identity", name, {{source(name + "_from", "", dtype), 0}}, std::move(device));
  }
  Node* variable(std::string name, std::string device = "", DType dtype = float32) {
    return add("VarHandleOp", std::move(name), {}, std::move(device),
               {{"dtype", dtype}, {"shape", PartialShape(Shape{2, 3})}});
  }

  void run() { placement = place(graph, CostModel(devices), kernels(), options); }
  /// "GPU:0"
  std::string where(const Node* node) const {
    const DeviceSpec& spec =
        devices.devices[static_cast<std::size_t>(placement.device(*node))].spec;
    return *spec.type + ":" + std::to_string(*spec.index);
  }
  /// What `run` throws; "" if nothing.
  std::string failure() {
    try {
      run();
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

  static const OpRegistry& ops() {
    static const OpRegistry registry;
    return registry;
  }
  static const KernelRegistry& kernels() {
    static const KernelRegistry registry;
    return registry;
  }

  DeviceSet devices;
  Graph graph;
  PlacementOptions options;
  Placement placement;
};

}  // namespace tandem::placer_test
