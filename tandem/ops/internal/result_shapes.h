#pragma once

#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/function.h"
#include "tandem/graph/inference_context.h"

namespace tandem::internal {

/// The shapes of the results of a function that a node runs; refuses one that returns another
/// number of values than the node has outputs.
inline std::vector<PartialShape> result_shapes(const InferenceContext& c, const FunctionRef& f) {
  std::vector<PartialShape> shapes = f->result_shapes();
  if (static_cast<int>(shapes.size()) != c.num_outputs()) {
    c.fail(cat("function '", f->name(), "' returns ", shapes.size(), " values where ",
               c.num_outputs(), " are needed."));
  }
  return shapes;
}

}  // namespace tandem::internal
