#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tandem/core/export.h"
#include "tandem/core/shape.h"

namespace tandem {

/// An index expression as StridedSlice takes it: begin:end:stride for each entry, and bits that say
/// what entry i really is.
struct StridedIndexSpec {
  /// Absent where not known yet (only while shapes are inferred).
  std::optional<std::span<const std::int64_t>> begin, end, strides;
  int entries = 0;
  std::int64_t begin_mask = 0;        ///< begin is ignored: from the beginning
  std::int64_t end_mask = 0;          ///< end is ignored: to the end
  std::int64_t ellipsis_mask = 0;     ///< as many whole axes as are needed
  std::int64_t new_axis_mask = 0;     ///< a new axis of size 1
  std::int64_t shrink_axis_mask = 0;  ///< the element at begin; the axis goes away
};

/// What an index expression picks of a shape: on each axis `size` elements from `begin` on,
/// `stride` apart.
struct TANDEM_EXPORT StridedIndex {
  int rank = 0;
  std::int64_t begin[Shape::kMaxRank];
  std::int64_t stride[Shape::kMaxRank];
  std::int64_t size[Shape::kMaxRank];  ///< PartialShape::kUnknown if not known
  int result_rank = 0;
  std::int64_t
      result[Shape::kMaxRank];  ///< sizes of the result's axes, new ones included, dropped ones not

  /// Throws InvalidArgumentError, with TensorFlow's text, for an index out of range, a stride of
  /// zero and the like.
  StridedIndex(std::span<const std::int64_t> shape, const StridedIndexSpec& spec);

  std::span<const std::int64_t> result_dims() const {
    return {result, static_cast<std::size_t>(result_rank)};
  }
};

}  // namespace tandem
