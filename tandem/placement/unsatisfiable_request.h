#pragma once

#include <string>

#include "tandem/core/export.h"
#include "tandem/graph/graph.h"

namespace tandem::placement {

/// TensorFlow's sentence on a node that asks for a device which is not there. `available`: names of
/// those that are; `any_gpu`: one of them is a GPU.
TANDEM_EXPORT std::string unsatisfiable_request(const Node& node, const std::string& available,
                                                bool any_gpu);

}  // namespace tandem::placement
