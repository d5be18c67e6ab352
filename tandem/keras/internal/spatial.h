#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/keras/layers/sizes.h"
#include "tandem/runtime/tensor.h"

/// Convolution and pooling over any number of spatial axes: one axis is done as an image of one
/// row, three as volumes.
namespace tandem::keras::internal {

/// A number for each spatial axis.
using Sizes = std::vector<std::int64_t>;
inline Sizes sizes_of(std::int64_t s) { return {s}; }
inline Sizes sizes_of(const Size2D& s) { return {s.height, s.width}; }
inline Sizes sizes_of(const Size3D& s) { return {s.depth, s.height, s.width}; }

/// Throws InvalidArgumentError unless all are positive.
void require_positive_sizes(const std::string& layer, const std::string& what, const Sizes& sizes);

/// Throws InvalidArgumentError unless the strides are equal, as TensorFlow's depthwise convolutions
/// require.
void require_equal_strides(const std::string& layer, const Sizes& strides);

/// How a window moves over a tensor.
struct Windows {
  std::string padding;  ///< "SAME" or "VALID"
  bool channels_last;
  Sizes strides;
  Sizes dilations;  ///< as many as strides
};
/// Makes windows from Keras' words; throws InvalidArgumentError for others, and for sizes that are
/// not positive.
Windows make_windows(const std::string& layer, const std::string& padding,
                     const std::string& data_format, Sizes strides, Sizes dilations);

/// Whether some axis of `y` is empty though that of `x` is not: no window fits into the input.
bool has_no_window(const Tensor& x, const Tensor& y);
/// Throws InvalidArgumentError that names both shapes; `prefix` begins the message.
[[noreturn]] void throw_no_window(const std::string& prefix, const Tensor& x, const Tensor& y);

/// Zeros before the first step of sequences, so that a window of `kernel` steps ends at its place.
Tensor pad_before(const Tensor& x, std::int64_t kernel, const Windows& w);

/// `kernel` is [spatial..., in / groups, out].
Tensor convolve(const Tensor& x, const Tensor& kernel, const Windows& w);
/// One or two spatial axes; `kernel` is [spatial..., in, multiplier].
Tensor convolve_depthwise(const Tensor& x, const Tensor& kernel, const Windows& w);
/// `kernel` is [spatial..., out, in]. `output_padding`: empty, or a number for each spatial axis.
Tensor convolve_transposed(const Tensor& x, const Tensor& kernel, const Windows& w,
                           const Sizes& output_padding);
Tensor add_channel_bias(Tensor x, const Tensor& bias, const Windows& w);

enum class PoolKind : std::uint8_t { kMax, kAverage };
Tensor pool(PoolKind kind, const Tensor& x, const Sizes& window, const Windows& w);

}  // namespace tandem::keras::internal
