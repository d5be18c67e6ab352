#pragma once

#include <cstdint>
#include <optional>

#include "tandem/core/export.h"
#include "tandem/ops/int_list.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// Values with a margin, or several times over. All dtypes.

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
/// Repeats `input` to the shape by NumPy's broadcasting.
TANDEM_EXPORT Tensor broadcast_to(Tensor input, const IntList& shape);

}  // namespace tandem
