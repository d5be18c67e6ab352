#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "tandem/kernels/cpu/image/resample.h"

namespace tandem::cpu {

/// How the ops that resize images place pixels: the attributes align_corners and
/// half_pixel_centers, and the scale that follows along an axis.
struct Placement {
  bool align_corners = false;
  bool half_pixel_centers = false;

  /// Throws InvalidArgumentError if both attributes are set.
  explicit Placement(const KernelContext& c);

  float scale(std::int64_t in, std::int64_t out) const {
    return align_corners && out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                                    : static_cast<float>(in) / static_cast<float>(out);
  }
  /// The input position of the centre of output pixel i.
  float at(std::int64_t i, float scale) const {
    const auto x = static_cast<float>(i);
    return half_pixel_centers ? (x + 0.5f) * scale - 0.5f : x * scale;
  }
};

/// From where each method takes the pixels along an axis, from the first on.
Taps bilinear_taps(const Placement& place, std::int64_t in, std::int64_t out);
Taps cubic_taps(const Placement& place, std::int64_t in, std::int64_t out);
Taps area_taps(const Placement& place, std::int64_t in, std::int64_t out);
/// The nearest pixels.
std::vector<std::int64_t> nearest_pixels(const Placement& place, std::int64_t in, std::int64_t out);

/// The new height and width, of which `size` must be a vector; checks all sizes.
void set_new_size(Resize& r, const Array& size);
/// The sizes for images of input 0 and new sizes in input 1; checks both.
Resize resize_case(const KernelContext& c);
/// For gradients: `grads` have the new sizes, `images` the old ones.
Resize resize_grad_case(const Shape& grads, const Shape& images);

}  // namespace tandem::cpu
