#pragma once

#include <vector>

#include "tandem/device/device.h"
#include "tandem/graph/graph.h"
#include "tandem/graph/kernel.h"

namespace tandem {

class OpRegistry;
class Runtime;

/// The kernels that serve an op on a device: those of its class, or the host's for host work
/// (`is_host_work`; a device's own where the host has none).
const KernelList& kernels_on(const Runtime& runtime, const Device& device, const OpDef& op,
                             const AttrMap& attrs, bool host_work);
const KernelList& kernels_on(const Runtime& runtime, const Device& device, const Node& node);

/// Which inputs of a kernel were never computed, in short.
///
/// What comes of such values was not computed either, wherever it is made: reading it is an error.
/// Inside, integers of that kind are 0, so that they serve as indices, booleans are true, so that a
/// loop runs for its maximum_iterations, and strings say so.
struct UnmaterializedInputs {
  UnmaterializedInputs() = default;
  /// Finds what the inputs' buffers record, and the variables that they are handles of.
  explicit UnmaterializedInputs(const KernelContext& context);
  /// The input, too: it lies in memory that a plan shares out, whose buffer does not record it.
  void add(const KernelContext& context, int input);

  bool any = false;
  bool numbers = false;    ///< not only booleans
  bool on_host = false;    ///< where the op reads elements on the host
  int host_integers = -1;  ///< one of that kind; -1: none
};

/// True for an output that is not computed: it comes of inputs that were not, or of floats on a
/// device that does not compute.
bool comes_unmaterialized(const KernelContext& context, int output,
                          const UnmaterializedInputs& inputs);

/// Marks what the buffer of an array is alone.
void mark_unmaterialized(const Array& value);

/// True if the kernel need not run, since nothing that it would compute can be read; the outputs
/// are then there. `node` gives shapes, where there is one.
bool skip_kernel(KernelContext& context, const Node* node, const UnmaterializedInputs& inputs);

/// After a kernel that ran, on any device: its outputs, and the variables that it changed.
void mark_results(KernelContext& context, const UnmaterializedInputs& inputs);

/// Runs a kernel on a thread of a device with memory of its own, and leaves each output where it
/// belongs: in the device's memory, or on the host where `context.host_outputs_` or the dtype says
/// so. Arrays of the device are kernel views. Throws what the kernel throws.
///
/// On a device that does not compute, kernels run only for what host code may look at (integers,
/// booleans, objects, shapes that depend on values) and for what only forwards values; other
/// outputs are memory that was never written.
void run_device_kernel(const KernelList& kernels, KernelContext& context, const Node* node,
                       const UnmaterializedInputs& inputs);

/// Whether the case's kernels are of the asynchronous form alone. Such a kernel is started by a
/// host thread, when its inputs are there, and gives the device what work it has itself.
bool only_asynchronous(const KernelList& kernels);

/// After an asynchronous kernel on a device with memory of its own: leaves each output where it
/// belongs, as run_device_kernel does.
void end_device_kernel(KernelContext& context, const UnmaterializedInputs& inputs);

/// Floating-point operations and bytes of device memory that a stream is given for a kernel: none
/// where a device that only takes time makes no floats (CostModel::makes_no_floats).
struct KernelWork {
  double flops = 0;
  double bytes = 0;
};
KernelWork work_of(const Node& node, const Device& device);

/// An op called with values, as a graph's node would be: what is known of it before it runs.
class CalledNode {
 public:
  /// With complete attributes. Inputs may be kernel views.
  CalledNode(const OpRegistry& ops, const OpDef& op, const std::vector<Array>& inputs,
             const AttrMap& attrs);
  ~CalledNode();
  KernelWork work(const Device& device) const;
  /// Null if nothing is known.
  const Node* node() const { return node_; }
  /// Null unless the shape of each output is known and no output lies on the host: then memory can
  /// be had before the kernel runs.
  const Node* with_known_results() const;

 private:
  Graph graph_;
  const Node* node_ = nullptr;  ///< null: nothing is known
  double handed_over_ = 0;      ///< bytes of the inputs
};

}  // namespace tandem
