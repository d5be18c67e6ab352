// TensorFlow 1 control flow outside of graphs: values are passed on. In graphs the executor does
// it.

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"

namespace tandem::cpu {
namespace {

void pass(KernelContext& c) { c.set_output(0, c.input(0)); }

// An eager call has no dead values: the output that is not taken is empty.
void switch_eagerly(KernelContext& c) {
  const Array& pred = c.input(1);
  if (pred.rank() != 0) {
    throw InvalidArgumentError(
        cat("The second input must be a scalar, but it has shape ", pred.shape(), "."));
  }
  const int taken = *pred.data<bool>() ? 1 : 0;
  c.set_output(taken, c.input(0));
  c.allocate_output(1 - taken, Shape{0});
}

void switch_reference(KernelContext& c) {
  const int taken = *c.input(1).data<bool>() ? 1 : 0;
  c.set_output(taken, c.input(0));
  c.set_output(1 - taken, c.input(0));
}

void merge_eagerly(KernelContext& c) {
  c.set_output(0, c.input(0));
  *c.allocate_output(1, Shape{}).data<std::int32_t>() = 0;
}

void nothing(KernelContext&) {}

void abort_run(KernelContext& c) {
  if (c.attr<bool>("exit_without_error")) return;
  const auto& text = c.attr<std::string>("error_msg");
  throw AbortedError(text.empty() ? "Abort was reached." : text);
}

const KernelRegistration kSwitch{{.op = "Switch", .run = switch_eagerly}};
const KernelRegistration kRefSwitch{{.op = "RefSwitch", .run = switch_reference}};
const KernelRegistration kMerge{{.op = "Merge", .run = merge_eagerly}};
const KernelRegistration kRefMerge{{.op = "RefMerge", .run = merge_eagerly}};
const KernelRegistration kEnter{{.op = "Enter", .run = pass}};
const KernelRegistration kRefEnter{{.op = "RefEnter", .run = pass}};
const KernelRegistration kExit{{.op = "Exit", .run = pass}};
const KernelRegistration kRefExit{{.op = "RefExit", .run = pass}};
const KernelRegistration kNext{{.op = "NextIteration", .run = pass}};
const KernelRegistration kRefNext{{.op = "RefNextIteration", .run = pass}};
const KernelRegistration kLoopCond{{.op = "LoopCond", .run = pass}};
const KernelRegistration kControlTrigger{
    {.op = "ControlTrigger", .kernel_class = "*", .run = nothing}};
const KernelRegistration kAbort{{.op = "Abort", .run = abort_run}};

}  // namespace
}  // namespace tandem::cpu
