// Graphs of nodes that cost what they declare, for measuring placement.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/graph/graph.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"
#include "tandem/placement/cost_model.h"
#include "tandem/placement/device_set.h"

namespace bench {

using tandem::DType;
using tandem::Graph;
using tandem::Node;
using tandem::Output;

// Any number of inputs, one output of a given size, a given number of operations.
inline const tandem::OpRegistration kWorkOp{
    {.name = "BenchWork",
     .inputs = "values: N * float",
     .outputs = "output: float",
     .attrs = "N: int >= 0; flops: float; shape: shape",
     .shape =
         [](tandem::InferenceContext& c) {
           c.set_output(0, c.attr<tandem::PartialShape>("shape"));
         },
     .flops = [](const Node& node) { return static_cast<double>(node.attr<float>("flops")); }}};
inline const tandem::KernelRegistration kWorkKernel{
    {.op = "BenchWork", .run = [](tandem::KernelContext&) {}}};

// A network's weight: a variable, and what reads it.
inline const tandem::OpRegistration kWeightOp{
    {.name = "BenchWeight",
     .outputs = "handle: resource",
     .attrs = "shape: shape; dtype: type",
     .shape = tandem::shapes::scalar,
     .traits = {.kind = tandem::NodeKind::kVariable, .stateful = true}}};
inline const tandem::OpRegistration kReadOp{
    {.name = "BenchRead",
     .inputs = "handle: resource",
     .outputs = "output: float",
     .attrs = "shape: shape",
     .shape =
         [](tandem::InferenceContext& c) {
           c.set_output(0, c.attr<tandem::PartialShape>("shape"));
         },
     .traits = {.stateful = true, .reads_only = true, .owns_output_memory = 1}}};
inline const tandem::OpRegistration kGatherOp{{.name = "BenchGather",
                                               .inputs = "handle: resource, indices: float",
                                               .outputs = "output: float",
                                               .attrs = "shape: shape",
                                               .shape =
                                                   [](tandem::InferenceContext& c) {
                                                     c.set_output(
                                                         0, c.attr<tandem::PartialShape>("shape"));
                                                   },
                                               .traits = {.stateful = true, .reads_only = true}}};
inline const tandem::KernelRegistration kGatherKernel{
    {.op = "BenchGather", .run = [](tandem::KernelContext&) {}}};
inline const tandem::OpRegistration kUpdateOp{{.name = "BenchUpdate",
                                               .inputs = "handle: resource, gradient: float",
                                               .traits = {.stateful = true}}};
inline const tandem::KernelRegistration kWeightKernel{
    {.op = "BenchWeight", .run = [](tandem::KernelContext&) {}}};
inline const tandem::KernelRegistration kReadKernel{
    {.op = "BenchRead", .run = [](tandem::KernelContext&) {}}};
inline const tandem::KernelRegistration kUpdateKernel{
    {.op = "BenchUpdate", .run = [](tandem::KernelContext&) {}}};

// Builds a graph node by node.
class WorkGraph {
 public:
  Node* work(const std::string& name, const std::vector<Node*>& inputs, double flops, double bytes,
             const std::string& device = "") {
    std::vector<Output> values;
    for (Node* in : inputs) values.push_back({in, 0});
    return add("BenchWork", name, std::move(values),
               {{"N", static_cast<std::int64_t>(inputs.size())},
                {"flops", static_cast<float>(flops)},
                {"shape", floats(bytes)}},
               device);
  }
  Node* weight(const std::string& name, double bytes) {
    return add("BenchWeight", name, {}, {{"shape", floats(bytes)}, {"dtype", DType::kFloat}});
  }
  Node* read(const std::string& name, Node* weight, double bytes) {
    return add("BenchRead", name, {{weight, 0}}, {{"shape", floats(bytes)}});
  }
  // Reads as many bytes of a weight as it gives.
  Node* gather(const std::string& name, Node* weight, Node* indices, double bytes) {
    return add("BenchGather", name, {{weight, 0}, {indices, 0}}, {{"shape", floats(bytes)}});
  }
  Node* update(const std::string& name, Node* weight, Node* gradient) {
    return add("BenchUpdate", name, {{weight, 0}, {gradient, 0}}, {});
  }

  Graph graph;

 private:
  static tandem::PartialShape floats(double bytes) {
    return tandem::PartialShape{static_cast<std::int64_t>(std::max(1.0, std::round(bytes / 4)))};
  }
  Node* add(const char* op, const std::string& name, std::vector<Output> inputs,
            tandem::AttrMap attrs, const std::string& device = "") {
    static const tandem::OpRegistry registry;
    Graph::NodeSpec spec;
    spec.op = &registry.get(op);
    spec.name = name;
    spec.inputs = std::move(inputs);
    spec.attrs = std::move(attrs);
    spec.device = device;
    return graph.add(std::move(spec));
  }
};

// A generator whose numbers are the same on every platform.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // From `low` to `high`, both among them.
  int between(int low, int high) {
    return low + static_cast<int>(next() % static_cast<std::uint64_t>(high - low + 1));
  }
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(next() >> 11) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

// A layered graph: nodes of random work in layers of random width, each with one to three inputs
// from the layers just before. A value's copy takes `ratio` times as long as a node's work on the
// first accelerator, in the mean.
inline Graph layered_graph(const tandem::DeviceSet& devices, int nodes, double ratio,
                           std::uint64_t seed) {
  Random random(seed);
  const tandem::DeviceModel& accelerator = devices.devices.at(1);
  const double mean = std::max(200e-6, 20 * accelerator.link_latency);
  const double copied = std::max(0.0, ratio * mean - accelerator.link_latency);
  const int width = std::max(2, static_cast<int>(std::sqrt(nodes) * random.between(0.4, 1.6)));
  WorkGraph made;
  std::vector<Node*> all;
  std::size_t before = 0, begin = 0;  // of the layer before this one, and of this one
  while (static_cast<int>(all.size()) < nodes) {
    const int left = nodes - static_cast<int>(all.size());
    const int count = std::min(left, random.between(1, 2 * width));
    const std::size_t end = all.size();
    for (int i = 0; i < count; ++i) {
      std::vector<Node*> inputs;
      if (end > 0) {
        const int wanted = random.between(1, 3);
        for (int k = 0; k < wanted; ++k) {
          // Mostly of the last layer.
          const std::size_t first = random.between(0, 4) == 0 ? before : begin;
          Node* input = all[first + random.next() % (end - first)];
          if (std::find(inputs.begin(), inputs.end(), input) == inputs.end())
            inputs.push_back(input);
        }
      }
      const double seconds = mean * random.between(0.2, 1.8);
      all.push_back(made.work("n" + std::to_string(all.size()), inputs, seconds * accelerator.flops,
                              copied * random.between(0.5, 1.5) * accelerator.link_bandwidth));
    }
    before = begin;
    begin = end;
  }
  return std::move(made.graph);
}

}  // namespace bench
