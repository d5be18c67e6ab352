#include <array>

#include "tandem/core/error.h"
#include "tandem/keras/internal/application_blocks.h"

// He et al. 2015, "Deep Residual Learning for Image Recognition", and 2016, "Identity Mappings in
// Deep Residual Networks" (V2: normalization and activation before each convolution).

namespace tandem::keras::applications {
namespace {

using namespace internal;

constexpr NormBlock kNorm{.epsilon = 1.001e-5};
constexpr std::array<std::int64_t, 4> kFilters{64, 128, 256, 512};

KerasTensor norm_relu(const KerasTensor& x, const std::string& name) {
  return activate(batch_norm(x, name + "_bn", kNorm), "relu", name + "_relu");
}

KerasTensor residual(const KerasTensor& x, std::int64_t filters, std::int64_t stride, bool widens,
                     const std::string& name) {
  KerasTensor shortcut = x;
  if (widens) {
    shortcut = conv(x, 4 * filters, 1, name + "_0_conv",
                    {.strides = stride, .padding = "valid", .use_bias = true});
    shortcut = batch_norm(shortcut, name + "_0_bn", kNorm);
  }
  KerasTensor y = conv(x, filters, 1, name + "_1_conv",
                       {.strides = stride, .padding = "valid", .use_bias = true});
  y = norm_relu(y, name + "_1");
  y = norm_relu(conv(y, filters, 3, name + "_2_conv", {.use_bias = true}), name + "_2");
  y = conv(y, 4 * filters, 1, name + "_3_conv", {.padding = "valid", .use_bias = true});
  y = batch_norm(y, name + "_3_bn", kNorm);
  return activate(add(shortcut, y, name + "_add"), "relu", name + "_out");
}

KerasTensor residual_v2(const KerasTensor& x, std::int64_t filters, std::int64_t stride,
                        bool widens, const std::string& name) {
  const KerasTensor first = norm_relu(x, name + "_preact");
  KerasTensor shortcut = x;
  if (widens) {
    shortcut = conv(first, 4 * filters, 1, name + "_0_conv",
                    {.strides = stride, .padding = "valid", .use_bias = true});
  } else if (stride > 1) {
    shortcut = max_pool(x, 1, stride, "");
  }
  KerasTensor y =
      norm_relu(conv(first, filters, 1, name + "_1_conv", {.padding = "valid"}), name + "_1");
  y = zero_pad(y, 1, name + "_2_pad");
  y = conv(y, filters, 3, name + "_2_conv", {.strides = stride, .padding = "valid"});
  y = norm_relu(y, name + "_2");
  y = conv(y, 4 * filters, 1, name + "_3_conv", {.padding = "valid", .use_bias = true});
  return add(shortcut, y, name + "_out");
}

KerasTensor stem(const KerasTensor& input, bool normalized) {
  KerasTensor x = zero_pad(input, 3, "conv1_pad");
  x = conv(x, 64, 7, "conv1_conv", {.strides = 2, .padding = "valid", .use_bias = true});
  if (normalized) x = norm_relu(x, "conv1");
  return max_pool(zero_pad(x, 1, "pool1_pad"), 3, 2, "pool1_pool");
}

Model resnet_model(const char* who, const std::array<int, 4>& depths, const ApplicationOptions& o,
                   const std::string& name) {
  const KerasTensor input = application_input(who, o, 224);
  KerasTensor x = stem(input, true);
  for (std::size_t stage = 0; stage < depths.size(); ++stage) {
    for (int block = 1; block <= depths[stage]; ++block) {
      const bool first = block == 1;
      x = residual(x, kFilters[stage], first && stage > 0 ? 2 : 1, first,
                   cat("conv", stage + 2, "_block", block));
    }
  }
  return finish_application(input, classifier(x, o, "avg_pool", "max_pool"), o, name);
}

Model resnet_v2_model(const char* who, const std::array<int, 4>& depths,
                      const ApplicationOptions& o, const std::string& name) {
  const KerasTensor input = application_input(who, o, 224);
  KerasTensor x = stem(input, false);
  for (std::size_t stage = 0; stage < depths.size(); ++stage) {
    for (int block = 1; block <= depths[stage]; ++block) {
      const bool shrinks = block == depths[stage] && stage + 1 < depths.size();
      x = residual_v2(x, kFilters[stage], shrinks ? 2 : 1, block == 1,
                      cat("conv", stage + 2, "_block", block));
    }
  }
  x = norm_relu(x, "post");
  return finish_application(input, classifier(x, o, "avg_pool", "max_pool"), o, name);
}

}  // namespace

Model ResNet50(const ApplicationOptions& o) {
  return resnet_model("ResNet50", {3, 4, 6, 3}, o, "resnet50");
}
Model ResNet101(const ApplicationOptions& o) {
  return resnet_model("ResNet101", {3, 4, 23, 3}, o, "resnet101");
}
Model ResNet152(const ApplicationOptions& o) {
  return resnet_model("ResNet152", {3, 8, 36, 3}, o, "resnet152");
}
Model ResNet50V2(const ApplicationOptions& o) {
  return resnet_v2_model("ResNet50V2", {3, 4, 6, 3}, o, "resnet50v2");
}
Model ResNet101V2(const ApplicationOptions& o) {
  return resnet_v2_model("ResNet101V2", {3, 4, 23, 3}, o, "resnet101v2");
}
Model ResNet152V2(const ApplicationOptions& o) {
  return resnet_v2_model("ResNet152V2", {3, 8, 36, 3}, o, "resnet152v2");
}

}  // namespace tandem::keras::applications
