#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tandem/core/export.h"
#include "tandem/keras/activations.h"
#include "tandem/keras/layer.h"

namespace tandem::keras {

struct ActivationOptions {
  std::string name = {};
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
  std::string name = {};
};
class TANDEM_EXPORT ReLU : public Layer {
 public:
  explicit ReLU(const ReLUOptions& options = {});
};

struct LeakyReLUOptions {
  double negative_slope = 0.3;
  std::string name = {};
};
class TANDEM_EXPORT LeakyReLU : public Layer {
 public:
  explicit LeakyReLU(const LeakyReLUOptions& options = {});
};

struct ELUOptions {
  double alpha = 1;
  std::string name = {};
};
class TANDEM_EXPORT ELU : public Layer {
 public:
  explicit ELU(const ELUOptions& options = {});
};

struct SoftmaxOptions {
  std::int64_t axis = -1;
  std::string name = {};
};
class TANDEM_EXPORT Softmax : public Layer {
 public:
  explicit Softmax(const SoftmaxOptions& options = {});
};

}  // namespace tandem::keras
