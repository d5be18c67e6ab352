#pragma once

#include "tandem/kernels/cuda/conv/window.h"

namespace tandem::cuda {

/// A convolution, or what its gradients are of. A plain value: it goes to the GPU as an argument.
struct Convolution {
  VolumeLayout x, y;  // the input's and the output's (or its gradient's) layout
  Window window;
  std::int64_t filter_in = 0;  // channels of the input that one result reads
  std::int64_t group_out = 0;  // channels of the output in one group

  bool channels_last() const { return x.by_channel == 1; }
};

}  // namespace tandem::cuda
