#include "tandem/keras/layers/activation_layers.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace {

class FunctionLayer final : public LayerImpl {
 public:
  FunctionLayer(std::string class_name, LayerSettings settings, ActivationFunction function,
                Config arguments)
      : LayerImpl(std::move(class_name), std::move(settings)),
        function_(std::move(function)),
        arguments_(std::move(arguments)) {
    without_weights();
    pass_masks();
  }

  Tensor call(const Tensor& x, bool) override { return function_(x); }
  void describe(Config& config) const override {
    for (const auto& [name, value] : arguments_.entries()) config.set(name, value);
  }

 private:
  ActivationFunction function_;
  Config arguments_;
};

template <class Options>
LayerSettings settings_of(const Options& o) {
  return {.name = o.name, .dtype = o.dtype};
}

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

class PReLUImpl final : public LayerImpl {
 public:
  explicit PReLUImpl(const PReLUOptions& o)
      : LayerImpl("PReLU", {.name = o.name, .trainable = o.trainable, .dtype = o.dtype}),
        options_(o) {
    pass_masks();
  }

  void build(const PartialShape& input) override {
    Shape sizes;
    for (const int axis : options_.shared_axes) {
      if (axis < 1 || axis >= input.rank()) {
        throw InvalidArgumentError(cat(prefix(), "shared_axes names axis ", axis,
                                       ", but the axes after the batch are 1 to ", input.rank() - 1,
                                       "."));
      }
    }
    const auto& shared = options_.shared_axes;
    for (int i = 1; i < input.rank(); ++i) {
      const bool one = std::find(shared.begin(), shared.end(), i) != shared.end();
      sizes.add_dim(one ? 1 : known_size(input, i));
      if (!one) require_size(i, sizes.dim(-1));
    }
    alpha_ = add_weight(
        "alpha", sizes,
        {.initializer = options_.alpha_initializer, .regularizer = options_.alpha_regularizer});
    require_rank(input.rank());
  }

  Tensor call(const Tensor& x, bool) override { return nn::relu(x) - alpha_ * nn::relu(-x); }
  void describe(Config& config) const override {
    config.set("shared_axes",
               std::vector<std::int64_t>(options_.shared_axes.begin(), options_.shared_axes.end()));
  }

 private:
  PReLUOptions options_;
  Variable alpha_;
};

class SoftmaxImpl final : public LayerImpl {
 public:
  explicit SoftmaxImpl(const SoftmaxOptions& o)
      : LayerImpl("Softmax", {.name = o.name, .dtype = o.dtype}),
        axes_(o.axis.list().begin(), o.axis.list().end()) {
    if (axes_.empty()) throw InvalidArgumentError("Softmax: axis names no axis.");
    without_weights();
    pass_masks();
  }

  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions& how) override {
    if (inputs.size() != 1) {
      throw InvalidArgumentError(cat(prefix(), "takes one input, got ", inputs.size(), "."));
    }
    Tensor mask = how.mask_of(0);
    if (!mask.defined()) return {probabilities(inputs[0])};
    if (is_floating(mask.dtype())) mask = mask > 0.5;
    mask = cast(mask, DType::kBool);
    const DType dtype = inputs[0].dtype();
    const Tensor least = constant(Tensor(dtype == DType::kHalf ? -3e4 : -1e9), dtype);
    const Tensor y = probabilities(where(mask, inputs[0], least));
    return {where(mask, y, zeros_like(y))};
  }

  void describe(Config& config) const override {
    if (axes_.size() == 1) {
      config.set("axis", axes_[0]);
    } else {
      config.set("axis", axes_);
    }
  }

 private:
  Tensor probabilities(const Tensor& x) const {
    if (axes_.size() == 1) return activations::softmax(x, axes_[0]);
    return math::exp(x - reduce_logsumexp(x, axes_, true));
  }

  std::vector<std::int64_t> axes_;
};

}  // namespace

Activation::Activation(const ActivationFunction& activation, const ActivationOptions& o)
    : Layer(std::make_shared<FunctionLayer>("Activation", settings_of(o), activation,
                                            Config().set("activation", activation.name()))) {}

ReLU::ReLU(const ReLUOptions& o)
    : Layer(std::make_shared<FunctionLayer>(
          "ReLU", settings_of(o), relu_of(o),
          Config()
              .set("max_value", o.max_value ? ConfigValue(*o.max_value) : ConfigValue())
              .set("negative_slope", o.negative_slope)
              .set("threshold", o.threshold))) {}

LeakyReLU::LeakyReLU(const LeakyReLUOptions& o)
    : Layer(std::make_shared<FunctionLayer>(
          "LeakyReLU", settings_of(o),
          [slope = o.negative_slope](const Tensor& x) { return activations::leaky_relu(x, slope); },
          Config().set("negative_slope", o.negative_slope))) {}

ELU::ELU(const ELUOptions& o)
    : Layer(std::make_shared<FunctionLayer>(
          "ELU", settings_of(o),
          [alpha = o.alpha](const Tensor& x) { return activations::elu(x, alpha); },
          Config().set("alpha", o.alpha))) {}

PReLU::PReLU(const PReLUOptions& o) : Layer(std::make_shared<PReLUImpl>(o)) {}

Softmax::Softmax(const SoftmaxOptions& o) : Layer(std::make_shared<SoftmaxImpl>(o)) {}

}  // namespace tandem::keras
