#pragma once

#include <cstdint>
#include <vector>

#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// From which input positions, and with which weights, each output position along an axis is made:
/// `count` of them each. The positions of one output follow each other or repeat.
struct Taps {
  std::int64_t count = 0;
  std::vector<std::int64_t> index;
  std::vector<float> weight;
  Taps(std::int64_t outputs, std::int64_t taps)
      : count(taps),
        index(static_cast<std::size_t>(outputs * taps)),
        weight(static_cast<std::size_t>(outputs * taps)) {}
  std::int64_t& index_at(std::int64_t output, std::int64_t tap) {
    return index[static_cast<std::size_t>(output * count + tap)];
  }
  float& weight_at(std::int64_t output, std::int64_t tap) {
    return weight[static_cast<std::size_t>(output * count + tap)];
  }
};

/// A change of the size of images [batch, height, width, channels].
struct Resize {
  std::int64_t batch = 0, channels = 0;
  std::int64_t in_height = 0, in_width = 0;
  std::int64_t out_height = 0, out_width = 0;
  Shape in_shape() const { return {batch, in_height, in_width, channels}; }
  Shape out_shape() const { return {batch, out_height, out_width, channels}; }
};

/// How two taps meet: by their weights, or as a + (b − a)·(weight of b), which keeps equal values.
enum class Mix { kWeights, kLerp };

/// Float images made of `images`, of any real dtype, axis by axis.
void resample(KernelContext& c, const Resize& r, const Taps& y, const Taps& x, Mix mix,
              const Array& images, float* out);

/// The transpose: each value of `grads` [batch, out_height, out_width, channels] goes back to where
/// it came from. `out` is of a floating dtype.
void resample_transposed(KernelContext& c, const Resize& r, const Taps& y, const Taps& x,
                         const Array& grads, Array& out);

}  // namespace tandem::cpu
