#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "tandem/core/error.h"
#include "tandem/core/shape.h"
#include "tandem/device/intra_op_pool.h"

namespace tandem::cpu {

/// Walks through N row-major values that broadcast together, in rows as long as can be: along one,
/// each value either goes on by one element a step or repeats the same one.
template <int N>
class BroadcastRows {
 public:
  /// Throws InvalidArgumentError if the shapes do not broadcast.
  explicit BroadcastRows(const std::array<const Shape*, N>& shapes) : shape_(*shapes[0]) {
    for (int k = 1; k < N; ++k) {
      if (!(shape_ == *shapes[k])) shape_ = broadcast(shape_, *shapes[k]);
    }
    for (int axis = 0; axis < shape_.rank(); ++axis) add_axis(axis, shapes);
    for (int k = 0; k < N; ++k) {  // from repeat or not to strides
      std::int64_t stride = 1;
      for (int i = rank_ - 1; i >= 0; --i) {
        const bool moves = dims_[i].stride[k] != 0;
        dims_[i].stride[k] = moves ? stride : 0;
        if (moves) stride *= dims_[i].size;
      }
    }
  }

  const Shape& shape() const { return shape_; }

  /// Calls f(begin, from, step, n) for rows that make up the result: its elements [begin, begin +
  /// n) come from elements from[k] + i * step[k] of value k. In parallel if worthwhile at `cost`
  /// nanoseconds an element.
  template <class F>
  void run(IntraOpPool& pool, double cost, F&& f) const {
    pool.parallel_for(shape_.num_elements(), cost,
                      [&](std::int64_t begin, std::int64_t end) { run_range(begin, end, f); });
  }

  /// The elements of a whole row.
  std::int64_t row_size() const { return rank_ == 0 ? 1 : dims_[rank_ - 1].size; }

  /// For how many elements of the result a row of value k is repeated: at least a row's, and they
  /// begin at a multiple of their number.
  std::int64_t repeated_size(int k) const {
    std::int64_t size = row_size();
    for (int i = rank_ - 2; i >= 0 && dims_[i].stride[k] == 0; --i) size *= dims_[i].size;
    return size;
  }

  /// `run` for the result's elements [begin, end), on this thread.
  template <class F>
  void run_range(std::int64_t begin, std::int64_t end, F&& f) const {
    std::array<std::int64_t, N> from{};
    if (rank_ == 0) return f(begin, from, from, end - begin);
    std::int64_t index[Shape::kMaxRank];
    std::int64_t rest = begin;
    for (int i = rank_ - 1; i >= 0; --i) {
      index[i] = rest % dims_[i].size;
      rest /= dims_[i].size;
      for (int k = 0; k < N; ++k) from[k] += index[i] * dims_[i].stride[k];
    }
    const Dim& inner = dims_[rank_ - 1];
    while (begin < end) {
      const std::int64_t n = std::min(inner.size - index[rank_ - 1], end - begin);
      f(begin, from, inner.stride, n);
      begin += n;
      if (begin == end) return;
      for (int k = 0; k < N; ++k) from[k] -= index[rank_ - 1] * inner.stride[k];
      index[rank_ - 1] = 0;
      for (int i = rank_ - 2; i >= 0; --i) {
        for (int k = 0; k < N; ++k) from[k] += dims_[i].stride[k];
        if (++index[i] < dims_[i].size) break;
        for (int k = 0; k < N; ++k) from[k] -= dims_[i].size * dims_[i].stride[k];
        index[i] = 0;
      }
    }
  }

 private:
  struct Dim {
    std::int64_t size;
    std::array<std::int64_t, N> stride;
  };

  void add_axis(int axis, const std::array<const Shape*, N>& shapes) {
    const std::int64_t size = shape_[axis];
    if (size == 1) return;
    Dim dim{size, {}};
    for (int k = 0; k < N; ++k) {
      const int own = axis - (shape_.rank() - shapes[k]->rank());
      dim.stride[k] = own >= 0 && (*shapes[k])[own] != 1 ? 1 : 0;
    }
    if (rank_ > 0 && dims_[rank_ - 1].stride == dim.stride) {
      dims_[rank_ - 1].size *= size;
    } else {
      dims_[rank_++] = dim;
    }
  }

  Shape shape_;
  int rank_ = 0;
  std::array<Dim, Shape::kMaxRank> dims_;
};

}  // namespace tandem::cpu
