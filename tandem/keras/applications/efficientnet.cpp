#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/keras/internal/application_blocks.h"

// Tan & Le 2019, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", and
// 2021, "EfficientNetV2: Smaller Models and Faster Training".

namespace tandem::keras::applications {
namespace {

using namespace internal;

Initializer kernels() {
  return initializers::VarianceScaling(
      {.scale = 2, .mode = "fan_out", .distribution = "truncated_normal"});
}
Initializer dense_kernels() {
  return initializers::VarianceScaling(
      {.scale = 1.0 / 3.0, .mode = "fan_out", .distribution = "uniform"});
}

struct Stage {
  std::int64_t kernel_size, repeats, in, out, expansion;
  double squeeze;
  std::int64_t stride;
  bool fused;  // one convolution instead of a 1x1 and a depthwise one
};

// What the families differ in besides their stages.
struct Family {
  double norm_momentum;
  const char* depthwise_name;
  bool pads;              // margins of their own before strides
  double dropped;         // of the last residual branch; 0 of the first
  bool strict_rounding;   // at most a tenth fewer filters
  bool repeats_in_total;  // the share of a block counts stages' repeats before scaling
};
constexpr Family kFirst{0.99, "dwconv", true, 0.2, true, false};
constexpr Family kSecond{0.9, "dwconv2", false, 0.2, false, true};

class Network {
 public:
  Network(const Family& family, double width, double depth)
      : family_(family), width_(width), depth_(depth) {}

  std::int64_t filters(std::int64_t count) const {
    const double wanted = static_cast<double>(count) * width_;
    if (family_.strict_rounding) return multiple_of_8(wanted);
    return std::max<std::int64_t>(8, static_cast<std::int64_t>(wanted + 4) / 8 * 8);
  }
  std::int64_t repeats(std::int64_t count) const {
    return static_cast<std::int64_t>(std::ceil(depth_ * static_cast<double>(count)));
  }
  NormBlock norm() const { return {.momentum = family_.norm_momentum}; }
  KerasTensor norm_swish(const KerasTensor& x, const std::string& norm,
                         const std::string& activation) const {
    return activate(batch_norm(x, norm, this->norm()), "swish", activation);
  }

  KerasTensor stages(KerasTensor x, const std::vector<Stage>& stages) const {
    double total = 0;
    for (const Stage& stage : stages)
      total +=
          static_cast<double>(family_.repeats_in_total ? stage.repeats : repeats(stage.repeats));
    int done = 0;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      Stage stage = stages[i];
      stage.in = filters(stage.in);
      stage.out = filters(stage.out);
      for (std::int64_t j = 0; j < repeats(stages[i].repeats); ++j) {
        if (j > 0) {
          stage.stride = 1;
          stage.in = stage.out;
        }
        const std::string prefix = cat("block", i + 1, std::string(1, static_cast<char>('a' + j)));
        x = block(x, stage, family_.dropped * done / total, prefix + "_");
        ++done;
      }
    }
    return x;
  }

  Model finish(const KerasTensor& input, KerasTensor x, double dropout, const ApplicationOptions& o,
               const std::string& name) const {
    x = conv(x, filters(1280), 1, "top_conv", {.initializer = kernels()});
    x = norm_swish(x, "top_bn", "top_activation");
    if (!o.include_top)
      return finish_application(input, pooled_features(x, o, "avg_pool", "max_pool"), o, name);
    x = GlobalAveragePooling2D({.name = "avg_pool"})(x);
    if (dropout > 0) x = Dropout(dropout, {.name = "top_dropout"})(x);
    x = Dense(o.classes, {.activation = o.classifier_activation,
                          .kernel_initializer = dense_kernels(),
                          .name = "predictions"})(x);
    return finish_application(input, x, o, name);
  }

 private:
  KerasTensor squeezed(const KerasTensor& x, const Stage& stage, const std::string& name) const {
    const std::int64_t all = stage.in * stage.expansion;
    const auto few = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(static_cast<double>(stage.in) * stage.squeeze));
    KerasTensor s = GlobalAveragePooling2D({.name = name + "se_squeeze"})(x);
    s = Reshape({1, 1, all}, {.name = name + "se_reshape"})(s);
    s = conv(s, few, 1, name + "se_reduce",
             {.use_bias = true, .initializer = kernels(), .activation = "swish"});
    s = conv(s, all, 1, name + "se_expand",
             {.use_bias = true, .initializer = kernels(), .activation = "sigmoid"});
    return Multiply({.name = name + "se_excite"})({x, s});
  }

