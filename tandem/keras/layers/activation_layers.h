#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/activations.h"
#include "tandem/keras/constraints.h"
#include "tandem/keras/initializers.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/layers/sizes.h"
#include "tandem/keras/positional.h"
#include "tandem/keras/regularizers.h"

namespace tandem::keras {

struct ActivationOptions {
  String name = {};
  DTypePolicy dtype = {};
};
/// A function by itself as a layer: Activation("relu").
class TANDEM_EXPORT Activation : public Layer {
 public:
  explicit Activation(const ActivationFunction& activation, const ActivationOptions& options = {});
};

struct ReLUOptions {
  std::optional<double> max_value = std::nullopt;
  double negative_slope = 0;
  double threshold = 0;
  String name = {};
  DTypePolicy dtype = {};
};
class TANDEM_EXPORT ReLU : public Layer {
 public:
  explicit ReLU(const ReLUOptions& options = {});
  template <internal::Number T>
  explicit ReLU(T max_value, const ReLUOptions& options = {})
      : ReLU(internal::with_argument(options, &ReLUOptions::max_value, max_value, "max_value")) {}
};

struct LeakyReLUOptions {
  double negative_slope = 0.3;
  String name = {};
  DTypePolicy dtype = {};
};
class TANDEM_EXPORT LeakyReLU : public Layer {
 public:
  explicit LeakyReLU(const LeakyReLUOptions& options = {});
  template <internal::Number T>
  explicit LeakyReLU(T negative_slope, const LeakyReLUOptions& options = {})
      : LeakyReLU(internal::with_argument(options, &LeakyReLUOptions::negative_slope,
                                          negative_slope, "negative_slope")) {}
};

struct ELUOptions {
  double alpha = 1;
  String name = {};
  DTypePolicy dtype = {};
};
class TANDEM_EXPORT ELU : public Layer {
 public:
  explicit ELU(const ELUOptions& options = {});
  template <internal::Number T>
  explicit ELU(T alpha, const ELUOptions& options = {})
      : ELU(internal::with_argument(options, &ELUOptions::alpha, alpha, "alpha")) {}
};

struct PReLUOptions {
  Initializer alpha_initializer = "zeros";
  Regularizer alpha_regularizer = {};
  Constraint alpha_constraint = {};
  std::vector<int> shared_axes = {};  ///< 1 is the first after the batch; they share a slope
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};
/// x above 0, alpha · x below, with a slope to learn for each element of an example.
class TANDEM_EXPORT PReLU : public Layer {
 public:
  explicit PReLU(const PReLUOptions& options = {});
};

struct SoftmaxOptions {
  LayerAxes axis = -1;  ///< or several: the probabilities along all of them together add up to 1
  String name = {};
  DTypePolicy dtype = {};
};
/// A mask that can be broadcast to the input (CallOptions::mask) gives probability 0 to what it
/// leaves out.
class TANDEM_EXPORT Softmax : public Layer {
 public:
  explicit Softmax(const SoftmaxOptions& options = {});
  template <internal::Integer T>
  explicit Softmax(T axis, const SoftmaxOptions& options = {})
      : Softmax(internal::with_argument(options, &SoftmaxOptions::axis, axis, "axis")) {}
};

}  // namespace tandem::keras
