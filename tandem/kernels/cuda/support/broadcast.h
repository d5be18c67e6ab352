#pragma once

#include <array>
#include <cstdint>

#include "tandem/kernels/cuda/support/device_code.h"
#include "tandem/kernels/cuda/support/kernel_call.h"

namespace tandem::cuda {

constexpr int kMaxAxes = 8;

/// How N operands are read for each element of a result: sizes of the result and the operands'
/// strides in elements, 0 where an operand is broadcast. Neighbouring axes that all operands walk
/// alike are joined, so most calls have one or two. A plain value: it goes to the GPU as an
/// argument.
template <int N>
struct Strides {
  int rank = 0;
  std::int64_t sizes[kMaxAxes] = {};
  std::int64_t strides[N][kMaxAxes] = {};

  /// Offsets of the operands for element `i` of the result.
  TANDEM_HOST_DEVICE void offsets(std::int64_t i, std::int64_t (&at)[N]) const {
    for (int k = 0; k < N; ++k) at[k] = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const std::int64_t next = axis == 0 ? 0 : i / sizes[axis];
      const std::int64_t place = axis == 0 ? i : i - next * sizes[axis];
      for (int k = 0; k < N; ++k) at[k] += place * strides[k][axis];
      i = next;
    }
  }
  /// Every operand is read from one end to the other.
  bool contiguous() const {
    if (rank != 1) return rank == 0;
    for (int k = 0; k < N; ++k) {
      if (strides[k][0] != 1) return false;
    }
    return true;
  }
};

/// The shape that operands have together, by NumPy's rules. Throws Failure where they do not fit.
Sizes broadcast_sizes(const Sizes& a, const Sizes& b);

/// Strides of operands of `sizes[k]`, broadcast to `result`. Throws Failure for more than kMaxAxes
/// axes after joining.
template <int N>
Strides<N> broadcast_strides(const Sizes& result, const std::array<Sizes, N>& sizes) {
  Strides<N> made;
  const int rank = static_cast<int>(result.size());
  for (int axis = 0; axis < rank; ++axis) {
    if (result[axis] == 1) continue;
    std::int64_t strides[N];
    for (int k = 0; k < N; ++k) {
      const int own = axis - (rank - static_cast<int>(sizes[k].size()));
      std::int64_t stride = 1;
      for (std::size_t j = static_cast<std::size_t>(own + 1); own >= 0 && j < sizes[k].size();
           ++j) {
        stride *= sizes[k][j];
      }
      strides[k] = own < 0 || sizes[k][static_cast<std::size_t>(own)] == 1 ? 0 : stride;
    }
    bool joins = made.rank > 0;
    for (int k = 0; k < N && joins; ++k) {
      joins = made.strides[k][made.rank - 1] == strides[k] * result[axis];
    }
    if (joins) {
      made.sizes[made.rank - 1] *= result[axis];
      for (int k = 0; k < N; ++k) made.strides[k][made.rank - 1] = strides[k];
      continue;
    }
    if (made.rank == kMaxAxes) not_on_gpu("tensors of so many broadcast axes");
    made.sizes[made.rank] = result[axis];
    for (int k = 0; k < N; ++k) made.strides[k][made.rank] = strides[k];
    ++made.rank;
  }
  if (made.rank == 0) {
    made.rank = 1;
    made.sizes[0] = 1;
    for (int k = 0; k < N; ++k) made.strides[k][0] = 1;
  }
  return made;
}

}  // namespace tandem::cuda
