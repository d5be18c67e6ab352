#pragma once

#include <string>

#include "tandem/graph/graph.h"

namespace tandem::io {

/// What stands in a Graph for a node that cannot run: it has the node's name, inputs and as many
/// outputs as are used. No registry has it, and no kernel.
const OpDef& stand_in_op();

/// Private attribute of nodes that cannot run, stand-ins or not: why.
inline constexpr const char* kUnsupportedAttr = "_unsupported";
/// Private attribute of stand-ins: the op's name in the file.
inline constexpr const char* kOpAttr = "_op";

/// Private attribute of stand-ins in a graph, not of those in functions: the NodeDef as it came, an
/// array of its bytes, which copies of the graph share and dumps do not show.
inline constexpr const char* kNodeDefAttr = "_node_def";
/// Private attribute of a Fill of two constants, made for it, that stands for a large constant.
inline constexpr const char* kConstantAttr = "_constant";

/// Null for a node that can run.
const std::string* why_unsupported(const Node& node);

}  // namespace tandem::io
