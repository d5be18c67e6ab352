#pragma once

#include "tandem/graph/op_decl.h"

namespace tandem {
class Node;
}  // namespace tandem

namespace tandem::passes {

/// Whether a node of TensorFlow 1 control flow: where values go, and whether, it decides.
bool is_control_flow(NodeKind kind);

/// Whether a node's outputs follow from its inputs alone. Not those of stateful ops; nor is what a
/// reference shows, which changes while the graph runs; nor where values of control flow go.
bool is_pure(const Node& node);

}  // namespace tandem::passes
