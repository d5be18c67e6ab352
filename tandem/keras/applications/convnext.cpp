#include <array>
#include <string>

#include "tandem/core/error.h"
#include "tandem/keras/internal/application_blocks.h"
#include "tandem/keras/keras_tensor_ops.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/operators.h"

// Liu et al. 2022, "A ConvNet for the 2020s".

namespace tandem::keras::applications {
namespace {

using namespace internal;

constexpr double kEpsilon = 1e-6;

// Each channel times a weight that begins small.
class LayerScaleImpl final : public LayerImpl {
 public:
  LayerScaleImpl(std::int64_t channels, const std::string& name)
      : LayerImpl("LayerScale", {.name = name}), channels_(channels) {}
  void build(const PartialShape&) override {
    gamma_ = add_weight("gamma", {channels_}, {.initializer = initializers::Constant(1e-6)});
  }
  Tensor call(const Tensor& x, bool) override { return x * gamma_; }
  void describe(Config& config) const override {
    config.set("init_values", 1e-6).set("projection_dim", channels_);
  }

 private:
  std::int64_t channels_;
  Variable gamma_;
};

KerasTensor layer_norm(const KerasTensor& x, const std::string& name) {
  return LayerNormalization({.epsilon = kEpsilon, .name = name})(x);
}

KerasTensor block(const KerasTensor& input, std::int64_t width, const std::string& name) {
  KerasTensor x = Conv2D(
      width, 7, {.padding = "same", .groups = width, .name = name + "_depthwise_conv"})(input);
  x = layer_norm(x, name + "_layernorm");
  x = Dense(4 * width, {.name = name + "_pointwise_conv_1"})(x);
  x = activate(x, "gelu", name + "_gelu");
  x = Dense(width, {.name = name + "_pointwise_conv_2"})(x);
  x = make_layer<LayerScaleImpl>(width, name + "_layer_scale")(x);
  x = activate(x, "linear", name + "_identity");
  return input + x;
}

// Halves the size; the first of them quarters that of the images.
Layer downsampling(int stage, std::int64_t width, const std::string& name) {
  if (stage == 0) {
    return Sequential({Conv2D(width, 4, {.strides = 4, .name = name + "_stem_conv"}),
                       LayerNormalization({.epsilon = kEpsilon, .name = name + "_stem_layernorm"})},
                      name + "_stem");
  }
  const int number = stage - 1;
  return Sequential(
      {LayerNormalization(
           {.epsilon = kEpsilon, .name = cat(name, "_downsampling_layernorm_", number)}),
       Conv2D(width, 2, {.strides = 2, .name = cat(name, "_downsampling_conv_", number)})},
      cat(name, "_downsampling_block_", number));
}

Model convnext_model(const char* who, const std::array<int, 4>& depths,
                     const std::array<std::int64_t, 4>& widths, const ScalingApplicationOptions& s,
                     const std::string& default_name) {
  const ApplicationOptions o = shared_options(s);
  const std::string name = o.name.empty() ? default_name : o.name;
  const KerasTensor input = application_input(who, o, 224);
  KerasTensor x = input;
  if (s.include_preprocessing && channels(x) == 3) {
    const auto square = [](double v) { return (v * 255) * (v * 255); };
    x = Normalization({.mean = {{0.485 * 255, 0.456 * 255, 0.406 * 255}},
                       .variance = {{square(0.229), square(0.224), square(0.225)}},
                       .name = name + "_prestem_normalization"})(x);
  }
  for (int stage = 0; stage < 4; ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    x = downsampling(stage, widths[at], name)(x);
    for (int i = 0; i < depths[at]; ++i)
      x = block(x, widths[at], cat(name, "_stage_", stage, "_block_", i));
  }
  if (o.include_top) {
    x = GlobalAveragePooling2D({.name = name + "_head_gap"})(x);
    x = layer_norm(x, name + "_head_layernorm");
    x = Dense(o.classes, {.activation = o.classifier_activation, .name = name + "_head_dense"})(x);
  } else {
    x = layer_norm(pooled_features(x, o), "");
  }
  return finish_application(input, x, o, name);
}

}  // namespace

Model ConvNeXtTiny(const ScalingApplicationOptions& o) {
  return convnext_model("ConvNeXtTiny", {3, 3, 9, 3}, {96, 192, 384, 768}, o, "convnext_tiny");
}
Model ConvNeXtSmall(const ScalingApplicationOptions& o) {
  return convnext_model("ConvNeXtSmall", {3, 3, 27, 3}, {96, 192, 384, 768}, o, "convnext_small");
}
Model ConvNeXtBase(const ScalingApplicationOptions& o) {
  return convnext_model("ConvNeXtBase", {3, 3, 27, 3}, {128, 256, 512, 1024}, o, "convnext_base");
}
Model ConvNeXtLarge(const ScalingApplicationOptions& o) {
  return convnext_model("ConvNeXtLarge", {3, 3, 27, 3}, {192, 384, 768, 1536}, o, "convnext_large");
}
Model ConvNeXtXLarge(const ScalingApplicationOptions& o) {
  return convnext_model("ConvNeXtXLarge", {3, 3, 27, 3}, {256, 512, 1024, 2048}, o,
                        "convnext_xlarge");
}

}  // namespace tandem::keras::applications
