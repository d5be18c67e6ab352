#pragma once

#include <memory>

#include "tandem/graph/graph.h"

namespace tandem {
class Runtime;
}

namespace tandem::io {

/// The graph in which every node that makes a resource or a reference variable asks for the device
/// where it goes when the graph is placed as a whole, as TensorFlow places it before it takes out
/// what a step needs: so an initializer and a step, which run apart, look for a variable in one
/// place. The graph itself where there is one device.
std::shared_ptr<const Graph> with_pinned_resources(std::shared_ptr<const Graph> graph,
                                                   Runtime& runtime);

}  // namespace tandem::io
