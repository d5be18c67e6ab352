#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tandem/core/shape.h"
#include "tandem/graph/inference_context.h"

// Arithmetic with sizes of which some are unknown, for shape functions.

namespace tandem::internal {

inline constexpr std::int64_t kUnknown = PartialShape::kUnknown;

inline std::int64_t add_sizes(std::int64_t a, std::int64_t b) {
  if (a == kUnknown || b == kUnknown) return kUnknown;
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    throw InvalidArgumentError(
        cat("The sizes ", a, " and ", b, " together need more than 63 bits."));
  }
  return sum;
}
inline std::int64_t multiply_sizes(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  return a == kUnknown || b == kUnknown ? kUnknown : checked_multiply(a, b);
}

/// `axis` in [-rank, rank) counted from the front; fails naming it otherwise.
inline int axis_in(const InferenceContext& c, std::int64_t axis, int rank,
                   std::string_view what = "axis") {
  if (axis < -rank || axis >= rank) {
    c.fail(cat(what, " ", axis, " is out of range: it must be in [", -rank, ", ", rank, ")."));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

/// The only integer of a constant input; nothing if unknown.
inline std::optional<std::int64_t> input_int(const InferenceContext& c, int i) {
  const auto ints = c.input_ints(i);
  if (!ints) return std::nullopt;
  if (ints->size() != 1) {
    c.fail(cat("input ", i, " must hold one integer but holds ", ints->size(), "."));
  }
  return ints->front();
}

/// The shape that input i asks for, with -1 in constants refused; unknown where not constant.
inline PartialShape requested_shape(const InferenceContext& c, int i) {
  if (const auto dims = c.input_ints(i)) {
    for (std::int64_t d : *dims) {
      if (d < 0) c.fail(cat("Dimension ", d, " must be >= 0"));
    }
    return PartialShape(Shape(*dims));
  }
  return c.input_as_shape(i);
}

/// Dimensions [begin, end) of a shape of known rank.
inline std::vector<std::int64_t> dims_between(const PartialShape& s, int begin, int end) {
  return {s.dims().begin() + begin, s.dims().begin() + end};
}

/// Rank 1 of this length if known.
inline PartialShape vector_of(std::int64_t length) { return PartialShape({length}); }

}  // namespace tandem::internal
