#pragma once

#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/spatial.h"
#include "tandem/keras/layer_impl.h"

namespace tandem::keras::internal {

/// The arguments of all convolutions but those of their kernels.
inline constexpr auto kConvArguments = [](auto& a, auto& o) {
  a("strides", o.strides);
  a("padding", o.padding);
  a("data_format", o.data_format);
  a("dilation_rate", o.dilation_rate);
  a("activation", o.activation);
  a("use_bias", o.use_bias);
  a("bias_initializer", o.bias_initializer);
  a("bias_regularizer", o.bias_regularizer);
  a("bias_constraint", o.bias_constraint);
  a("activity_regularizer", o.activity_regularizer);
};

/// What all convolution layers have in common: everything but their kernels. `Options` is one of
/// ConvOptions and its like.
template <class Options>
class ConvBase : public LayerImpl {
 public:
  ConvBase(const std::string& class_name, Sizes kernel_size, const Options& o,
           const std::string& padding)
      : LayerImpl(class_name, {.name = o.name, .trainable = o.trainable, .dtype = o.dtype}),
        options_(o),
        kernel_size_(std::move(kernel_size)),
        windows_(make_windows(class_name, padding, o.data_format, sizes_of(o.strides),
                              sizes_of(o.dilation_rate))) {
    require_positive_sizes(class_name, "kernel_size", kernel_size_);
    require_rank(dims() + 2);
  }
  ConvBase(const std::string& class_name, Sizes kernel_size, const Options& o)
      : ConvBase(class_name, std::move(kernel_size), o, o.padding) {}

  Tensor call(const Tensor& x, bool) override {
    Tensor y = apply_kernel(x);
    if (has_no_window(x, y)) throw_no_window(prefix(), x, y);
    if (options_.use_bias) y = add_channel_bias(std::move(y), bias_, windows_);
    y = options_.activation(y);
    if (options_.activity_regularizer.defined()) {
      add_loss(activity_penalty(options_.activity_regularizer, y));
    }
    return y;
  }

 protected:
  virtual Tensor apply_kernel(const Tensor& x) const = 0;

  int dims() const { return static_cast<int>(kernel_size_.size()); }
  /// The kernel's sizes, then these.
  Shape kernel_shape(std::initializer_list<std::int64_t> rest) const {
    Shape shape;
    for (const std::int64_t size : kernel_size_) shape.add_dim(size);
    for (const std::int64_t size : rest) shape.add_dim(size);
    return shape;
  }
  std::int64_t channels_of(const PartialShape& input) {
    const int axis = windows_.channels_last ? -1 : 1;
    const std::int64_t channels = known_size(input, axis);
    require_size(axis, channels);
    return channels;
  }
  void add_bias(std::int64_t size) {
    if (!options_.use_bias) return;
    bias_ = add_weight("bias", {size},
                       {.initializer = options_.bias_initializer,
                        .regularizer = options_.bias_regularizer,
                        .constraint = options_.bias_constraint});
  }
  void refuse_strides_with_dilation() const {
    const auto more = [](const Sizes& sizes) {
      for (const std::int64_t size : sizes) {
        if (size > 1) return true;
      }
      return false;
    };
    if (more(windows_.strides) && more(windows_.dilations)) {
      throw InvalidArgumentError(cat(
          class_name(), ": `strides > 1` not supported in conjunction with `dilation_rate > 1`."));
    }
  }

  Options options_;
  Sizes kernel_size_;
  Windows windows_;
  Variable bias_;
};

}  // namespace tandem::keras::internal
