#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/core/shape.h"

// How convolution and pooling windows move over an image: shared by shape functions and kernels, so
// that both say the same of the same attributes.

namespace tandem {

/// One spatial axis of a window. Sizes that shape inference does not know are -1.
struct WindowAxis {
  std::int64_t input = -1;
  std::int64_t filter = -1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_before = 0;
  std::int64_t pad_after = 0;
  std::int64_t output = -1;
};

/// The attributes strides, dilations, ksize, padding, explicit_paddings and data_format, checked.
/// Index 0 is height, 1 is width.
struct TANDEM_EXPORT WindowAttrs {
  enum class Padding { kSame, kValid, kExplicit };

  bool nchw = false;
  Padding padding = Padding::kValid;
  std::int64_t stride[2] = {1, 1};
  std::int64_t dilation[2] = {1, 1};
  std::int64_t ksize[2] = {1, 1};
  std::int64_t explicit_before[2] = {0, 0};
  std::int64_t explicit_after[2] = {0, 0};

  int channel_axis() const { return nchw ? 1 : 3; }
  int spatial_axis(int i) const { return (nchw ? 2 : 1) + i; }

  void set_format(std::string_view data_format);
  void set_padding(std::string_view padding, const std::vector<std::int64_t>& explicit_paddings);
  /// One size for each of the four axes; those of batch and channels must be 1.
  void set_strides(const std::vector<std::int64_t>& strides);
  void set_dilations(const std::vector<std::int64_t>& dilations);
  void set_ksize(const std::vector<std::int64_t>& ksize);

  /// Placement along axis i; throws InvalidArgumentError if the output's size would be negative.
  WindowAxis axis(int i, std::int64_t input, std::int64_t filter) const;

  /// [batch, height, width, channels] in this format's order.
  template <class ShapeType>
  ShapeType make_shape(std::int64_t batch, std::int64_t height, std::int64_t width,
                       std::int64_t channels) const {
    return nchw ? ShapeType{batch, channels, height, width}
                : ShapeType{batch, height, width, channels};
  }
};

/// Reads the attributes that convolutions have; C is a KernelContext or an InferenceContext.
template <class C>
WindowAttrs read_conv_attrs(const C& c) {
  WindowAttrs w;
  w.set_format(c.template attr<std::string>("data_format"));
  w.set_strides(c.template attr<std::vector<std::int64_t>>("strides"));
  w.set_dilations(c.template attr<std::vector<std::int64_t>>("dilations"));
  w.set_padding(c.template attr<std::string>("padding"),
                c.template attr<std::vector<std::int64_t>>("explicit_paddings"));
  return w;
}

/// Reads the attributes that pooling ops have.
template <class C>
WindowAttrs read_pool_attrs(const C& c, bool has_explicit_paddings, bool sizes_are_attrs = true) {
  static const NeverDestroyed<std::vector<std::int64_t>> kNone;
  WindowAttrs w;
  w.set_format(c.template attr<std::string>("data_format"));
  if (sizes_are_attrs) {
    w.set_ksize(c.template attr<std::vector<std::int64_t>>("ksize"));
    w.set_strides(c.template attr<std::vector<std::int64_t>>("strides"));
  }
  w.set_padding(c.template attr<std::string>("padding"),
                has_explicit_paddings
                    ? c.template attr<std::vector<std::int64_t>>("explicit_paddings")
                    : *kNone);
  return w;
}

}  // namespace tandem