  KerasTensor block(const KerasTensor& input, const Stage& stage, double dropped,
                    const std::string& name) const {
    const std::int64_t all = stage.in * stage.expansion;
    const bool expands = stage.expansion != 1;
    KerasTensor x = input;
    if (expands) {
      x = conv(x, all, stage.fused ? stage.kernel_size : 1, name + "expand_conv",
               {.strides = stage.fused ? stage.stride : 1, .initializer = kernels()});
      x = norm_swish(x, name + "expand_bn", name + "expand_activation");
    }
    if (!stage.fused) {
      const bool pads = family_.pads && stage.stride == 2;
      if (pads) x = zero_pad(x, strided_margins(x, stage.kernel_size), name + "dwconv_pad");
      x = depthwise(
          x, stage.kernel_size, name + family_.depthwise_name,
          {.strides = stage.stride, .padding = pads ? "valid" : "same", .initializer = kernels()});
      x = norm_swish(x, name + "bn", name + "activation");
    }
    if (stage.squeeze > 0) x = squeezed(x, stage, name);
    const bool convolves = stage.fused && !expands;
    x = conv(x, stage.out, convolves ? stage.kernel_size : 1, name + "project_conv",
             {.strides = convolves ? stage.stride : 1, .initializer = kernels()});
    x = batch_norm(x, name + "project_bn", norm());
    if (convolves) x = activate(x, "swish", name + "project_activation");
    if (stage.stride != 1 || stage.in != stage.out) return x;
    if (dropped > 0) x = Dropout(dropped, {.noise_shape = {-1, 1, 1, 1}, .name = name + "drop"})(x);
    return add(x, input, name + "add");
  }

  const Family& family_;
  double width_;
  double depth_;
};

const std::vector<Stage>& first_stages() {
  static const std::vector<Stage> stages{
      {3, 1, 32, 16, 1, 0.25, 1, false},  {3, 2, 16, 24, 6, 0.25, 2, false},
      {5, 2, 24, 40, 6, 0.25, 2, false},  {3, 3, 40, 80, 6, 0.25, 2, false},
      {5, 3, 80, 112, 6, 0.25, 1, false}, {5, 4, 112, 192, 6, 0.25, 2, false},
      {3, 1, 192, 320, 6, 0.25, 1, false}};
  return stages;
}

Model efficientnet_model(const char* who, double width, double depth, std::int64_t size,
                         double dropout, const ApplicationOptions& o, const std::string& name) {
  const Network network(kFirst, width, depth);
  const KerasTensor input = application_input(who, o, size);
  KerasTensor x = Normalization({.axis = 3})(Rescaling(1 / 255.0)(input));
  x = zero_pad(x, strided_margins(x, 3), "stem_conv_pad");
  x = conv(x, network.filters(32), 3, "stem_conv",
           {.strides = 2, .padding = "valid", .initializer = kernels()});
  x = network.norm_swish(x, "stem_bn", "stem_activation");
  x = network.stages(x, first_stages());
  return network.finish(input, x, dropout, o, name);
}

const std::vector<Stage>& base_stages() {
  static const std::vector<Stage> stages{
      {3, 1, 32, 16, 1, 0, 1, true},      {3, 2, 16, 32, 4, 0, 2, true},
      {3, 2, 32, 48, 4, 0, 2, true},      {3, 3, 48, 96, 4, 0.25, 2, false},
      {3, 5, 96, 112, 6, 0.25, 1, false}, {3, 8, 112, 192, 6, 0.25, 2, false}};
  return stages;
}

struct Scaling {
  double width = 1;
  double depth = 1;
  std::int64_t size;
  bool base;  // normalizes by ImageNet's means; the others scale to -1 … 1
};

Model efficientnet_v2_model(const char* who, const Scaling& scaling,
                            const std::vector<Stage>& stages, const ScalingApplicationOptions& s,
                            const std::string& name) {
  const ApplicationOptions o = shared_options(s);
  const Network network(kSecond, scaling.width, scaling.depth);
  const KerasTensor input = application_input(who, o, scaling.size);
  KerasTensor x = input;
  if (s.include_preprocessing && scaling.base && channels(x) == 3) {
    x = Rescaling(1.0 / 255)(x);
    x = Normalization({.axis = 3,
                       .mean = {{0.485, 0.456, 0.406}},
                       .variance = {{0.229 * 0.229, 0.224 * 0.224, 0.225 * 0.225}}})(x);
  } else if (s.include_preprocessing) {
    x = Rescaling(1 / 128.0, -1)(x);
  }
  x = conv(x, network.filters(stages.front().in), 3, "stem_conv",
           {.strides = 2, .initializer = kernels()});
  x = network.norm_swish(x, "stem_bn", "stem_activation");
  return network.finish(input, network.stages(x, stages), 0.2, o, name);
}

}  // namespace

