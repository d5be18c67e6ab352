#pragma once

#include <cstdint>
#include <optional>

#include "tandem/core/dtype.h"
#include "tandem/core/dtype_like.h"
#include "tandem/core/export.h"
#include "tandem/ops/int_list.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// Tensors made from nothing but sizes and scalars. Shapes are IntLists: `{2, 3}`, a Shape, or an
// integer tensor. Negative sizes, and sizes whose product overflows, throw InvalidArgumentError.

/// `value` as it is.
TANDEM_EXPORT Tensor constant(Tensor value);
/// A concrete `value` in another dtype. Throws InvalidArgumentError if a number is not exactly
/// representable, except that floating-point numbers are rounded to floating-point dtypes.
TANDEM_EXPORT Tensor constant(const Tensor& value, DTypeLike dtype);
/// A constant of this dtype and shape: reshaped if the counts agree, repeated if `value` has one
/// element.
TANDEM_EXPORT Tensor constant(const Tensor& value, DTypeLike dtype, const Shape& shape);

/// Zeros (false, empty strings).
TANDEM_EXPORT Tensor zeros(const IntList& shape, DTypeLike dtype = float32);
/// Ones (true).
TANDEM_EXPORT Tensor ones(const IntList& shape, DTypeLike dtype = float32);
/// Zeros of x's shape, and of its dtype unless another is given.
TANDEM_EXPORT Tensor zeros_like(Tensor x, std::optional<DType> dtype = {});
TANDEM_EXPORT Tensor ones_like(Tensor x, std::optional<DType> dtype = {});
/// The scalar `value` everywhere.
TANDEM_EXPORT Tensor fill(const IntList& shape, Tensor value);

/// start, start + delta, … up to and without `limit`, all of one dtype. Throws InvalidArgumentError
/// if delta is 0 or leads away from the limit.
TANDEM_EXPORT Tensor range(Tensor start, Tensor limit, Tensor delta);
/// start, start + 1, …
TANDEM_EXPORT Tensor range(Tensor start, Tensor limit);
/// 0, 1, … up to and without `limit`.
TANDEM_EXPORT Tensor range(Tensor limit);

struct RangeOptions {
  std::optional<DTypeLike> dtype = std::nullopt;  ///< that of the numbers by default
};
/// Numbers of another dtype than those given: `range(5, {.dtype = td::float32})`.
TANDEM_EXPORT Tensor range(Tensor limit, const RangeOptions& options);
TANDEM_EXPORT Tensor range(Tensor start, Tensor limit, const RangeOptions& options);
TANDEM_EXPORT Tensor range(Tensor start, Tensor limit, Tensor delta, const RangeOptions& options);
/// `num` (at least 1) floating-point values from start to stop, both included, equally far apart.
TANDEM_EXPORT Tensor linspace(Tensor start, Tensor stop, std::int64_t num);

struct OneHotOptions {
  std::optional<double> on_value = std::nullopt;   ///< 1 by default
  std::optional<double> off_value = std::nullopt;  ///< 0 by default
  std::int64_t axis = -1;                          ///< where the new axis stands in the result
  DTypeLike dtype = float32;
};
/// A new axis of size `depth` holding on_value at the place that `indices` says and off_value
/// elsewhere; indices outside [0, depth) give off_value alone. indices: uint8, int8, int32 or
/// int64.
TANDEM_EXPORT Tensor one_hot(Tensor indices, std::int64_t depth, const OneHotOptions& options = {});

/// Ones on the main diagonal, zeros elsewhere; batch_shape comes before the two axes. num_columns:
/// num_rows by default.
TANDEM_EXPORT Tensor eye(std::int64_t num_rows, std::optional<std::int64_t> num_columns = {},
                         DType dtype = float32, const IntList& batch_shape = {});

}  // namespace tandem
