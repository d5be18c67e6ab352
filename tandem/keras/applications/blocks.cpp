#include <algorithm>
#include <cmath>
#include <set>

#include "tandem/core/error.h"
#include "tandem/keras/internal/application_blocks.h"
#include "tandem/keras/internal/call_node.h"

namespace tandem::keras::internal {

using applications::ApplicationOptions;

KerasTensor application_input(const char* who, const ApplicationOptions& o,
                              std::int64_t default_size, std::int64_t min_size) {
  if (o.weights == "imagenet") {
    throw UnimplementedError(
        cat(who, ": the weights of ImageNet do not come with Tandem. Keras in Python writes them, ",
            "keras.applications.", who, "(", o.include_top ? "" : "include_top=False",
            ").save_weights(\"", who, ".weights.h5\"); give the file's path as `.weights`."));
  }
  if (!o.pooling.empty() && o.pooling != "avg" && o.pooling != "max") {
    throw InvalidArgumentError(
        cat(who, ": pooling must be 'avg', 'max' or left out, got '", o.pooling, "'."));
  }
  if (o.input_tensor) return *o.input_tensor;
  std::vector<std::int64_t> shape = o.input_shape;
  if (shape.empty()) {
    const std::int64_t size = o.include_top ? default_size : -1;
    shape = {size, size, 3};
  }
  if (shape.size() != 3) {
    throw InvalidArgumentError(cat(who, ": `input_shape` must be {height, width, channels}, got ",
                                   shape.size(), " numbers."));
  }
  for (int axis = 0; axis < 2; ++axis) {
    const std::int64_t size = shape[static_cast<std::size_t>(axis)];
    if (size < 0 && o.include_top && default_size > 0) {
      throw InvalidArgumentError(cat(who, ": if `include_top` is true, `input_shape` must be known",
                                     ", but a size of it is -1."));
    }
    if (size >= 0 && size < min_size) {
      throw InvalidArgumentError(cat(who, ": input size must be at least ", min_size, "x", min_size,
                                     ", got input_shape ", PartialShape(shape), "."));
    }
  }
  return Input(PartialShape(shape));
}

KerasTensor pooled_features(const KerasTensor& x, const ApplicationOptions& o,
                            const std::string& avg_name, const std::string& max_name) {
  if (o.pooling == "avg") return GlobalAveragePooling2D({.name = avg_name})(x);
  if (o.pooling == "max") return GlobalMaxPooling2D({.name = max_name})(x);
  return x;
}

KerasTensor classifier(const KerasTensor& x, const ApplicationOptions& o,
                       const std::string& avg_name, const std::string& max_name,
                       const Initializer& kernel_initializer) {
  if (!o.include_top) return pooled_features(x, o, avg_name, max_name);
  const KerasTensor pooled = GlobalAveragePooling2D({.name = avg_name})(x);
  return Dense(o.classes, {.activation = o.classifier_activation,
                           .kernel_initializer = kernel_initializer,
                           .name = "predictions"})(pooled);
}

namespace {

void visit_sources(const KerasTensor& tensor, std::set<const CallNode*>& seen,
                   std::vector<KerasTensor>& sources) {
  if (!seen.insert(tensor.node().get()).second) return;
  if (tensor.node()->inputs.empty()) sources.push_back(tensor);
  for (const KerasTensor& input : tensor.node()->sources()) visit_sources(input, seen, sources);
}

}  // namespace

Model finish_application(const KerasTensor& input, const KerasTensor& output,
                         const ApplicationOptions& o, const std::string& name) {
  std::vector<KerasTensor> sources;
  std::set<const CallNode*> seen;
  visit_sources(input, seen, sources);
  Model model(sources, output, o.name.empty() ? name : o.name);
  if (!o.weights.empty()) model.load_weights(o.weights);
  return model;
}

KerasTensor conv(const KerasTensor& x, std::int64_t filters, Size2D size, const std::string& name,
                 const ConvBlock& block) {
  return Conv2D(filters, size,
                {.strides = block.strides,
                 .padding = block.padding,
                 .activation = block.activation,
                 .use_bias = block.use_bias,
                 .kernel_initializer = block.initializer,
                 .name = name})(x);
}
KerasTensor depthwise(const KerasTensor& x, Size2D size, const std::string& name,
                      const ConvBlock& block, std::int64_t depth_multiplier) {
  return DepthwiseConv2D(size, {.strides = block.strides,
                                .padding = block.padding,
                                .depth_multiplier = depth_multiplier,
                                .use_bias = block.use_bias,
                                .depthwise_initializer = block.initializer,
                                .name = name})(x);
}
KerasTensor separable(const KerasTensor& x, std::int64_t filters, Size2D size,
                      const std::string& name, const ConvBlock& block) {
  return SeparableConv2D(filters, size,
                         {.strides = block.strides,
                          .padding = block.padding,
                          .use_bias = block.use_bias,
                          .name = name})(x);
}
KerasTensor batch_norm(const KerasTensor& x, const std::string& name, const NormBlock& block) {
  return BatchNormalization(
      {.momentum = block.momentum, .epsilon = block.epsilon, .scale = block.scale, .name = name})(
      x);
}
KerasTensor activate(const KerasTensor& x, const ActivationFunction& activation,
                     const std::string& name) {
  return Activation(activation, {.name = name})(x);
}
KerasTensor max_pool(const KerasTensor& x, Size2D size, Size2D strides, const std::string& name,
                     const std::string& padding) {
  return MaxPooling2D({.pool_size = size, .strides = strides, .padding = padding, .name = name})(x);
}
KerasTensor average_pool(const KerasTensor& x, Size2D size, Size2D strides, const std::string& name,
                         const std::string& padding) {
  return AveragePooling2D(
      {.pool_size = size, .strides = strides, .padding = padding, .name = name})(x);
}
KerasTensor zero_pad(const KerasTensor& x, const Margins& margins, const std::string& name) {
  return ZeroPadding2D(margins, {.name = name})(x);
}
KerasTensor add(const KerasTensor& x, const KerasTensor& y, const std::string& name) {
  return Add({.name = name})({x, y});
}
KerasTensor concatenate(const std::vector<KerasTensor>& x, const std::string& name) {
  return Concatenate({.name = name})(x);
}

std::int64_t channels(const KerasTensor& x) { return x.shape().dim(-1); }

Margins strided_margins(const KerasTensor& x, std::int64_t kernel_size) {
  const std::int64_t middle = kernel_size / 2;
  const bool known = x.shape().dim(1) >= 0;
  const auto pair = [&](int axis) {
    const std::int64_t less = known ? 1 - x.shape().dim(axis) % 2 : 1;
    return Margins::Pair(middle - less, middle);
  };
  return Margins(std::vector<Margins::Pair>{pair(1), pair(2)});
}

std::int64_t multiple_of_8(double filters) {
  const auto nearest = static_cast<std::int64_t>(filters + 4) / 8 * 8;
  const std::int64_t rounded = std::max<std::int64_t>(8, nearest);
  return static_cast<double>(rounded) < 0.9 * filters ? rounded + 8 : rounded;
}

}  // namespace tandem::keras::internal
