// The networks whose placement is measured, with the work and sizes of their real layers, and where
// somebody who knows them would put things.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/devices/judge.h"
#include "bench/devices/work_graph.h"

namespace bench {

struct Network {
  std::string name;
  WorkGraph made;
  std::function<int(const Node&, int accelerators)> hand;  // 0: the host, then the accelerators

  const Graph& graph() const { return made.graph; }
};

// Layers with weights, forward, and backward from the last to the first.
class Layers {
 public:
  explicit Layers(WorkGraph& graph) : graph_(graph) {}

  // A layer that is done by `flops` operations forward and gives `bytes`.
  Node* add(const std::string& name, const std::vector<Node*>& inputs, double flops, double bytes,
            double weight_bytes = 0) {
    Step step{name, inputs, nullptr, nullptr, flops, weight_bytes};
    std::vector<Node*> all = inputs;
    if (weight_bytes > 0) {
      step.weight = graph_.weight(name + "/weight", weight_bytes);
      all.push_back(graph_.read(name + "/read", step.weight, weight_bytes));
    }
    step.out = graph_.work(name, all, flops, bytes);
    steps_.push_back(step);
    return step.out;
  }

  // Gradients: of a layer's inputs, and of its weight, each as much work as the layer itself.
  void backward(Node* loss) {
    std::vector<std::pair<Node*, std::vector<Node*>>> gradients{{steps_.back().out, {loss}}};
    const auto of = [&](Node* value) -> std::vector<Node*>& {
      for (auto& [node, list] : gradients) {
        if (node == value) return list;
      }
      return gradients.emplace_back(value, std::vector<Node*>()).second;
    };
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      std::vector<Node*> arrived = of(step->out);
      if (arrived.empty()) continue;
      Node* gradient = arrived.front();
      if (arrived.size() > 1) {
        const double bytes = CostModel::output_bytes(*step->out, 0);
        gradient = graph_.work(step->name + "/sum", arrived, bytes / 4, bytes);
      }
      for (Node* input : step->inputs) {
        if (!of_layer(input)) continue;
        std::vector<Node*> needs{gradient, input};
        Node* back = graph_.work(step->name + "/grad", needs, step->flops,
                                 CostModel::output_bytes(*input, 0));
        of(input).push_back(back);
      }
      if (step->weight == nullptr) continue;
      std::vector<Node*> needs{gradient};
      needs.insert(needs.end(), step->inputs.begin(), step->inputs.end());
      Node* change =
          graph_.work(step->name + "/weight_grad", needs, step->flops, step->weight_bytes);
      graph_.update(step->name + "/update", step->weight, change);
    }
  }

 private:
  struct Step {
    std::string name;
    std::vector<Node*> inputs;
    Node* out;
    Node* weight;
    double flops;
    double weight_bytes;
  };
  bool of_layer(const Node* node) const {
    for (const Step& step : steps_) {
      if (step.out == node) return true;
    }
    return false;
  }
  WorkGraph& graph_;
  std::vector<Step> steps_;
};

inline bool contains(const Node& node, const char* part) {
  return node.name().find(part) != std::string::npos;
}

// ResNet50, a step of training with 16 images of 224 x 224. A chain: by hand all on one device.
inline Network resnet50_training() {
  Network network{"resnet50_training", {}, [](const Node&, int) { return 1; }};
  Layers layers(network.made);
  constexpr double kBatch = 16;
  const auto convolution = [&](const std::string& name, Node* in, double size, double k,
                               double from, double to) {
    const double pixels = kBatch * size * size;
    Node* out = layers.add(name, {in}, 2 * pixels * k * k * from * to, 4 * pixels * to,
                           4 * k * k * from * to);
    return layers.add(name + "/norm_relu", {out}, 8 * pixels * to, 4 * pixels * to, 16 * to);
  };
  Node* images = network.made.work("images", {}, 0, 4 * kBatch * 224 * 224 * 3);
  Node* at = convolution("conv1", images, 112, 7, 3, 64);
  at = layers.add("pool1", {at}, kBatch * 56 * 56 * 64 * 9, 4 * kBatch * 56 * 56 * 64);
  const int blocks[] = {3, 4, 6, 3};
  double size = 56, width = 64, from = 64;
  for (int stage = 0; stage < 4; ++stage) {
    for (int block = 0; block < blocks[stage]; ++block) {
      const std::string name = "conv" + std::to_string(stage + 2) + "/" + std::to_string(block);
      Node* skip = at;
      if (block == 0) skip = convolution(name + "/skip", at, size, 1, from, 4 * width);
      at = convolution(name + "/a", at, size, 1, from, width);
      at = convolution(name + "/b", at, size, 3, width, width);
      at = convolution(name + "/c", at, size, 1, width, 4 * width);
      const double values = kBatch * size * size * 4 * width;
      at = layers.add(name + "/add", {at, skip}, 2 * values, 4 * values);
      from = 4 * width;
    }
    size /= 2;
    width *= 2;
  }
  at = layers.add("mean", {at}, kBatch * 49 * 2048, 4 * kBatch * 2048);
  at = layers.add("dense", {at}, 2 * kBatch * 2048 * 1000, 4 * kBatch * 1000, 4 * 2048 * 1000);
  layers.backward(network.made.work("loss", {at}, kBatch * 1000 * 10, 4 * kBatch * 1000));
  return network;
}

