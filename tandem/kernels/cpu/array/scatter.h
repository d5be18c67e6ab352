#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/array.h"
#include "tandem/core/shape.h"
#include "tandem/device/intra_op_pool.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/kernels/cpu/array/gather.h"
#include "tandem/kernels/cpu/norm/rows.h"

namespace tandem::cpu {

/// What indices of rank 1 are. TensorFlow's ops on variables take one number for a vector of one
/// tuple. Of a longer vector they use the first number and forget the rest: that we do not follow.
enum class VectorIs { kOneTuple, kOfTuples };

/// Index tuples into a shape, checked against it and against the updates that go there.
class IndexTuples {
 public:
  /// Throws InvalidArgumentError unless the shapes fit each other and every tuple lies inside
  /// (tuples that do not are left out under the op's bad_indices_policy IGNORE).
  IndexTuples(const KernelContext& c, const Array& indices, const Shape& updates,
              const Shape& whole, VectorIs vector = VectorIs::kOneTuple);

  std::int64_t size() const { return size_; }
  std::int64_t slice_size() const { return slice_size_; }
  /// Number of the slice that tuple i names; -1 if it is to be left out.
  std::int64_t slice(std::int64_t i) const {
    std::int64_t number = 0;
    for (int k = 0; k < depth_; ++k) {
      const std::int64_t at = index_at(dtype_, data_, i * depth_ + k);
      if (at < 0 || at >= whole_[k]) return -1;
      number = number * whole_[k] + at;
    }
    return number;
  }

 private:
  const Shape& whole_;
  DType dtype_;
  const void* data_;
  int depth_ = 0;
  std::int64_t size_ = 0;
  std::int64_t slice_size_ = 0;
};

/// Calls `apply(to, from, n)` for the n elements of each slice and its update, in the order of the
/// tuples. Slices are shared out among threads, so that the result does not depend on their number.
template <class T, class Apply>
void scatter_slices(IntraOpPool& pool, const IndexTuples& tuples, T* whole, const T* updates,
                    std::int64_t num_slices, Apply apply) {
  const std::int64_t inner = tuples.slice_size();
  const std::int64_t n = tuples.size();
  if (inner == 0 || n == 0) return;
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t slice = tuples.slice(i);
      if (slice >= begin && slice < end) apply(whole + slice * inner, updates + i * inner, inner);
    }
  };
  for_each_share(pool, num_slices, n * inner, inner, run);
}

/// Combinations of an old element with an update.
struct ReplaceElement {
  template <class T>
  void operator()(T* to, const T* from, std::int64_t n) const {
    for (std::int64_t k = 0; k < n; ++k) to[k] = from[k];
  }
};

}  // namespace tandem::cpu
