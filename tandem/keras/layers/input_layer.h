#pragma once

#include "tandem/core/export.h"
#include "tandem/keras/keras_tensor.h"
#include "tandem/keras/layer.h"

namespace tandem::keras {

/// What td::keras::Input makes: a layer without a computation, whose output is what the model is
/// fed.
class TANDEM_EXPORT InputLayer : public Layer {
 public:
  /// `shape` without the batch axis.
  explicit InputLayer(const PartialShape& shape, const InputOptions& options = {});
  KerasTensor output() const;
};

}  // namespace tandem::keras
