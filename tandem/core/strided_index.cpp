#include "tandem/core/strided_index.h"

#include <algorithm>

#include "tandem/core/error.h"

namespace tandem {
namespace {

constexpr std::int64_t kUnknown = PartialShape::kUnknown;
constexpr int kMaxEntries = 32;  // the masks' bits

bool bit(std::int64_t mask, int i) { return (mask >> i) & 1; }

// One axis of the value, with the entry that concerns it.
struct Entry {
  std::optional<std::int64_t> begin, end, stride = 1;
  bool begin_masked = true;
  bool end_masked = true;
  bool shrink = false;
};

struct Range {
  std::int64_t begin;
  std::int64_t stride;
  std::int64_t size;
};

Range whole(std::int64_t size) { return {0, 1, size}; }

std::int64_t from_end(std::int64_t x, std::int64_t size) { return x < 0 ? x + size : x; }

Range element(const Entry& e, std::int64_t size, int axis) {
  if (e.stride && *e.stride <= 0) {
    throw InvalidArgumentError("only stride 1 allowed on non-range indexing.");
  }
  if (!e.begin || size == kUnknown) return {0, 1, 1};
  const std::int64_t at = from_end(*e.begin, size);
  if (at < 0 || at >= size) {
    throw InvalidArgumentError(
        cat("slice index ", *e.begin, " of dimension ", axis, " out of bounds."));
  }
  return {at, 1, 1};
}

Range resolve(const Entry& e, std::int64_t size, int axis) {
  if (e.stride && *e.stride == 0) {
    throw InvalidArgumentError(cat("strides[", axis, "] must be non-zero"));
  }
  if (e.shrink) return element(e, size, axis);
  const bool known = e.stride && (e.begin || e.begin_masked) && (e.end || e.end_masked);
  if (!known || size == kUnknown) return {0, 1, kUnknown};
  const std::int64_t stride = *e.stride;
  // Where begin and end may lie: [0, size] going up, [-1, size - 1] going down.
  const std::int64_t low = stride > 0 ? 0 : -1;
  const std::int64_t high = stride > 0 ? size : size - 1;
  const std::int64_t first = stride > 0 ? low : high;
  const std::int64_t last = stride > 0 ? high : low;
  const auto place = [&](std::int64_t x) { return std::clamp(from_end(x, size), low, high); };
  const std::int64_t begin = e.begin_masked ? first : place(*e.begin);
  const std::int64_t end = e.end_masked ? last : place(*e.end);
  const std::int64_t length = end - begin;
  if (length == 0 || (length < 0) != (stride < 0)) return {begin, stride, 0};
  return {begin, stride, length / stride + (length % stride != 0)};
}

int check_spec(const StridedIndexSpec& spec) {
  if (spec.entries >= kMaxEntries) {
    throw InvalidArgumentError(
        cat("An index may have fewer than ", kMaxEntries, " entries but has ", spec.entries, "."));
  }
  int ellipsis = -1;
  for (int i = 0; i < spec.entries; ++i) {
    if (!bit(spec.ellipsis_mask, i)) continue;
    if (ellipsis >= 0) throw InvalidArgumentError("Multiple ellipses in slice spec not allowed");
    ellipsis = i;
  }
  return ellipsis;
}

}  // namespace

StridedIndex::StridedIndex(std::span<const std::int64_t> shape, const StridedIndexSpec& spec)
    : rank(static_cast<int>(shape.size())) {
  const int ellipsis = check_spec(spec);
  int consuming_after = 0;  // entries after the ellipsis that take an axis
  for (int i = ellipsis + 1; ellipsis >= 0 && i < spec.entries; ++i) {
    consuming_after += !bit(spec.new_axis_mask, i);
  }

  int axis = 0;
  const auto put = [&](std::int64_t n) {
    if (result_rank >= Shape::kMaxRank) {
      throw InvalidArgumentError(
          cat("The result of the index would have more than ", Shape::kMaxRank, " axes."));
    }
    result[result_rank++] = n;
  };
  const auto take = [&](const Range& r, bool keep) {
    begin[axis] = r.begin;
    stride[axis] = r.stride;
    size[axis] = r.size;
    ++axis;
    if (keep) put(r.size);
  };
  const auto take_whole_until = [&](int end) {
    while (axis < end) take(whole(shape[static_cast<std::size_t>(axis)]), true);
  };

  for (int i = 0; i < spec.entries; ++i) {
    if (i == ellipsis) {
      take_whole_until(std::max(axis, rank - consuming_after));
    } else if (bit(spec.new_axis_mask, i)) {
      put(1);
    } else {
      if (axis >= rank) {
        throw InvalidArgumentError(
            cat("Index out of range using input dim ", axis, "; input has only ", rank, " dims"));
      }
      const auto value = [i](const std::optional<std::span<const std::int64_t>>& list) {
        return list ? std::optional((*list)[static_cast<std::size_t>(i)]) : std::nullopt;
      };
      Entry e{value(spec.begin),       value(spec.end),       value(spec.strides),
              bit(spec.begin_mask, i), bit(spec.end_mask, i), bit(spec.shrink_axis_mask, i)};
      const Range range = resolve(e, shape[static_cast<std::size_t>(axis)], axis);
      take(range, !e.shrink);
    }
  }
  take_whole_until(rank);
}

}  // namespace tandem
