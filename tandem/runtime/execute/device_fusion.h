#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tandem/graph/fusion_target.h"
#include "tandem/graph/optimizer_options.h"
#include "tandem/graph/passes.h"
#include "tandem/placement/placement.h"

namespace tandem {

class OpRegistry;

/// A fusion of ops in a graph whose nodes have devices: one that was made, or why it was not.
struct Fusion {
  std::string ops;   ///< "Conv2D + BiasAdd + Relu"
  std::string node;  ///< the node that computes them; the last of them if it was not made
  std::string op;    ///< "_FusedConv2D"; empty if that is not known
  int device = 0;    ///< index in the DeviceSet
  bool made = false;
  std::string reason;  ///< why not: "class cuda has no kernel for _FusedConv2D"
};

/// What the fusing passes ask where nodes are placed: ops of one device become one, which is placed
/// there too, if the device has a kernel for it. Refers to the placement and the kernels.
class DeviceFusion final : public FusionTarget {
 public:
  /// `any_kernel`: as if every device had all kernels.
  DeviceFusion(Placement& placement, const KernelRegistry& kernels, bool any_kernel = false);

  bool together(const Node& a, const Node& b) const override;
  bool accepts(std::span<Node* const> fused, std::span<const Node* const> replaced) override;
  Elementwise elementwise(const Node& node) const override;
  bool launches_cost_time(const Node& node) const override;
  void keep_apart(const Node& node, const Node& reader, const std::string& why) override;

  /// Why the node cannot run on the device: "class cuda has no kernel for Relu". Empty if it can.
  std::string refusal(const Node& node, int device) const;
  /// The fused nodes of the graph, in its order.
  std::vector<Fusion> made(const Graph& graph) const;
  /// What was refused for another reason than a kernel, each once.
  const std::vector<Fusion>& kept_apart() const { return kept_apart_; }

 private:
  void note(Fusion fusion);

  Placement& placement_;
  const KernelRegistry& kernels_;
  const bool any_kernel_;
  std::map<int, std::vector<std::string>> parts_;  // by id of fused nodes: op names
  std::vector<Fusion> kept_apart_;
};

/// Makes fused ops of a function that has been placed; in a graph with TensorFlow 1 control flow,
/// which is made for all shapes, only those that need no shapes. `fusions`, if given, receives
/// those that were made and those that were not, with the reason.
void fuse_placed(MutableFunction& function, Placement& placement, const OpRegistry& ops,
                 const KernelRegistry& kernels, Evaluator& evaluator,
                 const OptimizerOptions& options, std::vector<Fusion>* fusions = nullptr);

}  // namespace tandem
