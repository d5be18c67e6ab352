#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tandem/graph/op_def.h"
#include "tandem/runtime/execute/placed_function.h"
#include "tandem/runtime/execute/plan.h"

namespace tandem {

// Which values may lie in which memory, by what their ops declare (OpTraits): for plans, and for
// those who follow plans without running them.

/// Whether the outputs are values that a kernel makes, in memory that it asks for.
inline bool makes_plain_value(const Node& node) {
  return node.kind() == NodeKind::kPlain || is_copy(node);
}

/// Whether the function that a step calls, or its kernel, may hold on to an input afterwards.
inline bool retains_input(const Step& step, std::size_t input) {
  return calls_functions(step.node->kind()) ||
         (input < 32 && ((step.node->op().traits.retains_inputs >> input) & 1) != 0);
}

/// Whether an output lies in memory that the kernel brings along.
inline bool owns_output_memory(const Step& step, std::size_t output) {
  return output < 32 && ((step.node->op().traits.owns_output_memory >> output) & 1) != 0;
}

/// Whether an output shares the memory of the input of its number.
inline bool shares_input(const Step& step, std::size_t output) {
  const std::uint32_t shares = step.node->op().traits.shares_memory;
  return output < step.inputs.size() && ((shares >> std::min<std::size_t>(output, 31)) & 1) != 0;
}

/// The first input whose memory an output may take over, as far as the op goes, and for which
/// `suits(input)` holds; -1: none.
template <class Suits>
int input_to_reuse(const Step& step, std::size_t output, Suits suits) {
  if (output != 0) return -1;
  for (std::size_t i = 0; i < step.inputs.size() && i < 32; ++i) {
    if (((step.node->op().traits.may_reuse >> i) & 1) && suits(i)) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace tandem
