#pragma once

#include <memory>
#include <vector>

#include "tandem/keras/internal/call_node.h"
#include "tandem/keras/keras_tensor.h"

namespace tandem::keras::internal {

/// The layers between inputs and outputs in the order in which Keras lists a model's operations:
/// those farthest from the outputs first.
struct OperationOrder {
  std::vector<std::shared_ptr<LayerImpl>> layers;
  /// Where each layer stands among the operations; those that compute masks count too.
  std::vector<int> positions;
  /// No two calls are equally far from the outputs.
  bool in_a_row = true;
};

OperationOrder order_operations(const std::vector<KerasTensor>& inputs,
                                const std::vector<KerasTensor>& outputs);

}  // namespace tandem::keras::internal
