#pragma once

#include <cstdint>

#include "tandem/core/dtype.h"
#include "tandem/core/shape.h"
#include "tandem/device/intra_op_pool.h"

namespace tandem::cpu {

/// Copies a block of elements from one layout to another: what transposing, slicing, padding,
/// joining, tiling and broadcasting come down to.
///
/// Name the block's axes with their size and their strides (in elements; 0 repeats, negative runs
/// backwards) on both sides, in any order; best outermost first as the destination has them. No
/// destination element may be named twice.
class StridedCopy {
 public:
  StridedCopy() {}  // NOLINT: dims_ stays uninitialised on purpose

  void add(std::int64_t size, std::int64_t to_stride, std::int64_t from_stride);
  /// Does the work, in parallel where it is worthwhile. The memory of both sides must not overlap.
  void run(IntraOpPool& pool, DType dtype, void* to, const void* from) const;

 private:
  struct Dim {
    std::int64_t size, to, from;
  };
  template <class T>
  struct Runner;

  // Axes are joined where they can be, so this is enough for every op: tiling doubles the rank.
  static constexpr int kMaxDims = 2 * Shape::kMaxRank + 2;
  int rank_ = 0;
  std::int64_t count_ = 1;
  Dim dims_[kMaxDims];
};

/// Row-major strides of a shape.
struct Strides {
  explicit Strides(const Shape& shape);
  std::int64_t operator[](int axis) const { return values[axis]; }
  std::int64_t values[Shape::kMaxRank];
};

/// n elements in a row, in parallel if many.
void copy_flat(IntraOpPool& pool, DType dtype, void* to, const void* from, std::int64_t n);
/// n elements set to the one at `value`.
void fill_flat(IntraOpPool& pool, DType dtype, void* to, const void* value, std::int64_t n);
/// n elements set to zero (objects: to the default).
void clear_flat(IntraOpPool& pool, DType dtype, void* to, std::int64_t n);

/// The address of element `index`.
inline void* element_at(void* data, DType dtype, std::int64_t index) {
  return static_cast<char*>(data) + index * static_cast<std::int64_t>(dtype_size(dtype));
}
inline const void* element_at(const void* data, DType dtype, std::int64_t index) {
  return static_cast<const char*>(data) + index * static_cast<std::int64_t>(dtype_size(dtype));
}

}  // namespace tandem::cpu
