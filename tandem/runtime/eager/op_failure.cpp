#include "tandem/runtime/eager/op_failure.h"

#include "tandem/core/error.h"
#include "tandem/graph/graph.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/runtime/tensor_impl.h"

namespace tandem {

std::exception_ptr op_failure(const OpDef& op, std::span<const Tensor> inputs,
                              const std::exception_ptr& error) {
  std::string line = cat("[Op:", op.name, "]");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    line += i ? ", " : " inputs: ";
    line += inputs[i].defined() ? cat(inputs[i].dtype(), inputs[i].partial_shape()) : "undefined";
  }
  return with_line(error, line);
}

void throw_op_failure(const OpDef& op, std::span<const Tensor> inputs) {
  std::rethrow_exception(op_failure(op, inputs, std::current_exception()));
}

std::exception_ptr node_failure(const Node& node, const KernelContext& context,
                                std::exception_ptr error) {
  std::string line = cat("[[", node.describe(), "]]");
  for (int i = 0; i < context.num_inputs(); ++i) {
    line += i ? ", " : " inputs: ";
    const Array& a = context.input(i);
    line += a.valid() ? cat(a.dtype(), a.shape()) : "none";
  }
  return with_line(std::move(error), line);
}

}  // namespace tandem
