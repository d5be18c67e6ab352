#pragma once

#include <vector>

#include "tandem/device/device.h"
#include "tandem/graph/graph.h"
#include "tandem/graph/kernel.h"

namespace tandem {

class OpRegistry;

/// Runs a kernel on a thread of a device with memory of its own, and leaves each output where it
/// belongs: in the device's memory, or on the host where `context.host_outputs_` or the dtype says
/// so. Arrays of the device are kernel views. Throws what the kernel throws.
///
/// On a device that does not compute, kernels run only for what host code may look at (integers,
/// booleans, objects, shapes that depend on values) and for what only hands values on; other
/// outputs are memory that nobody wrote to. `node` gives shapes, where there is one.
void run_device_kernel(const KernelList& kernels, KernelContext& context, const Node* node);

/// Floating-point operations and bytes of device memory that a stream is told of a kernel.
struct KernelWork {
  double flops = 0;
  double bytes = 0;
};
KernelWork work_of(const Node& node);

/// An op called with values, as a graph's node would be: what is known of it before it runs.
class CalledNode {
 public:
  /// With complete attributes. Inputs may be kernel views.
  CalledNode(const OpRegistry& ops, const OpDef& op, const std::vector<Array>& inputs,
             const AttrMap& attrs);
  ~CalledNode();
  KernelWork work() const;
  /// Null unless the shape of each output is known and no output lies on the host: then memory can
  /// be had before the kernel runs.
  const Node* with_known_results() const;

 private:
  Graph graph_;
  const Node* node_ = nullptr;  ///< null: nothing is known
  double handed_over_ = 0;      ///< bytes of the inputs
};

}  // namespace tandem
