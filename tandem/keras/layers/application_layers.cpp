#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/keras/random.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/unary_ops.h"

// Layers that Keras keeps beside its applications (ConvNeXt, InceptionResNetV2): they have no
// public name, and exist so that files of these models load.

namespace tandem::keras {
namespace {

struct PlainOptions {
  std::string name = {};
  DTypePolicy dtype = {};
};

// x · gamma, a learnt factor for each feature.
class LayerScaleImpl final : public LayerImpl {
 public:
  LayerScaleImpl(double init_values, std::int64_t projection_dim, const PlainOptions& o)
      : LayerImpl("LayerScale", {.name = o.name, .dtype = o.dtype}),
        initial_(init_values),
        size_(projection_dim) {
    internal::require_positive("LayerScale", "projection_dim", projection_dim);
  }
  void build(const PartialShape&) override {
    gamma_ = add_weight("gamma", {size_}, {.initializer = initializers::Constant(initial_)});
  }
  Tensor call(const Tensor& x, bool) override { return x * gamma_; }

 private:
  double initial_;
  std::int64_t size_;
  Variable gamma_;
};

// In training drops the whole path of some examples; see ConvNeXt,
// https://arxiv.org/abs/2201.03545.
class StochasticDepthImpl final : public LayerImpl {
 public:
  StochasticDepthImpl(double drop_path_rate, const PlainOptions& o)
      : LayerImpl("StochasticDepth", {.name = o.name, .dtype = o.dtype}), rate_(drop_path_rate) {
    internal::require_range("StochasticDepth", "drop_path_rate", drop_path_rate, 0, 1);
    without_weights();
  }
  Tensor call(const Tensor& x, bool training) override {
    if (!training) return x;
    std::vector<Tensor> sizes(static_cast<std::size_t>(x.rank()), Tensor(1));
    sizes[0] = unstack(shape(x), x.rank())[0];  // one number for each example
    const Tensor drawn = random::uniform(IntList(stack(sizes)), {.dtype = x.dtype()});
    return x / (1 - rate_) * floor(drawn + (1 - rate_));
  }

 private:
  double rate_;
};

// a + b · scale: a residual connection of InceptionResNetV2.
class CustomScaleLayerImpl final : public LayerImpl {
 public:
  CustomScaleLayerImpl(double scale, const PlainOptions& o)
      : LayerImpl("CustomScaleLayer", {.name = o.name, .dtype = o.dtype}), scale_(scale) {
    without_weights();
  }
  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions&) override {
    if (inputs.size() != 2)
      throw InvalidArgumentError(cat(prefix(), "takes two inputs, got ", inputs.size(), "."));
    return {inputs[0] + inputs[1] * scale_};
  }

 private:
  double scale_;
};

// What files name, with the arguments there.
struct LayerScale : Layer {
  LayerScale(double init_values, std::int64_t projection_dim, const PlainOptions& options)
      : Layer(internal::with_arguments(
            std::make_shared<LayerScaleImpl>(init_values, projection_dim, options), kArguments,
            options, init_values, projection_dim)) {}
  static constexpr auto kArguments = [](auto& a, auto&, auto& init_values, auto& projection_dim) {
    a("init_values", init_values);
    a("projection_dim", projection_dim);
  };
};
struct StochasticDepth : Layer {
  StochasticDepth(double drop_path_rate, const PlainOptions& options)
      : Layer(
            internal::with_arguments(std::make_shared<StochasticDepthImpl>(drop_path_rate, options),
                                     kArguments, options, drop_path_rate)) {}
  static constexpr auto kArguments = [](auto& a, auto&, auto& rate) { a("drop_path_rate", rate); };
};
struct CustomScaleLayer : Layer {
  CustomScaleLayer(double scale, const PlainOptions& options)
      : Layer(internal::with_arguments(std::make_shared<CustomScaleLayerImpl>(scale, options),
                                       kArguments, options, scale)) {}
  static constexpr auto kArguments = [](auto& a, auto&, auto& scale) { a("scale", scale); };
};

const bool kRegistered[] = {
    internal::register_layer_class<LayerScale, PlainOptions, double, std::int64_t>(
        "LayerScale", LayerScale::kArguments),
    internal::register_layer_class<StochasticDepth, PlainOptions, double>(
        "StochasticDepth", StochasticDepth::kArguments),
    internal::register_layer_class<CustomScaleLayer, PlainOptions, double>(
        "CustomScaleLayer", CustomScaleLayer::kArguments)};

}  // namespace
}  // namespace tandem::keras
