#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "tandem/core/export.h"
#include "tandem/core/name_argument.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras {

namespace activations {
struct ReluOptions;
}

/// The function that a layer applies to its result: by Keras' name ("relu", "softmax", …), or any
/// callable `Tensor(Tensor)`. Empty, or "linear": none. An unknown name throws InvalidArgumentError
/// listing those that exist.
///
///     Dense(10, {.activation = "relu"})        Dense(10, {.activation = activations::relu})
///
/// A function of `activations` or `td::nn` that Keras has a name for counts as that name, and files
/// of models have it.
class TANDEM_EXPORT ActivationFunction {
 public:
  using Function = std::function<Tensor(const Tensor&)>;

  ActivationFunction() = default;
  ActivationFunction(const char* name)
      : ActivationFunction(tandem::internal::name_argument(name, "the name of an activation")) {}
  ActivationFunction(const std::string& name);
  template <class F>
  requires(std::is_invocable_r_v<Tensor, const F&, const Tensor&>) ActivationFunction(F function)
      : name_("custom"), function_(std::move(function)) {}
  // Functions by themselves, of which some have overloads or further arguments with defaults. Throw
  // InvalidArgumentError for one of your own that has further arguments: give a lambda.
  ActivationFunction(Tensor (*function)(Tensor));
  ActivationFunction(Tensor (*function)(const Tensor&));
  ActivationFunction(Tensor (*function)(const Tensor&, bool));
  ActivationFunction(Tensor (*function)(const Tensor&, double));
  ActivationFunction(Tensor (*function)(const Tensor&, std::int64_t));
  ActivationFunction(Tensor (*function)(const Tensor&, const activations::ReluOptions&));
  ActivationFunction(Tensor (*function)(Tensor, float));
  ActivationFunction(Tensor (*function)(Tensor, std::int64_t));

  /// x itself if there is none.
  Tensor operator()(const Tensor& x) const { return function_ ? function_(x) : x; }
  const std::string& name() const { return name_; }

 private:
  // Takes the name and the function of Keras' activation that lies there; false if there is none.
  bool find(const void* address);

  std::string name_ = "linear";
  Function function_;
};

namespace activations {

// All elementwise unless an axis is named.

struct ReluOptions {
  double negative_slope = 0;
  std::optional<double> max_value = std::nullopt;
  double threshold = 0;
};
/// x above the threshold, negative_slope · (x − threshold) below, at most max_value.
TANDEM_EXPORT Tensor relu(const Tensor& x, const ReluOptions& options = {});
TANDEM_EXPORT Tensor leaky_relu(const Tensor& x, double negative_slope = 0.2);
/// A crossentropy loss knows the logits of the result, so that it stays accurate for extreme ones.
TANDEM_EXPORT Tensor softmax(const Tensor& x, std::int64_t axis = -1);
TANDEM_EXPORT Tensor sigmoid(const Tensor& x);
TANDEM_EXPORT Tensor elu(const Tensor& x, double alpha = 1.0);
TANDEM_EXPORT Tensor celu(const Tensor& x, double alpha = 1.0);
TANDEM_EXPORT Tensor gelu(const Tensor& x, bool approximate = false);
/// The first half of an axis times the sigmoid of the second.
TANDEM_EXPORT Tensor glu(const Tensor& x, std::int64_t axis = -1);
TANDEM_EXPORT Tensor hard_shrink(const Tensor& x, double threshold = 0.5);
TANDEM_EXPORT Tensor hard_sigmoid(const Tensor& x);
TANDEM_EXPORT Tensor hard_silu(const Tensor& x);
TANDEM_EXPORT Tensor hard_tanh(const Tensor& x);
TANDEM_EXPORT Tensor exponential(const Tensor& x);
TANDEM_EXPORT Tensor hard_swish(const Tensor& x);
TANDEM_EXPORT Tensor linear(const Tensor& x);
TANDEM_EXPORT Tensor log_sigmoid(const Tensor& x);
TANDEM_EXPORT Tensor log_softmax(const Tensor& x, std::int64_t axis = -1);
TANDEM_EXPORT Tensor relu6(const Tensor& x);
TANDEM_EXPORT Tensor selu(const Tensor& x);
TANDEM_EXPORT Tensor silu(const Tensor& x);
TANDEM_EXPORT Tensor swish(const Tensor& x);
TANDEM_EXPORT Tensor softplus(const Tensor& x);
TANDEM_EXPORT Tensor softsign(const Tensor& x);
TANDEM_EXPORT Tensor tanh(const Tensor& x);
TANDEM_EXPORT Tensor mish(const Tensor& x);
TANDEM_EXPORT Tensor soft_shrink(const Tensor& x, double threshold = 0.5);
TANDEM_EXPORT Tensor sparse_plus(const Tensor& x);
TANDEM_EXPORT Tensor sparse_sigmoid(const Tensor& x);
/// The point of the probability simplex that is nearest to x along `axis`.
TANDEM_EXPORT Tensor sparsemax(const Tensor& x, std::int64_t axis = -1);
TANDEM_EXPORT Tensor squareplus(const Tensor& x, double b = 4);
TANDEM_EXPORT Tensor tanh_shrink(const Tensor& x);
/// x where it exceeds `threshold`, else `default_value`.
TANDEM_EXPORT Tensor threshold(const Tensor& x, double threshold, double default_value);

}  // namespace activations
}  // namespace tandem::keras
