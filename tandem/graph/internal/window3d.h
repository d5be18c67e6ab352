#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/graph/internal/window.h"

// Windows that move over volumes [batch, planes, rows, columns, channels]: as window.h for images.

namespace tandem {

/// strides, dilations, ksize, padding and data_format, checked. Index 0 is planes, 2 is columns.
struct TANDEM_EXPORT Window3D {
  using Sizes = std::vector<std::int64_t>;

  bool channels_first = false;
  bool same = false;
  std::int64_t stride[3] = {1, 1, 1};
  std::int64_t dilation[3] = {1, 1, 1};
  std::int64_t ksize[3] = {1, 1, 1};

  Window3D(const std::string& data_format, const std::string& padding);
  /// One size for each of five axes into the three spatial ones; those of batch and channels must
  /// be 1, all of them positive.
  void set(std::int64_t (&sizes)[3], const Sizes& five, const char* name) const;

  int channel_axis() const { return channels_first ? 1 : 4; }
  int spatial_axis(int i) const { return (channels_first ? 2 : 1) + i; }
  /// Placement along axis i for windows of `size`; sizes of -1 are unknown.
  WindowAxis axis(int i, std::int64_t input, std::int64_t size) const;

  template <class ShapeType>
  ShapeType make_shape(std::int64_t batch, const std::int64_t (&spatial)[3],
                       std::int64_t channels) const {
    return channels_first ? ShapeType{batch, channels, spatial[0], spatial[1], spatial[2]}
                          : ShapeType{batch, spatial[0], spatial[1], spatial[2], channels};
  }
};

/// Reads the attributes of convolutions; C is a KernelContext or an InferenceContext.
template <class C>
Window3D read_conv3d_attrs(const C& c) {
  Window3D w(c.template attr<std::string>("data_format"), c.template attr<std::string>("padding"));
  w.set(w.stride, c.template attr<Window3D::Sizes>("strides"), "strides");
  w.set(w.dilation, c.template attr<Window3D::Sizes>("dilations"), "dilations");
  return w;
}

/// Reads the attributes of pooling ops.
template <class C>
Window3D read_pool3d_attrs(const C& c) {
  Window3D w(c.template attr<std::string>("data_format"), c.template attr<std::string>("padding"));
  w.set(w.ksize, c.template attr<Window3D::Sizes>("ksize"), "ksize");
  w.set(w.stride, c.template attr<Window3D::Sizes>("strides"), "strides");
  return w;
}

}  // namespace tandem
