// Sums over groups of picked rows: the SparseSegment family.

#include <algorithm>
#include <cmath>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/gather.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/norm/rows.h"
#include "tandem/kernels/cpu/support/arithmetic.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

enum class Scale { kSum, kMean, kSqrtN };

template <class T>
using Accumulator = std::conditional_t<is_float16<T>, float, T>;

// What a sum of n rows is divided by.
template <class A>
A divisor(Scale scale, std::int64_t n) {
  if (scale == Scale::kSum) return A(1);
  if constexpr (std::is_floating_point_v<A>) {
    return scale == Scale::kMean ? static_cast<A>(n) : std::sqrt(static_cast<A>(n));
  } else {
    return static_cast<A>(n);
  }
}

// Inputs 1 and 2, checked: pairs of a row and a segment.
struct Pairs {
  const Array& indices;
  const Array& ids;

  explicit Pairs(const KernelContext& c) : indices(c.input(1)), ids(c.input(2)) {
    if (indices.rank() != 1) throw InvalidArgumentError("indices should be a vector.");
    if (ids.rank() != 1) throw InvalidArgumentError("segment_ids should be a vector.");
    if (indices.num_elements() != ids.num_elements()) {
      throw InvalidArgumentError("segment_ids and indices should have same size.");
    }
    if (c.input(0).rank() < 1) throw InvalidArgumentError("input must be at least rank 1.");
  }
  std::int64_t size() const { return ids.num_elements(); }
  std::int64_t row(std::int64_t i) const {
    return index_at(indices.dtype(), indices.raw_data(), i);
  }
  std::int64_t segment(std::int64_t i) const { return index_at(ids.dtype(), ids.raw_data(), i); }

  void check_rows(std::int64_t limit) const {
    for (std::int64_t i = 0; i < size(); ++i) {
      if (row(i) < 0 || row(i) >= limit) {
        throw InvalidArgumentError(
            cat("Bad: indices[", i, "] == ", row(i), " out of range [0, ", limit, ")"));
      }
    }
  }
  void check_segments(std::int64_t limit) const {
    for (std::int64_t i = 0; i < size(); ++i) {
      if (segment(i) < 0 || segment(i) >= limit) {
        throw InvalidArgumentError(cat("Segment id ", segment(i), " out of range [0, ", limit,
                                       "), possibly because segment_ids input is not sorted."));
      }
    }
  }
  // The order that ops which go through the segments need.
  void check_sorted() const {
    for (std::int64_t i = 1; i < size(); ++i) {
      if (segment(i) < segment(i - 1)) {
        throw InvalidArgumentError("segment ids are not increasing");
      }
    }
  }
};

Shape with_rows(const Shape& like, std::int64_t rows) {
  Shape shape = like;
  shape.set_dim(0, rows);
  return shape;
}

template <class T>
void reduce_segments(const Pairs& pairs, const Array& data, Array& out, Scale scale) {
  using A = Accumulator<T>;
  const std::int64_t inner = data.shape().product(1, data.rank());
  T* to = out.data<T>();
  std::fill(to, to + out.num_elements(), T(0));
  std::vector<A> sum(static_cast<std::size_t>(inner));
  for (std::int64_t i = 0; i < pairs.size();) {
    const std::int64_t segment = pairs.segment(i);
    const std::int64_t first = i;
    std::fill(sum.begin(), sum.end(), A(0));
    for (; i < pairs.size() && pairs.segment(i) == segment; ++i) {
      combine_rows(sum.data(), data.data<T>() + pairs.row(i) * inner, inner,
                   [](A a, T b) { return add(a, static_cast<A>(b)); });
    }
    const A by = divisor<A>(scale, i - first);
    T* row = to + segment * inner;
    for (std::int64_t k = 0; k < inner; ++k) {
      const A value = sum[static_cast<std::size_t>(k)];
      row[k] = static_cast<T>(scale == Scale::kSum ? value : static_cast<A>(value / by));
    }
  }
}

template <Scale kScale, bool kCounted>
void sparse_segment(KernelContext& c) {
  const Array& data = c.input(0);
  const Pairs pairs(c);
  pairs.check_sorted();
  std::int64_t segments = pairs.size() == 0 ? 0 : pairs.segment(pairs.size() - 1);
  if (pairs.size() > 0) {
    if (segments < 0 || segments == INT64_MAX) {
      throw InvalidArgumentError(cat("segment ids must be >= 0, got ", segments));
    }
    ++segments;
  }
  if (kCounted) {
    const std::int64_t wanted = scalar_int_input(c, 3, "num_segments");
    if (wanted < 0)
      throw InvalidArgumentError("segment ids must be >= 0: num_segments is negative");
    if (segments > wanted) {
      throw InvalidArgumentError(
          cat("segment ids must be < num_segments: ", segments - 1, " is not below ", wanted));
    }
    segments = wanted;
  }
  pairs.check_segments(segments);
  pairs.check_rows(data.shape()[0]);
  Array& out = c.allocate_output(0, with_rows(data.shape(), segments));
  with_real(data.dtype(), [&]<class T>() { reduce_segments<T>(pairs, data, out, kScale); });
}