Model EfficientNetB0(const ApplicationOptions& o) {
  return efficientnet_model("EfficientNetB0", 1.0, 1.0, 224, 0.2, o, "efficientnetb0");
}
Model EfficientNetB1(const ApplicationOptions& o) {
  return efficientnet_model("EfficientNetB1", 1.0, 1.1, 240, 0.2, o, "efficientnetb1");
}
Model EfficientNetB2(const ApplicationOptions& o) {
  return efficientnet_model("EfficientNetB2", 1.1, 1.2, 260, 0.3, o, "efficientnetb2");
}
Model EfficientNetB3(const ApplicationOptions& o) {
  return efficientnet_model("EfficientNetB3", 1.2, 1.4, 300, 0.3, o, "efficientnetb3");
}
Model EfficientNetB4(const ApplicationOptions& o) {
  return efficientnet_model("EfficientNetB4", 1.4, 1.8, 380, 0.4, o, "efficientnetb4");
}
Model EfficientNetB5(const ApplicationOptions& o) {
  return efficientnet_model("EfficientNetB5", 1.6, 2.2, 456, 0.4, o, "efficientnetb5");
}
Model EfficientNetB6(const ApplicationOptions& o) {
  return efficientnet_model("EfficientNetB6", 1.8, 2.6, 528, 0.5, o, "efficientnetb6");
}
Model EfficientNetB7(const ApplicationOptions& o) {
  return efficientnet_model("EfficientNetB7", 2.0, 3.1, 600, 0.5, o, "efficientnetb7");
}

Model EfficientNetV2B0(const ScalingApplicationOptions& o) {
  return efficientnet_v2_model("EfficientNetV2B0", {1.0, 1.0, 224, true}, base_stages(), o,
                               "efficientnetv2-b0");
}
Model EfficientNetV2B1(const ScalingApplicationOptions& o) {
  return efficientnet_v2_model("EfficientNetV2B1", {1.0, 1.1, 240, true}, base_stages(), o,
                               "efficientnetv2-b1");
}
Model EfficientNetV2B2(const ScalingApplicationOptions& o) {
  return efficientnet_v2_model("EfficientNetV2B2", {1.1, 1.2, 260, true}, base_stages(), o,
                               "efficientnetv2-b2");
}
Model EfficientNetV2B3(const ScalingApplicationOptions& o) {
  return efficientnet_v2_model("EfficientNetV2B3", {1.2, 1.4, 300, true}, base_stages(), o,
                               "efficientnetv2-b3");
}
Model EfficientNetV2S(const ScalingApplicationOptions& o) {
  return efficientnet_v2_model("EfficientNetV2S", {1, 1, 384, false},
                               {{3, 2, 24, 24, 1, 0, 1, true},
                                {3, 4, 24, 48, 4, 0, 2, true},
                                {3, 4, 48, 64, 4, 0, 2, true},
                                {3, 6, 64, 128, 4, 0.25, 2, false},
                                {3, 9, 128, 160, 6, 0.25, 1, false},
                                {3, 15, 160, 256, 6, 0.25, 2, false}},
                               o, "efficientnetv2-s");
}
Model EfficientNetV2M(const ScalingApplicationOptions& o) {
  return efficientnet_v2_model("EfficientNetV2M", {1, 1, 480, false},
                               {{3, 3, 24, 24, 1, 0, 1, true},
                                {3, 5, 24, 48, 4, 0, 2, true},
                                {3, 5, 48, 80, 4, 0, 2, true},
                                {3, 7, 80, 160, 4, 0.25, 2, false},
                                {3, 14, 160, 176, 6, 0.25, 1, false},
                                {3, 18, 176, 304, 6, 0.25, 2, false},
                                {3, 5, 304, 512, 6, 0.25, 1, false}},
                               o, "efficientnetv2-m");
}
Model EfficientNetV2L(const ScalingApplicationOptions& o) {
  return efficientnet_v2_model("EfficientNetV2L", {1, 1, 480, false},
                               {{3, 4, 32, 32, 1, 0, 1, true},
                                {3, 7, 32, 64, 4, 0, 2, true},
                                {3, 7, 64, 96, 4, 0, 2, true},
                                {3, 10, 96, 192, 4, 0.25, 2, false},
                                {3, 19, 192, 224, 6, 0.25, 1, false},
                                {3, 25, 224, 384, 6, 0.25, 2, false},
                                {3, 7, 384, 640, 6, 0.25, 1, false}},
                               o, "efficientnetv2-l");
}

}  // namespace tandem::keras::applications
