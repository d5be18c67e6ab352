#include "tandem/keras/layers/conv.h"

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/images.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/nn_ops.h"

namespace tandem::keras {
namespace {

// What both kinds have in common: everything but the kernel.
template <class Options>
class ConvBase : public LayerImpl {
 public:
  ConvBase(const std::string& class_name, Size2D kernel_size, const Options& o)
      : LayerImpl(class_name, {.name = o.name, .trainable = o.trainable, .dtype = o.dtype}),
        options_(o),
        kernel_size_(kernel_size),
        padding_(internal::ops_padding(class_name, o.padding)),
        format_(internal::ops_data_format(class_name, o.data_format)) {
    internal::require_positive_size(class_name, "kernel_size", kernel_size);
    internal::require_positive_size(class_name, "strides", o.strides);
    internal::require_positive_size(class_name, "dilation_rate", o.dilation_rate);
    const auto more = [](const Size2D& s) { return s.height > 1 || s.width > 1; };
    if (more(o.strides) && more(o.dilation_rate)) {
      throw InvalidArgumentError(cat(
          class_name, ": `strides > 1` not supported in conjunction with `dilation_rate > 1`."));
    }
    require_rank(4);
  }

  Tensor call(const Tensor& x, bool) override {
    Tensor y = convolve(x, {.data_format = format_, .dilations = options_.dilation_rate});
    if (options_.use_bias) y = nn::bias_add(std::move(y), bias_, format_);
    y = options_.activation(y);
    if (options_.activity_regularizer.defined()) {
      add_loss(internal::activity_penalty(options_.activity_regularizer, y));
    }
    return y;
  }

  void describe(Config& config) const override {
    const auto list = [](const Size2D& s) { return std::vector<std::int64_t>{s.height, s.width}; };
    config.set("kernel_size", list(kernel_size_)).set("strides", list(options_.strides));
    config.set("padding", options_.padding).set("data_format", options_.data_format);
    config.set("dilation_rate", list(options_.dilation_rate))
        .set("activation", options_.activation.name());
    config.set("use_bias", options_.use_bias);
  }

 protected:
  virtual Tensor convolve(const Tensor& x, const nn::Conv2DOptions& options) const = 0;

  int channel_axis() const { return format_ == "NHWC" ? -1 : 1; }
  std::int64_t channels_of(const PartialShape& input) {
    const std::int64_t channels = known_size(input, channel_axis());
    require_size(channel_axis(), channels);
    return channels;
  }
  void add_bias(std::int64_t size) {
    if (!options_.use_bias) return;
    bias_ = add_weight(
        "bias", {size},
        {.initializer = options_.bias_initializer, .regularizer = options_.bias_regularizer});
  }

  Options options_;
  Size2D kernel_size_;
  nn::Padding padding_;
  std::string format_;
  Variable kernel_;
  Variable bias_;
};

class Conv2DImpl final : public ConvBase<Conv2DOptions> {
 public:
  Conv2DImpl(std::int64_t filters, Size2D kernel_size, const Conv2DOptions& o)
      : ConvBase("Conv2D", kernel_size, o), filters_(filters) {
    internal::require_positive("Conv2D", "filters", filters);
    internal::require_positive("Conv2D", "groups", o.groups);
    if (filters % o.groups != 0) {
      throw InvalidArgumentError(
          cat("Conv2D: The number of filters must be evenly divisible by the number of groups. "
              "Received: groups=",
              o.groups, ", filters=", filters, "."));
    }
  }

  void build(const PartialShape& input) override {
    const std::int64_t channels = channels_of(input);
    if (channels % options_.groups != 0) {
      throw InvalidArgumentError(
          cat(prefix(),
              "The number of input channels must be evenly divisible by the number of "
              "groups. Received groups=",
              options_.groups, ", but the input has ", channels, " channels."));
    }
    kernel_ = add_weight(
        "kernel", {kernel_size_.height, kernel_size_.width, channels / options_.groups, filters_},
        {.initializer = options_.kernel_initializer, .regularizer = options_.kernel_regularizer});
    add_bias(filters_);
  }

  Tensor convolve(const Tensor& x, const nn::Conv2DOptions& options) const override {
    return nn::conv2d(x, kernel_, options_.strides, padding_, options);
  }
  void describe(Config& config) const override {
    config.set("filters", filters_);
    ConvBase::describe(config);
    config.set("groups", options_.groups)
        .set("kernel_initializer", options_.kernel_initializer.name());
  }

 private:
  std::int64_t filters_;
};

class DepthwiseConv2DImpl final : public ConvBase<DepthwiseConv2DOptions> {
 public:
  DepthwiseConv2DImpl(Size2D kernel_size, const DepthwiseConv2DOptions& o)
      : ConvBase("DepthwiseConv2D", kernel_size, o) {
    internal::require_positive("DepthwiseConv2D", "depth_multiplier", o.depth_multiplier);
    if (o.strides.height != o.strides.width) {
      throw InvalidArgumentError(cat("DepthwiseConv2D: both strides must be equal, got ",
                                     o.strides.height, " and ", o.strides.width, "."));
    }
  }

  void build(const PartialShape& input) override {
    const std::int64_t channels = channels_of(input);
    kernel_ = add_weight(
        "kernel", {kernel_size_.height, kernel_size_.width, channels, options_.depth_multiplier},
        {.initializer = options_.depthwise_initializer,
         .regularizer = options_.depthwise_regularizer});
    add_bias(checked_multiply(channels, options_.depth_multiplier));
  }

  Tensor convolve(const Tensor& x, const nn::Conv2DOptions& options) const override {
    return nn::depthwise_conv2d(x, kernel_, options_.strides, padding_, options);
  }
  void describe(Config& config) const override {
    ConvBase::describe(config);
    config.set("depth_multiplier", options_.depth_multiplier);
  }
};

}  // namespace

Conv2D::Conv2D(std::int64_t filters, Size2D kernel_size, const Conv2DOptions& options)
    : Layer(std::make_shared<Conv2DImpl>(filters, kernel_size, options)) {}
DepthwiseConv2D::DepthwiseConv2D(Size2D kernel_size, const DepthwiseConv2DOptions& options)
    : Layer(std::make_shared<DepthwiseConv2DImpl>(kernel_size, options)) {}

}  // namespace tandem::keras
