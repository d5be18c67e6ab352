#include "tandem/keras/layers/activation_layers.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
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
  FunctionLayer(std::string class_name, LayerSettings settings, ActivationFunction function)
      : LayerImpl(std::move(class_name), std::move(settings)), function_(std::move(function)) {
    without_weights();
    pass_masks();
  }

  Tensor call(const Tensor& x, bool) override { return function_(x); }

 private:
  ActivationFunction function_;
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
    alpha_ = add_weight("alpha", sizes,
                        {.initializer = options_.alpha_initializer,
                         .regularizer = options_.alpha_regularizer,
                         .constraint = options_.alpha_constraint});
    require_rank(input.rank());
  }

  Tensor call(const Tensor& x, bool) override { return nn::relu(x) - alpha_ * nn::relu(-x); }

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

 private:
  Tensor probabilities(const Tensor& x) const {
    if (axes_.size() == 1) return activations::softmax(x, axes_[0]);
    return math::exp(x - reduce_logsumexp(x, axes_, true));
  }

  std::vector<std::int64_t> axes_;
};

constexpr auto kActivation = [](auto& a, auto&, auto& activation) { a("activation", activation); };
constexpr auto kReLU = [](auto& a, auto& o) {
  a("max_value", o.max_value);
  a("negative_slope", o.negative_slope);
  a("threshold", o.threshold);
};
constexpr auto kLeakyReLU = [](auto& a, auto& o) { a("negative_slope", o.negative_slope); };
constexpr auto kELU = [](auto& a, auto& o) { a("alpha", o.alpha); };
constexpr auto kPReLU = [](auto& a, auto& o) {
  a("alpha_initializer", o.alpha_initializer);
  a("alpha_regularizer", o.alpha_regularizer);
  a("alpha_constraint", o.alpha_constraint);
  a("shared_axes", o.shared_axes);
};
constexpr auto kSoftmax = [](auto& a, auto& o) { a("axis", o.axis); };

}  // namespace

Activation::Activation(const ActivationFunction& activation, const ActivationOptions& o)
    : Layer(internal::with_arguments(
          std::make_shared<FunctionLayer>("Activation", settings_of(o), activation), kActivation, o,
          activation)) {}

ReLU::ReLU(const ReLUOptions& o)
    : Layer(internal::with_arguments(
          std::make_shared<FunctionLayer>("ReLU", settings_of(o), relu_of(o)), kReLU, o)) {}

LeakyReLU::LeakyReLU(const LeakyReLUOptions& o)
    : Layer(internal::with_arguments(
          std::make_shared<FunctionLayer>("LeakyReLU", settings_of(o),
                                          [slope = o.negative_slope](const Tensor& x) {
                                            return activations::leaky_relu(x, slope);
                                          }),
          kLeakyReLU, o)) {}

ELU::ELU(const ELUOptions& o)
    : Layer(internal::with_arguments(
          std::make_shared<FunctionLayer>(
              "ELU", settings_of(o),
              [alpha = o.alpha](const Tensor& x) { return activations::elu(x, alpha); }),
          kELU, o)) {}

PReLU::PReLU(const PReLUOptions& o)
    : Layer(internal::with_arguments(std::make_shared<PReLUImpl>(o), kPReLU, o)) {}

Softmax::Softmax(const SoftmaxOptions& o)
    : Layer(internal::with_arguments(std::make_shared<SoftmaxImpl>(o), kSoftmax, o)) {}

namespace {
const bool kRegistered[] = {
    internal::register_layer_class<Activation, ActivationOptions, ActivationFunction>("Activation",
                                                                                      kActivation),
    internal::register_layer_class<ReLU, ReLUOptions>("ReLU", kReLU),
    internal::register_layer_class<LeakyReLU, LeakyReLUOptions>("LeakyReLU", kLeakyReLU),
    internal::register_layer_class<ELU, ELUOptions>("ELU", kELU),
    internal::register_layer_class<PReLU, PReLUOptions>("PReLU", kPReLU),
    internal::register_layer_class<Softmax, SoftmaxOptions>("Softmax", kSoftmax)};
}  // namespace

}  // namespace tandem::keras
