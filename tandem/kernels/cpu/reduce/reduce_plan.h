#pragma once

#include <cstdint>

#include "tandem/core/shape.h"
#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// How a reduction walks through its input.
///
/// Axes of size 1 are dropped and neighbours of one kind, kept or reduced, are joined. What is left
/// is: `outputs` groups of results; for each `outer` blocks, scattered over the input; and each
/// block a matrix of `rows` x `columns` whose columns become one result each (`columns` is 1 when
/// the last axis is reduced: then a block is one contiguous row).
struct ReducePlan {
  /// From the inputs (value, axes) and attribute keep_dims of a reduction. Throws
  /// InvalidArgumentError for axes that are out of range or named twice.
  explicit ReducePlan(const KernelContext& c);

  Shape out_shape;
  std::int64_t outputs = 1;
  std::int64_t outer = 1;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  /// Elements that become one result.
  std::int64_t count() const { return outer * rows; }
  /// Nothing is reduced: every result comes from the element at its place.
  bool trivial() const { return outer == 1 && rows == 1; }

  /// Where group `o`, and where block `q` of a group, begin.
  std::int64_t output_offset(std::int64_t o) const { return offset(kept_, kept_dims_, o); }
  std::int64_t block_offset(std::int64_t q) const { return offset(reduced_, reduced_dims_, q); }
  /// How many blocks from `q` on lie `block_stride` elements apart.
  std::int64_t even_blocks(std::int64_t q) const {
    if (reduced_dims_ == 0) return 1;
    const std::int64_t size = reduced_[reduced_dims_ - 1].size;
    return reduced_dims_ == 1 ? size - q : size - q % size;
  }
  std::int64_t block_stride() const {
    return reduced_dims_ == 0 ? 0 : reduced_[reduced_dims_ - 1].stride;
  }

 private:
  struct Dim {
    std::int64_t size, stride;
  };
  static std::int64_t offset(const Dim* dims, int n, std::int64_t index) {
    if (n == 1) return index * dims[0].stride;
    std::int64_t sum = 0;
    for (int i = n - 1; i >= 0; --i) {
      sum += index % dims[i].size * dims[i].stride;
      index /= dims[i].size;
    }
    return sum;
  }

  // In the order of the axes, without those of the matrix.
  int kept_dims_ = 0;
  int reduced_dims_ = 0;
  Dim kept_[Shape::kMaxRank / 2 + 1];
  Dim reduced_[Shape::kMaxRank / 2 + 1];
};

}  // namespace tandem::cpu
