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

struct GroupNormalizationOptions {
  std::int64_t groups = 32;  ///< of equal numbers of channels; -1: each channel by itself
  int axis = -1;             ///< of the channels
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
/// Normalizes each group of channels of each example to mean 0 and variance 1 (Wu and He 2018),
/// then scales and shifts each channel.
class TANDEM_EXPORT GroupNormalization : public Layer {
 public:
  explicit GroupNormalization(const GroupNormalizationOptions& options = {});
  template <internal::Integer T>
  explicit GroupNormalization(T groups, const GroupNormalizationOptions& options = {})
      : GroupNormalization(internal::with_argument(options, &GroupNormalizationOptions::groups,
                                                   groups, "groups")) {}
};

struct RMSNormalizationOptions {
  LayerAxes axis = -1;
  double epsilon = 1e-6;
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};
/// Divides each example by its root mean square along the axes, then scales it.
class TANDEM_EXPORT RMSNormalization : public Layer {
 public:
  explicit RMSNormalization(const RMSNormalizationOptions& options = {});
};

struct UnitNormalizationOptions {
  LayerAxes axis = -1;
  String name = {};
  DTypePolicy dtype = {};
};
/// Divides each example by its Euclidean length along the axes.
class TANDEM_EXPORT UnitNormalization : public Layer {
 public:
  explicit UnitNormalization(const UnitNormalizationOptions& options = {});
  template <internal::Integer T>
  explicit UnitNormalization(T axis, const UnitNormalizationOptions& options = {})
      : UnitNormalization(
            internal::with_argument(options, &UnitNormalizationOptions::axis, axis, "axis")) {}
};

}  // namespace tandem::keras
