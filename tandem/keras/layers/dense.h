#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/activations.h"
#include "tandem/keras/constraints.h"
#include "tandem/keras/initializers.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/regularizers.h"

namespace tandem::keras {

struct DenseOptions {
  ActivationFunction activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  ///< of the layer's result, divided by the batch size
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

/// activation(input · kernel + bias) over the last axis: [..., n] gives [..., units].
class TANDEM_EXPORT Dense : public Layer {
 public:
  explicit Dense(std::int64_t units, const DenseOptions& options = {});
};

}  // namespace tandem::keras
