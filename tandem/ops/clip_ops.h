#pragma once

#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/axes.h"
#include "tandem/ops/operand.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// Values below `low` become `low`, values above `high` become `high`; low and high broadcast to
/// x's shape.
TANDEM_EXPORT Tensor clip_by_value(Operand x, Operand low, Operand high);

/// x scaled down, if need be, to a Euclidean norm of at most `clip_norm` (over all axes, or those
/// named).
TANDEM_EXPORT Tensor clip_by_norm(Tensor x, Operand clip_norm, Axes axes = {});

namespace linalg {
/// The Euclidean norm of all tensors taken together; undefined ones are left out.
TANDEM_EXPORT Tensor global_norm(const std::vector<Tensor>& tensors);
}  // namespace linalg
using linalg::global_norm;

/// All tensors scaled by the same factor so that their global norm is at most `clip_norm`, and the
/// norm before. A norm that is not finite makes all results NaN. Undefined tensors stay undefined.
TANDEM_EXPORT std::pair<std::vector<Tensor>, Tensor> clip_by_global_norm(
    const std::vector<Tensor>& tensors, Operand clip_norm, Tensor use_norm = {});

}  // namespace tandem
