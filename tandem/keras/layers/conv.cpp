#include "tandem/keras/layers/conv.h"

#include <type_traits>

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/conv_base.h"

namespace tandem::keras {
namespace {

using internal::ConvBase;

// Layers of sequences know a third padding: "valid" after zeros before the first step.
template <class Size>
bool is_causal(const ConvOptions<Size>& o) {
  return std::is_same_v<Size, std::int64_t> && o.padding == "causal";
}

template <class Size>
std::string padding_of(const std::string& class_name, const ConvOptions<Size>& o) {
  if (is_causal(o)) return "valid";
  if (std::is_same_v<Size, std::int64_t> && o.padding != "valid" && o.padding != "same") {
    throw InvalidArgumentError(cat(class_name, ": padding must be 'valid', 'same' or 'causal', ",
                                   "got '", o.padding, "'."));
  }
  return o.padding;
}

template <class Size>
class ConvImpl final : public ConvBase<ConvOptions<Size>> {
 public:
  ConvImpl(const std::string& class_name, std::int64_t filters, const Size& kernel_size,
           const ConvOptions<Size>& o)
      : ConvBase<ConvOptions<Size>>(class_name, internal::sizes_of(kernel_size), o,
                                    padding_of(class_name, o)),
        filters_(filters) {
    internal::require_positive(class_name, "filters", filters);
    internal::require_positive(class_name, "groups", o.groups);
    if (filters % o.groups != 0) {
      throw InvalidArgumentError(cat(class_name,
                                     ": The number of filters must be evenly divisible by the "
                                     "number of groups. Received: groups=",
                                     o.groups, ", filters=", filters, "."));
    }
    this->refuse_strides_with_dilation();
  }

  void build(const PartialShape& input) override {
    const auto& o = this->options_;
    const std::int64_t channels = this->channels_of(input);
    if (channels % o.groups != 0) {
      throw InvalidArgumentError(
          cat(this->prefix(),
              "The number of input channels must be evenly divisible by the number of "
              "groups. Received groups=",
              o.groups, ", but the input has ", channels, " channels."));
    }
    kernel_ = this->add_weight("kernel", this->kernel_shape({channels / o.groups, filters_}),
                               {.initializer = o.kernel_initializer,
                                .regularizer = o.kernel_regularizer,
                                .constraint = o.kernel_constraint,
                                .saved_as = "_kernel"});
    this->add_bias(filters_);
  }

  Tensor apply_kernel(const Tensor& x) const override {
    const Tensor input = is_causal(this->options_)
                             ? internal::pad_before(x, this->kernel_size_[0], this->windows_)
                             : x;
    return convolve(input, kernel_, this->windows_);
  }

 private:
  std::int64_t filters_;
  Variable kernel_;
};

template <class Size>
class DepthwiseConvImpl final : public ConvBase<DepthwiseConvOptions<Size>> {
 public:
  DepthwiseConvImpl(const std::string& class_name, const Size& kernel_size,
                    const DepthwiseConvOptions<Size>& o)
      : ConvBase<DepthwiseConvOptions<Size>>(class_name, internal::sizes_of(kernel_size), o) {
    internal::require_positive(class_name, "depth_multiplier", o.depth_multiplier);
    internal::require_equal_strides(class_name, this->windows_.strides);
    this->refuse_strides_with_dilation();
  }

  void build(const PartialShape& input) override {
    const auto& o = this->options_;
    const std::int64_t channels = this->channels_of(input);
    kernel_ = this->add_weight("kernel", this->kernel_shape({channels, o.depth_multiplier}),
                               {.initializer = o.depthwise_initializer,
                                .regularizer = o.depthwise_regularizer,
                                .constraint = o.depthwise_constraint});
    this->add_bias(checked_multiply(channels, o.depth_multiplier));
  }

  Tensor apply_kernel(const Tensor& x) const override {
    return convolve_depthwise(x, kernel_, this->windows_);
  }

 private:
  Variable kernel_;
};

constexpr auto kConv = [](auto& a, auto& o, auto& filters, auto& kernel_size) {
  a("filters", filters);
  a("kernel_size", kernel_size);
  internal::kConvArguments(a, o);
  a("groups", o.groups);
  a("kernel_initializer", o.kernel_initializer);
  a("kernel_regularizer", o.kernel_regularizer);
  a("kernel_constraint", o.kernel_constraint);
};
constexpr auto kDepthwise = [](auto& a, auto& o, auto& kernel_size) {
  a("kernel_size", kernel_size);
  internal::kConvArguments(a, o);
  a("depth_multiplier", o.depth_multiplier);
  a("depthwise_initializer", o.depthwise_initializer);
  a("depthwise_regularizer", o.depthwise_regularizer);
  a("depthwise_constraint", o.depthwise_constraint);
  // Arguments of the convolution that Keras derives the class from.
  for (const char* name : {"filters", "groups", "kernel_initializer", "kernel_regularizer"})
    a.ignore(name);
};

}  // namespace

Conv1D::Conv1D(std::int64_t filters, std::int64_t kernel_size, const Conv1DOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<ConvImpl<std::int64_t>>("Conv1D", filters, kernel_size, options), kConv,
          options, filters, kernel_size)) {}
Conv2D::Conv2D(std::int64_t filters, Size2D kernel_size, const Conv2DOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<ConvImpl<Size2D>>("Conv2D", filters, kernel_size, options), kConv,
          options, filters, kernel_size)) {}
Conv3D::Conv3D(std::int64_t filters, Size3D kernel_size, const Conv3DOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<ConvImpl<Size3D>>("Conv3D", filters, kernel_size, options), kConv,
          options, filters, kernel_size)) {}
DepthwiseConv1D::DepthwiseConv1D(std::int64_t kernel_size, const DepthwiseConv1DOptions& options)
    : Layer(internal::with_arguments(std::make_shared<DepthwiseConvImpl<std::int64_t>>(
                                         "DepthwiseConv1D", kernel_size, options),
                                     kDepthwise, options, kernel_size)) {}
DepthwiseConv2D::DepthwiseConv2D(Size2D kernel_size, const DepthwiseConv2DOptions& options)
    : Layer(internal::with_arguments(
          std::make_shared<DepthwiseConvImpl<Size2D>>("DepthwiseConv2D", kernel_size, options),
          kDepthwise, options, kernel_size)) {}

namespace {
const bool kRegistered[] = {
    internal::register_layer_class<Conv1D, Conv1DOptions, std::int64_t, std::int64_t>("Conv1D",
                                                                                      kConv),
    internal::register_layer_class<Conv2D, Conv2DOptions, std::int64_t, Size2D>("Conv2D", kConv),
    internal::register_layer_class<Conv3D, Conv3DOptions, std::int64_t, Size3D>("Conv3D", kConv),
    internal::register_layer_class<DepthwiseConv1D, DepthwiseConv1DOptions, std::int64_t>(
        "DepthwiseConv1D", kDepthwise),
    internal::register_layer_class<DepthwiseConv2D, DepthwiseConv2DOptions, Size2D>(
        "DepthwiseConv2D", kDepthwise)};
}  // namespace

}  // namespace tandem::keras
