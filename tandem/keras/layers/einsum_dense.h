#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/activations.h"
#include "tandem/keras/constraints.h"
#include "tandem/keras/initializers.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/regularizers.h"

namespace tandem::keras {

struct EinsumDenseOptions {
  ActivationFunction activation = {};
  String bias_axes = {};  ///< letters of the result's axes that the bias has; none: no bias
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};
/// A dense layer of any axes: input and kernel multiplied as `equation` says, "abc,cd->abd" or
/// "...x,xy->...y". `output_shape` is the result's without the batch axis (without the axes of
/// "..."); -1: as in the input.
class TANDEM_EXPORT EinsumDense : public Layer {
 public:
  EinsumDense(const String& equation, const std::vector<std::int64_t>& output_shape,
              const EinsumDenseOptions& options = {});
};

}  // namespace tandem::keras
