#include "tandem/ops/sort_ops.h"

#include <numeric>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/bitwise_ops.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
namespace {

bool is_ascending(std::string_view direction, const char* what) {
  if (direction == "ASCENDING") return true;
  if (direction == "DESCENDING") return false;
  throw InvalidArgumentError(cat(what, ": the direction '", direction,
                                 "' is unknown: it is \"ASCENDING\" or \"DESCENDING\"."));
}

// The order of values turned round: of integers ~x, which has no value without a counterpart.
Tensor turned(const Tensor& x) { return is_integer(x.dtype()) ? bitwise::invert(x) : negative(x); }

// The axes with `axis` and the last one exchanged, which undoes itself.
std::vector<std::int64_t> exchanged(int rank, std::int64_t axis) {
  std::vector<std::int64_t> axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<std::size_t>(axis)], axes.back());
  return axes;
}

struct Sorted {
  Tensor values, indices;
};

Sorted sorted(const Tensor& values, std::int64_t axis, std::string_view direction,
              const char* what) {
  const bool ascending = is_ascending(direction, what);
  const int rank = values.rank();
  if (rank < 1 || axis < -rank || axis >= rank) {
    throw InvalidArgumentError(cat(what, ": axis ", axis, " is not one of a tensor of shape ",
                                   values.partial_shape(), "."));
  }
  if (axis < 0) axis += rank;
  const bool last = axis == rank - 1;
  const std::vector<std::int64_t> perm = exchanged(rank, axis);
  const Tensor rows = last ? values : transpose(values, perm);
  const std::int64_t known = rows.dim(-1);
  const Tensor count = known >= 0 ? Tensor(static_cast<int>(known)) : shape(rows)[-1];
  const auto top = raw_op("TopKV2", {ascending ? turned(rows) : rows, count}, {{"sorted", true}});
  Sorted result{ascending ? turned(top[0]) : top[0], top[1]};
  if (last) return result;
  return {transpose(result.values, perm), transpose(result.indices, perm)};
}

}  // namespace

Tensor sort(const Tensor& values, std::int64_t axis, StringView direction) {
  return sorted(values, axis, direction, "td::sort").values;
}

Tensor argsort(const Tensor& values, std::int64_t axis, StringView direction, bool) {
  return sorted(values, axis, direction, "td::argsort").indices;
}

}  // namespace tandem
