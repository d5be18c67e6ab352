#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tandem/keras/keras_tensor.h"
#include "tandem/keras/layer_impl.h"

namespace tandem::keras::internal {

/// An op by which Keras computes a mask while a model is put together. We compute masks within the
/// layers; Keras counts such ops among a model's operations, by whose order it lists layers and by
/// whose numbers its checkpoints name them.
struct MaskOp {
  /// Keras' class; "" for no op, but the KerasTensor `inputs[0]`, which a call was given as mask.
  std::string class_name;
  /// What it reads, in the order in which Keras finds it.
  std::vector<std::variant<KerasTensor, std::shared_ptr<const MaskOp>>> inputs;
  int rank = -1;       ///< of the mask
  double operand = 0;  ///< of NotEqual: what marks a step that does not count

  const KerasTensor* given() const {
    return class_name.empty() ? std::get_if<KerasTensor>(&inputs[0]) : nullptr;
  }
};

/// Null: no mask.
using MaskValue = std::shared_ptr<const MaskOp>;

/// Notes in a call of a layer which masks Keras hands it beside the inputs, and which its outputs
/// get.
void note_mask_ops(CallNode& node);

/// The mask that comes with a tensor of a model.
MaskValue mask_of(const KerasTensor& tensor);

/// How Keras' layer takes masks: not at all, as `mask`, as a list of masks `mask`, or by name
/// (`query_mask`, `value_mask`, `key_mask`).
enum class MaskForm : unsigned char { kNone, kOne, kList, kNamed };
MaskForm mask_form(const LayerImpl& layer);
inline constexpr const char* kNamedMasks[] = {"query_mask", "value_mask", "key_mask"};

}  // namespace tandem::keras::internal