// Two towers over one input, joined at the end, and trained: by hand a tower a device.
inline Network two_branches() {
  Network network{"two_branches", {}, [](const Node& node, int accelerators) {
                    return accelerators > 1 && contains(node, "right/") ? 2 : 1;
                  }};
  Layers layers(network.made);
  constexpr double kBatch = 32, kWidth = 2048;
  Node* input = network.made.work("input", {}, 0, 4 * kBatch * kWidth);
  std::vector<Node*> ends;
  for (const char* tower : {"left/", "right/"}) {
    Node* at = input;
    for (int i = 0; i < 12; ++i) {
      at = layers.add(tower + std::to_string(i), {at}, 2 * kBatch * kWidth * kWidth,
                      4 * kBatch * kWidth, 4 * kWidth * kWidth);
    }
    ends.push_back(at);
  }
  Node* joined = layers.add("join", ends, 4 * kBatch * kWidth, 4 * kBatch * kWidth);
  layers.backward(network.made.work("loss", {joined}, kBatch * kWidth, 4 * kBatch * kWidth));
  return network;
}

// A table of 6 GiB, of which a batch reads and changes some rows, and a small network over them.
// The samples are on the host. By hand the table and what works on it are on one accelerator.
inline Network embedding() {
  Network network{
      "embedding", {}, [](const Node& node, int) { return contains(node, "samples") ? 0 : 1; }};
  Layers layers(network.made);
  constexpr double kBatch = 4096, kFeatures = 32, kWidth = 64;
  const double rows = 4 * kBatch * kFeatures * kWidth;
  Node* samples =
      network.made.work("samples", {}, kBatch * kFeatures, 8 * kBatch * kFeatures, "/CPU:0");
  Node* table = network.made.weight("table", 6.0 * (1 << 30));
  Node* looked_up = network.made.gather("lookup", table, samples, rows);
  double from = kFeatures * kWidth;
  Node* at = layers.add("rows", {looked_up}, rows / 4, rows);
  for (const double to : {1024.0, 512.0, 256.0, 1.0}) {
    at = layers.add("dense" + std::to_string(static_cast<int>(to)), {at}, 2 * kBatch * from * to,
                    4 * kBatch * to, 4 * from * to);
    from = to;
  }
  layers.backward(network.made.work("loss", {at}, 10 * kBatch, 4 * kBatch));
  Node* gradient =
      network.made.work("rows_grad", {network.made.graph.find("dense1024/grad")}, rows / 4, rows);
  network.made.update("table_update", table, gradient);
  return network;
}

// Six layers of width 768 over 8 x 512 words, attention and the wide layers in four parts. By hand
// the parts go round the accelerators.
inline Network transformer() {
  Network network{"transformer", {}, [](const Node& node, int accelerators) {
                    for (int part = 0; part < 4; ++part) {
                      if (contains(node, ("part" + std::to_string(part)).c_str())) {
                        return 1 + part % accelerators;
                      }
                    }
                    return 1;
                  }};
  Layers layers(network.made);
  constexpr double kBatch = 8, kWords = 512, kWidth = 768, kParts = 4;
  const double values = kBatch * kWords * kWidth;
  Node* at = network.made.work("words", {}, 0, 4 * values);
  for (int layer = 0; layer < 6; ++layer) {
    const std::string name = "layer" + std::to_string(layer) + "/";
    for (const bool attention : {true, false}) {
      std::vector<Node*> parts;
      for (int p = 0; p < kParts; ++p) {
        const std::string part =
            name + (attention ? "attention" : "wide") + "/part" + std::to_string(p);
        const double scores = kBatch * kWords * kWords * kWidth / kParts;
        const double flops = attention ? 2 * values * 3 * kWidth / kParts + 4 * scores
                                       : 2 * values * 4 * kWidth / kParts;
        const double out = attention ? values / kParts : 4 * values / kParts;
        Node* inner = layers.add(part + "/in", {at}, flops, 4 * out,
                                 (attention ? 3 : 4) * 4 * kWidth * kWidth / kParts);
        parts.push_back(layers.add(part + "/out", {inner}, 2 * out * kWidth, 4 * values,
                                   4 * kWidth * kWidth * (attention ? 1 : 4) / kParts));
      }
      parts.push_back(at);
      at = layers.add(name + (attention ? "attention/sum" : "wide/sum"), parts,
                      values * (kParts + 8), 4 * values);
    }
  }
  layers.backward(network.made.work("loss", {at}, 10 * values, 4 * values));
  return network;
}

inline Placement by_hand(const Network& network, const CostModel& costs) {
  Placement placement = all_on(network.graph(), costs, 0);
  for (const auto& node : network.graph().nodes()) {
    placement.nodes[static_cast<std::size_t>(node->id())].device =
        network.hand(*node, costs.devices().size() - 1);
  }
  return placement;
}

}  // namespace bench