// ---- Gradients: rows of `grad` by segment added to the rows of the output by index ----

// row_of(i): the output's row of pair i.
template <class T, class RowOf>
void spread(const Pairs& pairs, const Array& grad, Array& out, Scale scale, RowOf row_of) {
  using A = Accumulator<T>;
  const std::int64_t inner = grad.shape().product(1, grad.rank());
  std::vector<std::int64_t> counts(static_cast<std::size_t>(grad.shape()[0]), 0);
  for (std::int64_t i = 0; i < pairs.size(); ++i) {
    ++counts[static_cast<std::size_t>(pairs.segment(i))];
  }
  std::vector<A> wide(static_cast<std::size_t>(out.num_elements()), A(0));
  for (std::int64_t i = 0; i < pairs.size(); ++i) {
    const std::int64_t segment = pairs.segment(i);
    const A factor = A(1) / divisor<A>(scale, counts[static_cast<std::size_t>(segment)]);
    combine_rows(wide.data() + row_of(i) * inner, grad.data<T>() + segment * inner, inner,
                 [factor](A a, T b) { return a + static_cast<A>(b) * factor; });
  }
  for (std::int64_t k = 0; k < out.num_elements(); ++k) {
    out.data<T>()[k] = static_cast<T>(wide[static_cast<std::size_t>(k)]);
  }
}

template <Scale kScale>
void sparse_segment_grad(KernelContext& c) {
  const Array& grad = c.input(0);
  const Pairs pairs(c);
  const std::int64_t rows = scalar_int_input(c, 3, "output_dim0");
  if (rows < 0) throw InvalidArgumentError("output_dim0 must not be negative");
  pairs.check_segments(grad.shape()[0]);
  pairs.check_rows(rows);
  Array& out = c.allocate_output(0, with_rows(grad.shape(), rows));
  with_floating(grad.dtype(), [&]<class T>() {
    spread<T>(pairs, grad, out, kScale, [&](std::int64_t i) { return pairs.row(i); });
  });
}

template <Scale kScale>
void sparse_segment_grad_v2(KernelContext& c) {
  const Array& grad = c.input(0);
  const Pairs pairs(c);
  const std::int64_t rows = scalar_int_input(c, 3, "dense_output_dim0");
  if (rows < 0) throw InvalidArgumentError("dense_output_dim0 must not be negative");
  pairs.check_segments(grad.shape()[0]);
  pairs.check_rows(rows);
  std::vector<std::int64_t> used(static_cast<std::size_t>(pairs.size()));
  for (std::int64_t i = 0; i < pairs.size(); ++i) used[static_cast<std::size_t>(i)] = pairs.row(i);
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  const auto n = static_cast<std::int64_t>(used.size());
  Array& unique = c.allocate_output(1, Shape{n});
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t row = used[static_cast<std::size_t>(k)];
    if (unique.dtype() == DType::kInt32) {
      unique.data<std::int32_t>()[k] = static_cast<std::int32_t>(row);
    } else {
      unique.data<std::int64_t>()[k] = row;
    }
  }
  Array& out = c.allocate_output(0, with_rows(grad.shape(), n));
  with_floating(grad.dtype(), [&]<class T>() {
    spread<T>(pairs, grad, out, kScale, [&](std::int64_t i) {
      return std::lower_bound(used.begin(), used.end(), pairs.row(i)) - used.begin();
    });
  });
}

const KernelRegistration kKernels[] = {
    KernelRegistration({.op = "SparseSegmentSum", .run = sparse_segment<Scale::kSum, false>}),
    KernelRegistration({.op = "SparseSegmentMean", .run = sparse_segment<Scale::kMean, false>}),
    KernelRegistration({.op = "SparseSegmentSqrtN", .run = sparse_segment<Scale::kSqrtN, false>}),
    KernelRegistration(
        {.op = "SparseSegmentSumWithNumSegments", .run = sparse_segment<Scale::kSum, true>}),
    KernelRegistration(
        {.op = "SparseSegmentMeanWithNumSegments", .run = sparse_segment<Scale::kMean, true>}),
    KernelRegistration(
        {.op = "SparseSegmentSqrtNWithNumSegments", .run = sparse_segment<Scale::kSqrtN, true>}),
    KernelRegistration({.op = "SparseSegmentSumGrad", .run = sparse_segment_grad<Scale::kSum>}),
    KernelRegistration({.op = "SparseSegmentMeanGrad", .run = sparse_segment_grad<Scale::kMean>}),
    KernelRegistration({.op = "SparseSegmentSqrtNGrad", .run = sparse_segment_grad<Scale::kSqrtN>}),
    KernelRegistration(
        {.op = "SparseSegmentSumGradV2", .run = sparse_segment_grad_v2<Scale::kSum>}),
    KernelRegistration(
        {.op = "SparseSegmentMeanGradV2", .run = sparse_segment_grad_v2<Scale::kMean>}),
    KernelRegistration(
        {.op = "SparseSegmentSqrtNGradV2", .run = sparse_segment_grad_v2<Scale::kSqrtN>}),
};

}  // namespace
}  // namespace tandem::cpu
