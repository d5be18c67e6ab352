#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/constraints.h"
#include "tandem/keras/initializers.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/layers/sizes.h"
#include "tandem/keras/positional.h"
#include "tandem/keras/regularizers.h"

namespace tandem::keras {

struct BatchNormalizationOptions {
  int axis = -1;  ///< that of the features, which are normalised each by itself
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Initializer moving_mean_initializer = "zeros";
  Initializer moving_variance_initializer = "ones";
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

/// Normalizes each feature to mean 0 and variance 1, then scales and shifts it. Training uses the
/// moments of the batch and keeps running means of them, which prediction uses. A layer that is not
/// trainable behaves as in prediction.
class TANDEM_EXPORT BatchNormalization : public Layer {
 public:
  explicit BatchNormalization(const BatchNormalizationOptions& options = {});
};

struct LayerNormalizationOptions {
  LayerAxes axis = -1;
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

/// Normalizes each example to mean 0 and variance 1 along the axes, then scales and shifts it.
class TANDEM_EXPORT LayerNormalization : public Layer {
 public:
  explicit LayerNormalization(const LayerNormalizationOptions& options = {});
  template <internal::Integer T>
  explicit LayerNormalization(T axis, const LayerNormalizationOptions& options = {})
      : LayerNormalization(
            internal::with_argument(options, &LayerNormalizationOptions::axis, axis, "axis")) {}
};

}  // namespace tandem::keras
