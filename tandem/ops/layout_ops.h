#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/ops/int_list.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// Functions that move elements to other places. All dtypes.
// Axes may be negative and count from the end; one out of range throws InvalidArgumentError.

/// Axis i of the result is axis perm[i] of `a`; all axes in reverse order by default.
TANDEM_EXPORT Tensor transpose(Tensor a, const IntList& perm = {});
TANDEM_EXPORT Tensor matrix_transpose(Tensor a);

/// Backwards along these axes.
TANDEM_EXPORT Tensor reverse(Tensor tensor, const IntList& axis);
/// The first seq_lengths[b] elements along seq_axis backwards, for each b of the batch axis.
TANDEM_EXPORT Tensor reverse_sequence(Tensor input, Tensor seq_lengths, std::int64_t seq_axis,
                                      std::int64_t batch_axis = 0);
/// Shifted by shift[i] places along axis[i], what falls off coming in at the other end.
TANDEM_EXPORT Tensor roll(Tensor input, const IntList& shift, const IntList& axis);
inline Tensor roll(Tensor input, std::integral auto shift, std::integral auto axis) {
  return roll(std::move(input), IntList{shift}, IntList{axis});
}

/// Blocks of the spatial axes (1, 2, …) moved to the batch axis after padding, and back.
TANDEM_EXPORT Tensor space_to_batch_nd(Tensor input, const IntList& block_shape, Tensor paddings);
TANDEM_EXPORT Tensor batch_to_space_nd(Tensor input, const IntList& block_shape, Tensor crops);

namespace nn {
/// Blocks of height and width moved to the channels (NHWC), and back.
TANDEM_EXPORT Tensor space_to_depth(Tensor input, std::int64_t block_size,
                                    const String& data_format = "NHWC");
TANDEM_EXPORT Tensor depth_to_space(Tensor input, std::int64_t block_size,
                                    const String& data_format = "NHWC");
}  // namespace nn

}  // namespace tandem
