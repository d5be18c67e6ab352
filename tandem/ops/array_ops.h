#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/diagonal_ops.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/ops/int_list.h"
#include "tandem/ops/segment_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// Shapes of tensors, and the same elements in other places. All dtypes unless said otherwise. Axes
// may be negative and count from the end; one out of range throws InvalidArgumentError.

/// The same value.
TANDEM_EXPORT Tensor identity(Tensor input);
TANDEM_EXPORT std::vector<Tensor> identity_n(const std::vector<Tensor>& inputs);
/// The same value, through which no gradient flows.
TANDEM_EXPORT Tensor stop_gradient(Tensor input);
/// The same value; asking for a gradient through it throws FailedPreconditionError with `message`.
TANDEM_EXPORT Tensor prevent_gradient(Tensor input, const std::string& message = "");
/// The same value, after checking that its shape fits.
TANDEM_EXPORT Tensor ensure_shape(Tensor x, const PartialShape& shape);
/// The same floating-point value; throws InvalidArgumentError beginning with `message` if it holds
/// a NaN or infinity.
TANDEM_EXPORT Tensor check_numerics(Tensor tensor, const std::string& message);
/// The same bytes read as another dtype; a dtype of another size adds or drops a last axis.
TANDEM_EXPORT Tensor bitcast(Tensor input, DType type);

/// The shape as an int32 or int64 vector.
TANDEM_EXPORT Tensor shape(Tensor input, DType out_type = int32);
TANDEM_EXPORT std::vector<Tensor> shape_n(const std::vector<Tensor>& inputs,
                                          DType out_type = int32);
/// The number of elements.
TANDEM_EXPORT Tensor size(Tensor input, DType out_type = int32);
TANDEM_EXPORT Tensor rank(Tensor input);

/// The same elements in row-major order under another shape, sharing memory; one size may be -1 and
/// follows from the rest.
TANDEM_EXPORT Tensor reshape(Tensor tensor, const IntList& shape);
/// A new axis of size 1 at `axis`, in [-rank - 1, rank].
TANDEM_EXPORT Tensor expand_dims(Tensor input, std::int64_t axis);
/// Without these axes, which must have size 1; without all axes of size 1 if none is named.
TANDEM_EXPORT Tensor squeeze(Tensor input, std::vector<std::int64_t> axis = {});
/// Axis i of the result is axis perm[i] of `a`; all axes in reverse order by default.
TANDEM_EXPORT Tensor transpose(Tensor a, const IntList& perm = {});
TANDEM_EXPORT Tensor matrix_transpose(Tensor a);

/// One after the other along an existing axis; all other sizes must agree.
TANDEM_EXPORT Tensor concat(const std::vector<Tensor>& values, std::int64_t axis);
/// Side by side along a new axis; all shapes must agree.
TANDEM_EXPORT Tensor stack(const std::vector<Tensor>& values, std::int64_t axis = 0);
/// The slices along an axis, without it. `num` is needed only if the size is unknown while tracing.
TANDEM_EXPORT std::vector<Tensor> unstack(Tensor value, std::optional<std::int64_t> num = {},
                                          std::int64_t axis = 0);

enum class PadMode : std::uint8_t {
  kConstant,
  kReflect,    ///< mirrored without the edge itself
  kSymmetric,  ///< mirrored with the edge
};
/// paddings: int32 or int64, shape [rank, 2]: how much to add before and after each axis.
TANDEM_EXPORT Tensor pad(Tensor tensor, Tensor paddings, PadMode mode = PadMode::kConstant,
                         double constant_value = 0);
/// The whole repeated multiples[i] times along axis i.
TANDEM_EXPORT Tensor tile(Tensor input, const IntList& multiples);
/// Each element or slice along `axis` repeated one after the other; flattened first if there is no
/// axis.
TANDEM_EXPORT Tensor repeat(Tensor input, std::int64_t repeats,
                            std::optional<std::int64_t> axis = {});
/// As NumPy's broadcasting repeats it.
TANDEM_EXPORT Tensor broadcast_to(Tensor input, const IntList& shape);
/// The shape that two shapes (int32 or int64 vectors) broadcast to.
TANDEM_EXPORT Tensor broadcast_dynamic_shape(Tensor shape_x, Tensor shape_y);
TANDEM_EXPORT Shape broadcast_static_shape(const Shape& shape_x, const Shape& shape_y);

/// Backwards along these axes.
TANDEM_EXPORT Tensor reverse(Tensor tensor, const IntList& axis);
/// The first seq_lengths[b] elements along seq_axis backwards, for each b of the batch axis.
TANDEM_EXPORT Tensor reverse_sequence(Tensor input, Tensor seq_lengths, std::int64_t seq_axis,
                                      std::int64_t batch_axis = 0);
/// Shifted by shift[i] places along axis[i], what falls off coming in at the other end.
TANDEM_EXPORT Tensor roll(Tensor input, const IntList& shift, const IntList& axis);

/// Blocks of the spatial axes (1, 2, …) moved to the batch axis after padding, and back.
TANDEM_EXPORT Tensor space_to_batch_nd(Tensor input, const IntList& block_shape, Tensor paddings);
TANDEM_EXPORT Tensor batch_to_space_nd(Tensor input, const IntList& block_shape, Tensor crops);

namespace nn {
/// Blocks of height and width moved to the channels (NHWC), and back.
TANDEM_EXPORT Tensor space_to_depth(Tensor input, std::int64_t block_size,
                                    const std::string& data_format = "NHWC");
TANDEM_EXPORT Tensor depth_to_space(Tensor input, std::int64_t block_size,
                                    const std::string& data_format = "NHWC");
}  // namespace nn

}  // namespace tandem
