#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/keras/applications.h"
#include "tandem/keras/layers.h"

namespace tandem::keras::internal {

// What the architectures of applications.h are put together from.

/// The options that all of them have.
template <class Options>
applications::ApplicationOptions shared_options(const Options& o) {
  return {.include_top = o.include_top,
          .weights = o.weights,
          .input_tensor = o.input_tensor,
          .input_shape = o.input_shape,
          .pooling = o.pooling,
          .classes = o.classes,
          .classifier_activation = o.classifier_activation,
          .name = o.name};
}

/// The images: the given tensor, or an Input of the given shape or of the default size.
KerasTensor application_input(const char* who, const applications::ApplicationOptions& o,
                              std::int64_t default_size, std::int64_t min_size = 32);
/// Global pooling "avg" or "max" if asked for; the names are the layers'.
KerasTensor pooled_features(const KerasTensor& x, const applications::ApplicationOptions& o,
                            const std::string& avg_name = {}, const std::string& max_name = {});
/// Average pooling and a dense layer of classes, or `pooled_features`.
KerasTensor classifier(const KerasTensor& x, const applications::ApplicationOptions& o,
                       const std::string& avg_name = {}, const std::string& max_name = {},
                       const Initializer& kernel_initializer = "glorot_uniform");
/// The model of what lies between, with the weights of the file.
Model finish_application(const KerasTensor& input, const KerasTensor& output,
                         const applications::ApplicationOptions& o, const std::string& name);

struct ConvBlock {
  Size2D strides = 1;
  std::string padding = "same";
  bool use_bias = false;
  Initializer initializer = "glorot_uniform";
  ActivationFunction activation = {};
};
KerasTensor conv(const KerasTensor& x, std::int64_t filters, Size2D size, const std::string& name,
                 const ConvBlock& block = {});
KerasTensor depthwise(const KerasTensor& x, Size2D size, const std::string& name,
                      const ConvBlock& block = {}, std::int64_t depth_multiplier = 1);
KerasTensor separable(const KerasTensor& x, std::int64_t filters, Size2D size,
                      const std::string& name, const ConvBlock& block = {});
struct NormBlock {
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool scale = true;
};
KerasTensor batch_norm(const KerasTensor& x, const std::string& name, const NormBlock& block = {});
KerasTensor activate(const KerasTensor& x, const ActivationFunction& activation,
                     const std::string& name = {});
KerasTensor max_pool(const KerasTensor& x, Size2D size, Size2D strides, const std::string& name,
                     const std::string& padding = "valid");
KerasTensor average_pool(const KerasTensor& x, Size2D size, Size2D strides, const std::string& name,
                         const std::string& padding = "valid");
KerasTensor zero_pad(const KerasTensor& x, const Margins& margins, const std::string& name = {});
KerasTensor add(const KerasTensor& x, const KerasTensor& y, const std::string& name = {});
KerasTensor concatenate(const std::vector<KerasTensor>& x, const std::string& name = {});

std::int64_t channels(const KerasTensor& x);
/// Zeros before a strided convolution, so that it sees the same pixels for even and odd sizes.
Margins strided_margins(const KerasTensor& x, std::int64_t kernel_size);
/// The multiple of 8 nearest to a number of filters, at most a tenth less.
std::int64_t multiple_of_8(double filters);

}  // namespace tandem::keras::internal
