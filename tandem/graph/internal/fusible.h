#pragma once

#include <vector>

#include "tandem/graph/graph.h"

namespace tandem {
class Evaluator;
}  // namespace tandem

namespace tandem::passes {

/// float or bfloat16: what fused elementwise ops read and write.
bool is_fusible_dtype(DType dtype);

/// Inputs that hold values, not shapes.
std::vector<Output> value_inputs(const Node& node);

/// Whether a fused op can do what the node does: element by element, on float or bfloat16, with a
/// kernel that has loops for it.
bool is_fusible(const Node& node, Evaluator& evaluator);

}  // namespace tandem::passes
