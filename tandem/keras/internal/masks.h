#pragma once

#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

// Masks travel beside tensors, as in Keras: a layer that makes or keeps one leaves a note of which
// steps of its output count, and the layers, losses and metrics that get this output look there.
// Notes concern the calling thread; they are kept for values of the functions being traced, and for
// eager ones inside a MaskScope (every call of a layer opens one, so that they reach all layers of
// a model).

void attach_mask(const Tensor& tensor, const Tensor& mask);

/// Undefined if the tensor has none.
Tensor find_mask(const Tensor& tensor);

/// Whether a note made now would be kept.
bool keeps_masks();

class MaskScope {
 public:
  MaskScope();
  ~MaskScope();
  MaskScope(const MaskScope&) = delete;
  MaskScope& operator=(const MaskScope&) = delete;
};

}  // namespace tandem::keras::internal
