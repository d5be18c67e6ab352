#pragma once

#include <cstdint>

#include "tandem/graph/internal/window3d.h"
#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// One convolution of volumes, whichever of its three arrays is asked for. Filters are [planes,
/// rows, columns, in_depth / groups, out_depth].
struct Conv3DCase {
  DType dtype = DType::kFloat;
  bool channels_first = false;
  std::int64_t batch = 0, in_depth = 0, out_depth = 0, groups = 1;
  WindowAxis axis[3];  ///< planes, rows, columns

  std::int64_t group_in() const { return in_depth / groups; }
  std::int64_t group_out() const { return out_depth / groups; }
  std::int64_t inputs() const { return axis[0].input * axis[1].input * axis[2].input; }
  std::int64_t outputs() const { return axis[0].output * axis[1].output * axis[2].output; }
  std::int64_t filters() const { return axis[0].filter * axis[1].filter * axis[2].filter; }
  double multiplications() const {
    return static_cast<double>(batch * outputs()) * static_cast<double>(out_depth) *
           static_cast<double>(group_in() * filters());
  }
};

namespace onednn {

// By oneDNN, for volumes with the channels last in float, or in bfloat16 where the processor has
// it; split among the pool's threads. False, and nothing done, if the library is slow at the case.
bool conv3d_forward(KernelContext& c, const Conv3DCase& p, const void* image, const void* filter,
                    void* output);
bool conv3d_backprop_input(KernelContext& c, const Conv3DCase& p, const void* filter,
                           const void* gradient, void* image);
bool conv3d_backprop_filter(KernelContext& c, const Conv3DCase& p, const void* image,
                            const void* gradient, void* filter);

}  // namespace onednn
}  // namespace tandem::cpu
