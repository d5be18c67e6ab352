#include "tandem/runtime/eager/op_failure.h"

#include "tandem/core/error.h"
#include "tandem/graph/graph.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {
std::exception_ptr op_failure(const OpDef& op, std::span<const Tensor> inputs,
                              const std::exception_ptr& error) {
  std::string line = cat("[Op:", op.name, "]");
  const auto& cancellation = thread_context().cancellation;
  const bool overdue = code_of(error) == Code::kCancelled && cancellation &&
                       cancellation->reason() == Code::kDeadlineExceeded;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    line += i ? ", " : " inputs: ";
    line += inputs[i].defined() ? cat(inputs[i].dtype(), inputs[i].partial_shape()) : "undefined";
  }
  if (!overdue) return with_line(error, line);
  return with_line(
      std::make_exception_ptr(DeadlineExceededError(
          cat("The deadline has passed. Still running: ", op.name, ".\n", message_of(error)))),
      line);
}

void throw_op_failure(const OpDef& op, std::span<const Tensor> inputs) {
  std::rethrow_exception(op_failure(op, inputs, std::current_exception()));
}

std::exception_ptr node_failure(const Node& node, const KernelContext& context,
                                std::exception_ptr error) {
  const StepContext* const step = context.step();
  if (step && step->unfinished && step->cancellation && step->cancellation->cancelled()) {
    const Code code = code_of(error);
    if (code == Code::kCancelled || code == Code::kDeadlineExceeded)
      step->unfinished->add(node.name(), node.op().name);
  }
  std::string line = cat("[[", node.describe(), "]]");
  for (int i = 0; i < context.num_inputs(); ++i) {
    line += i ? ", " : " inputs: ";
    const Array& a = context.input(i);
    line += a.valid() ? cat(a.dtype(), a.shape()) : "none";
  }
  return with_line(std::move(error), line);
}

}  // namespace tandem
