#pragma once

#include <vector>

#include "tandem/graph/graph.h"

namespace tandem {
class Evaluator;
}  // namespace tandem

namespace tandem::passes {

/// float, half or bfloat16: what fused elementwise ops of every device read and write.
bool is_fusible_dtype(DType dtype);

/// Inputs that hold values, not shapes.
std::vector<Output> value_inputs(const Node& node);

/// Whether a fused op can do what the node does: element by element, on float, half or bfloat16,
/// with a kernel that has loops for it.
bool is_fusible(const Node& node, Evaluator& evaluator);
/// Whether it goes element by element on double alone, which devices with fused ops of their own
/// may do.
bool is_fusible_in_double(const Node& node);

}  // namespace tandem::passes
