#pragma once

#include "tandem/core/export.h"
#include "tandem/graph/passes.h"

namespace tandem {

class OpRegistry;

/// Writes down as nodes and edges what executors and passes would otherwise have to know.
///
/// - Where a value is wanted and a reference (to a variable) arrives, a read node is put between:
///   it takes the variable's value when all other inputs of its user are there.
/// - What waits for a constant waits for whatever the constant waits for, since constants do not
///   run. (In graphs with control flow they do.)
TANDEM_EXPORT void prepare(MutableFunction& f, const OpRegistry& ops);

}  // namespace tandem
