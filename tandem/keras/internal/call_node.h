#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tandem/keras/call_options.h"
#include "tandem/keras/internal/mask_ops.h"
#include "tandem/keras/keras_tensor.h"
#include "tandem/keras/layer_impl.h"

namespace tandem::keras::internal {

/// One call of a layer with KerasTensors: a step of a functional model.
struct CallNode {
  std::shared_ptr<LayerImpl> layer;
  std::vector<KerasTensor> inputs;  ///< none: an InputLayer's
  CallOptions options;
  int index = 0;  ///< how many calls of the layer came before
  int num_outputs = 1;
  std::vector<MaskValue> mask_inputs = {};   ///< masks that Keras notes beside the inputs
  std::vector<MaskValue> output_masks = {};  ///< by output; those left out have none

  /// What the call reads: the inputs, then the masks that it was given.
  std::vector<KerasTensor> sources() const {
    std::vector<KerasTensor> all = inputs;
    for (const std::optional<KerasTensor>& mask : options.mask.keras_tensors())
      if (mask) all.push_back(*mask);
    return all;
  }
};

}  // namespace tandem::keras::internal
