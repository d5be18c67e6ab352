#pragma once

#include "tandem/graph/passes.h"

namespace tandem {

/// Gives users of Identity nodes over a variable's reference a read of their own, where they run
/// after a node that writes the variable.
///
/// TensorFlow's Identity of a reference is the variable's memory itself, which writers change in
/// place: who reads it after an AssignAdd sees the sum, whether the Identity ran before or after.
/// Graphs rely on it (SyncReplicasOptimizer hands out the step that it has just counted). Where
/// nothing orders writer and user, TensorFlow's answer is open, and ours is what the Identity saw.
/// Reads are to be made explicit afterwards.
void read_late(MutableFunction& f);

}  // namespace tandem
