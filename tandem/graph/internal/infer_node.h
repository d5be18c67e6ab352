#pragma once

#include <optional>
#include <vector>

#include "tandem/graph/graph.h"

namespace tandem::internal {

/// Where inference looks up what is known of the outputs that a node reads: what their nodes say.
class KnownOutputs {
 public:
  virtual ~KnownOutputs() = default;
  virtual const PartialShape& shape(Output output) const {
    return output.node->output_shape(output.index);
  }
  /// The shape that a function's argument stands for, if the call determines it.
  virtual std::optional<PartialShape> held(const Node& /*arg*/) const { return std::nullopt; }
};

/// The dtypes of inputs. An input of a Merge that is not known yet has the dtype of the others.
std::vector<DType> dtypes_of(const std::vector<Output>& inputs);

/// What closes a loop: its value belongs to the next iteration.
bool is_back_edge(const Node& from, const Node& to);

/// The shapes of the node's outputs by its op's shape function, or those that it has if its op has
/// none. Throws what the shape function throws.
std::vector<PartialShape> infer_outputs(const Node& node, const KnownOutputs& known);

/// What is known of the shape that an integer output holds or that a handle's variable has;
/// producers say in their traits how it follows.
std::optional<PartialShape> held_shape(Output output, const KnownOutputs& known);

}  // namespace tandem::internal
