#include "tandem/runtime/execute/kernel_evaluator.h"

#include <algorithm>

#include "tandem/graph/kernel.h"
#include "tandem/runtime/runtime.h"

namespace tandem {

std::optional<std::vector<Array>> KernelEvaluator::evaluate(const Node& node,
                                                            std::span<const Array> inputs) {
  const Device& device = runtime_.default_device();
  const KernelList* kernels =
      runtime_.kernels().find(node.op(), device.kernel_class(), node.attrs());
  if (!kernels) return std::nullopt;
  std::vector<const Array*> in;
  for (const Array& a : inputs) in.push_back(&a);
  std::vector<Array> outputs(static_cast<std::size_t>(node.num_outputs()));
  std::vector<Array*> out;
  for (Array& a : outputs) out.push_back(&a);
  KernelContext context;
  context.op_ = &node.op();
  context.attrs_ = &node.attrs();
  context.node_name_ = node.name();
  context.inputs_ = in.data();
  context.outputs_ = out.data();
  context.output_dtypes_ = node.output_dtypes().data();
  context.num_inputs_ = static_cast<int>(in.size());
  context.set_num_outputs(static_cast<int>(out.size()));
  context.services_ = &runtime_.services(device);
  const KernelDecl& kernel = kernels->choose(context);
  if (!kernel.run) return std::nullopt;
  run_kernel(kernel, context);
  return outputs;
}

bool KernelEvaluator::has_float_loops(const Node& node) {
  const KernelList* kernels =
      runtime_.kernels().find(node.op(), runtime_.default_device().kernel_class(), node.attrs());
  return kernels && std::any_of(kernels->candidates.begin(), kernels->candidates.end(),
                                [](const KernelDecl* k) { return k->float_loops != nullptr; });
}

}  // namespace tandem
