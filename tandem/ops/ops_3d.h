#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

/// Convolution and pooling of volumes [batch, planes, rows, columns, channels].
namespace tandem::nn {

using Size3D = std::array<std::int64_t, 3>;

/// "NDHWC", or "NCDHW" with the channels second.
struct Volume3DOptions {
  String data_format = "NDHWC";
  Size3D dilations = {1, 1, 1};
};

/// Filters are [planes, rows, columns, in / groups, out]; padding is "SAME" or "VALID".
TANDEM_EXPORT Tensor conv3d(Tensor input, Tensor filters, const Size3D& strides, StringView padding,
                            const Volume3DOptions& options = {});
/// Convolution the other way: `input` is what conv3d of a volume of `output_shape` would give.
TANDEM_EXPORT Tensor conv3d_transpose(Tensor input, Tensor filters, Tensor output_shape,
                                      const Size3D& strides, StringView padding,
                                      const Volume3DOptions& options = {});
TANDEM_EXPORT Tensor max_pool3d(Tensor input, const Size3D& ksize, const Size3D& strides,
                                StringView padding, StringView data_format = "NDHWC");
TANDEM_EXPORT Tensor avg_pool3d(Tensor input, const Size3D& ksize, const Size3D& strides,
                                StringView padding, StringView data_format = "NDHWC");

}  // namespace tandem::nn
