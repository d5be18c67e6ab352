#pragma once

#include "tandem/core/export.h"
#include "tandem/graph/expand_functions.h"

namespace tandem::passes {

/// Replaces If, Case and While nodes (stateless or not) by the control flow of TensorFlow 1, whose
/// nodes may lie on different devices and tasks. Returns whether anything changed; errors are those
/// of `expand_functions`. Devices, order and errors are as in `inline_calls`.
///
/// Names, for a node `n`; where there are several, the second ends in `_1` and so on:
/// - If: `n/pred_id`, `n/Switch` for each argument, `n/then/pivot` and `n/else/pivot`, the bodies
///   `n/then/inner` and `n/else/inner`, `n/Merge` for each result (the else branch's first).
/// - Case: the same with `n/branch_N/…`, and a predicate `n/branch_N/pred` for each branch.
/// - While: `n/Enter` for each argument, with the node's parallel_iterations and `n` as frame name,
///   `n/Merge`, `n/cond/inner`, `n/LoopCond`, `n/Switch`, `n/body/inner`, `n/NextIteration`,
///   `n/Exit`. What the body returns as it came is entered once, as a constant of the loop.
/// - What waits for the node waits for `n/done`. Where a body has effects, an iteration begins when
///   those of the one before are over.
TANDEM_EXPORT bool lower_control_flow(MutableFunction& f, const OpRegistry& ops,
                                      const ExpandOptions& options = {});

}  // namespace tandem::passes
