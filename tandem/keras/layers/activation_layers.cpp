#include "tandem/keras/layers/activation_layers.h"

#include "tandem/core/error.h"
#include "tandem/keras/layer_impl.h"

namespace tandem::keras {
namespace {

class FunctionLayer final : public LayerImpl {
 public:
  FunctionLayer(std::string class_name, const std::string& name, ActivationFunction function,
                Config arguments)
      : LayerImpl(std::move(class_name), {.name = name}),
        function_(std::move(function)),
        arguments_(std::move(arguments)) {
    without_weights();
  }

  Tensor call(const Tensor& x, bool) override { return function_(x); }
  void describe(Config& config) const override {
    for (const auto& [name, value] : arguments_.entries()) config.set(name, value);
  }

 private:
  ActivationFunction function_;
  Config arguments_;
};

void require_not_negative(const char* layer, const char* what, double value) {
  if (!(value >= 0)) {
    throw InvalidArgumentError(cat(layer, ": ", what, " must not be negative, got ", value, "."));
  }
}

ActivationFunction relu_of(const ReLUOptions& o) {
  if (o.max_value) require_not_negative("ReLU", "max_value", *o.max_value);
  require_not_negative("ReLU", "negative_slope", o.negative_slope);
  require_not_negative("ReLU", "threshold", o.threshold);
  const activations::ReluOptions options{
      .negative_slope = o.negative_slope, .max_value = o.max_value, .threshold = o.threshold};
  return [options](const Tensor& x) { return activations::relu(x, options); };
}

}  // namespace

Activation::Activation(const ActivationFunction& activation, const ActivationOptions& o)
    : Layer(std::make_shared<FunctionLayer>("Activation", o.name, activation,
                                            Config().set("activation", activation.name()))) {}

ReLU::ReLU(const ReLUOptions& o)
    : Layer(std::make_shared<FunctionLayer>(
          "ReLU", o.name, relu_of(o),
          Config()
              .set("max_value", o.max_value ? ConfigValue(*o.max_value) : ConfigValue())
              .set("negative_slope", o.negative_slope)
              .set("threshold", o.threshold))) {}

LeakyReLU::LeakyReLU(const LeakyReLUOptions& o)
    : Layer(std::make_shared<FunctionLayer>(
          "LeakyReLU", o.name,
          [slope = o.negative_slope](const Tensor& x) { return activations::leaky_relu(x, slope); },
          Config().set("negative_slope", o.negative_slope))) {}

ELU::ELU(const ELUOptions& o)
    : Layer(std::make_shared<FunctionLayer>(
          "ELU", o.name, [alpha = o.alpha](const Tensor& x) { return activations::elu(x, alpha); },
          Config().set("alpha", o.alpha))) {}

Softmax::Softmax(const SoftmaxOptions& o)
    : Layer(std::make_shared<FunctionLayer>(
          "Softmax", o.name,
          [axis = o.axis](const Tensor& x) { return activations::softmax(x, axis); },
          Config().set("axis", o.axis))) {}

}  // namespace tandem::keras
