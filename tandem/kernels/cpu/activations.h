#pragma once

#include "tandem/core/error.h"
#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// The output of an activation's gradient op, which has inputs of one shape and may take over
/// either's memory.
inline Array& gradient_output(KernelContext& c) {
  const Shape& gradients = c.input(0).shape();
  const Shape& features = c.input(1).shape();
  if (gradients != features) {
    throw InvalidArgumentError(cat("Inputs to operation ", c.node_name(), " of type ", c.op().name,
                                   " must have the same size and shape.  Input 0: ", gradients,
                                   " != input 1: ", features));
  }
  return c.reuse_or_allocate_output(c.may_overwrite_input(0) ? 0 : 1, 0, gradients);
}

}  // namespace tandem::cpu
