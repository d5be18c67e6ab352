#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "tandem/keras/keras_tensor.h"

namespace tandem::keras::internal {

/// An op by which Keras computes a mask while a model is put together. We compute masks within the
/// layers; Keras counts such ops among a model's operations, by whose order it lists layers and by
/// whose numbers its checkpoints name them.
struct MaskOp {
  /// What it reads, in the order in which Keras finds it.
  std::vector<std::variant<KerasTensor, std::shared_ptr<const MaskOp>>> inputs;
  int rank = -1;  ///< of the mask
};

/// Null: no mask.
using MaskValue = std::shared_ptr<const MaskOp>;

/// Notes in a call of a layer which masks Keras hands it beside the inputs, and which its outputs
/// get.
void note_mask_ops(CallNode& node);

}  // namespace tandem::keras::internal
