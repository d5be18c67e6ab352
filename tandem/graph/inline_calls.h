#pragma once

#include "tandem/core/export.h"
#include "tandem/graph/expand_functions.h"

namespace tandem::passes {

/// Replaces nodes that call one function (PartitionedCall, StatefulPartitionedCall) by copies of
/// the nodes of its body. Returns whether anything changed; errors are those of `expand_functions`.
///
/// - A node `inner` of a function called by `caller` becomes `caller/inner`. So do its frame names
///   and the names in `_class`.
/// - A node without a device gets the caller's; one that names a part of a device gets the rest
///   from the caller.
/// - Order is kept. What the call waits for comes before every effect of the body (through a NoOp
///   `caller/input_control`) and before its results; a body with effects begins when all arguments
///   are there. What waits for the call waits for all effects and results of the body (NoOp
///   `caller/output_control`). A result that does not follow from the body's effects is read
///   through an Identity `caller/output_N` that waits for them.
/// - In a graph with TensorFlow 1 control flow the body is dead where the call would be, and its
///   constants belong to the call's frame.
/// - Nodes that neither a result nor an effect of the function needs are left out.
TANDEM_EXPORT bool inline_calls(MutableFunction& f, const OpRegistry& ops,
                                const ExpandOptions& options = {});

}  // namespace tandem::passes
