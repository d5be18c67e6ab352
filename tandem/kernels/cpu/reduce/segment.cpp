// Reductions over groups of rows: UnsortedSegmentSum, SegmentSum and their kin.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <string_view>
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

// A sum, product or extreme of T, kept in A: float for the 16-bit types, so that long sums keep
// their digits.
template <class T>
using Accumulator = std::conditional_t<is_float16<T>, float, T>;

struct Sum {
  static constexpr bool kRealOnly = false;
  template <class T>
  static T start() {
    return T(0);
  }
  template <class A>
  static A combine(A a, A b) {
    return add(a, b);
  }
};
struct Prod {
  static constexpr bool kRealOnly = false;
  template <class T>
  static T start() {
    return T(1);
  }
  template <class A>
  static A combine(A a, A b) {
    return multiply(a, b);
  }
};

// The largest finite number of T, or its negative.
template <class T>
T farthest(bool negative) {
  if constexpr (std::is_same_v<T, Half>) {
    return Half(negative ? -65504.0f : 65504.0f);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    BFloat16 largest;
    largest.bits = negative ? 0xff7f : 0x7f7f;
    return largest;
  } else {
    return negative ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  }
}

// Like TensorFlow's, they take the later row unless the earlier ones win: a NaN lasts until the
// next row comes, and of two zeros the last one stays.
struct Max {
  static constexpr bool kRealOnly = true;
  template <class T>
  static T start() {
    return farthest<T>(true);
  }
  template <class A>
  static A combine(A a, A b) {
    return less(b, a) ? a : b;
  }
};
struct Min {
  static constexpr bool kRealOnly = true;
  template <class T>
  static T start() {
    return farthest<T>(false);
  }
  template <class A>
  static A combine(A a, A b) {
    return less(a, b) ? a : b;
  }
};

// The loops over elements, all that is compiled for each type. Rows have `inner` elements.
struct Loops {
  std::int64_t element_bytes, accumulator_bytes;
  // Rows of `data` into segments [begin, end) of `to`, accumulators.
  void (*reduce)(void* to, const void* data, const Array& ids, std::int64_t inner,
                 std::int64_t begin, std::int64_t end);
  void (*narrow)(void* to, const void* from, std::int64_t n);  // From accumulators.
  // Rows [starts[s], starts[s + 1]) of `from` into row s of `to` for s in [begin, end), by way of
  // `row`, accumulators; none: zeros, or ones for a product.
  void (*reduce_runs)(void* to, const void* from, const std::int64_t* starts, std::int64_t begin,
                      std::int64_t end, std::int64_t inner, void* row, bool mean);
};

template <class Reduce, class T>
void reduce_segments(void* to, const void* data, const Array& ids, std::int64_t inner,
                     std::int64_t begin, std::int64_t end) {
  using A = Accumulator<T>;
  A* out = static_cast<A*>(to);
  const T* from = static_cast<const T*>(data);
  std::fill(out + begin * inner, out + end * inner, static_cast<A>(Reduce::template start<T>()));
  const DType index_type = ids.dtype();
  const void* index = ids.raw_data();
  const std::int64_t n = ids.num_elements();
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t id = index_at(index_type, index, i);
    if (id < begin || id >= end) continue;
    combine_rows(out + id * inner, from + i * inner, inner,
                 [](A a, T b) { return Reduce::combine(a, static_cast<A>(b)); });
  }
}

template <class T>
void narrow_segments(void* to, const void* from, std::int64_t n) {
  const auto* wide = static_cast<const Accumulator<T>*>(from);
  T* out = static_cast<T*>(to);
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(wide[i]);
}

template <class Reduce, class T>
T finished(Accumulator<T> value, [[maybe_unused]] std::int64_t rows, [[maybe_unused]] bool mean) {
  if constexpr (std::is_same_v<Reduce, Sum>) {
    using A = Accumulator<T>;
    if constexpr (std::is_integral_v<A>) {
      // Small types cannot hold every number of rows.
      using Wide = std::conditional_t<std::is_signed_v<A>, std::int64_t, std::uint64_t>;
      if (mean) value = static_cast<A>(static_cast<Wide>(value) / static_cast<Wide>(rows));
    } else {
      if (mean) value = static_cast<A>(value / static_cast<A>(rows));
    }
  }
  return static_cast<T>(value);
}

template <class Reduce, class T>
void reduce_runs(void* to, const void* data, const std::int64_t* starts, std::int64_t begin,
                 std::int64_t end, std::int64_t inner, void* wide, bool mean) {
  using A = Accumulator<T>;
  const auto combine = [](A a, T b) { return Reduce::combine(a, static_cast<A>(b)); };
  T* out = static_cast<T*>(to) + begin * inner;
  A* row = static_cast<A*>(wide);
  for (std::int64_t s = begin; s < end; ++s, out += inner) {
    const std::int64_t rows = starts[s + 1] - starts[s];
    const T* from = static_cast<const T*>(data) + starts[s] * inner;
    if (rows == 0) {
      std::fill(out, out + inner, std::is_same_v<Reduce, Prod> ? T(1) : T(0));
    } else if (inner == 1) {
      A value = static_cast<A>(from[0]);
      for (std::int64_t r = 1; r < rows; ++r) value = combine(value, from[r]);
      out[0] = finished<Reduce, T>(value, rows, mean);
    } else {
      if constexpr (std::is_same_v<A, T>) row = out;
      for (std::int64_t k = 0; k < inner; ++k) row[k] = static_cast<A>(from[k]);
      for (std::int64_t r = 1; r < rows; ++r) combine_rows(row, from + r * inner, inner, combine);
      if (std::is_same_v<A, T> && !mean) continue;
      for (std::int64_t k = 0; k < inner; ++k) out[k] = finished<Reduce, T>(row[k], rows, mean);
    }
  }
}

template <class Reduce, class T>
constexpr Loops kLoops = {sizeof(T), sizeof(Accumulator<T>), reduce_segments<Reduce, T>,
                          narrow_segments<T>, reduce_runs<Reduce, T>};

template <class Reduce>
const Loops& loops_for(DType dtype) {
  const Loops* found = nullptr;
  const auto find = [&]<class T>() { found = &kLoops<Reduce, T>; };
  if constexpr (Reduce::kRealOnly) {
    with_real(dtype, find);
  } else {
    with_number(dtype, find);
  }
  return *found;
}

void unsorted_segments(KernelContext& c, Array& out, const Array& data, const Array& ids,
                       std::int64_t inner, const Loops& loops) {
  if (out.num_elements() == 0) return;
  const std::int64_t segments = out.shape()[0];
  const bool widened = loops.accumulator_bytes != loops.element_bytes;
  std::vector<float> wide(widened ? static_cast<std::size_t>(out.num_elements()) : 0);
  void* to = widened ? wide.data() : out.raw_data();
  for_each_share(c.intra_op(), segments, data.num_elements() + out.num_elements(), inner,
                 [&](std::int64_t begin, std::int64_t end) {
                   loops.reduce(to, data.raw_data(), ids, inner, begin, end);
                 });
  if (widened) loops.narrow(out.raw_data(), to, out.num_elements());
}

void unsorted_segment_of(KernelContext& c, const Loops& loops) {
  const Array& data = c.input(0);
  const Array& ids = c.input(1);
  const std::int64_t segments = scalar_int_input(c, 2, "num_segments");
  if (segments < 0) {
    throw InvalidArgumentError(cat("Input num_segments == ", segments, " must not be negative."));
  }
  bool starts = ids.rank() <= data.rank();
  for (int i = 0; starts && i < ids.rank(); ++i) starts = ids.shape()[i] == data.shape()[i];
  if (!starts) {
    throw InvalidArgumentError(cat("data.shape = ", data.shape(),
                                   " does not start with segment_ids.shape = ", ids.shape()));
  }
  for (std::int64_t i = 0; i < ids.num_elements(); ++i) {
    const std::int64_t id = index_at(ids.dtype(), ids.raw_data(), i);
    if (id >= segments) {
      throw InvalidArgumentError(
          cat("segment_ids[", i, "] = ", id, " is out of range [0, ", segments, ")"));
    }
  }
  Shape shape{segments};
  for (int i = ids.rank(); i < data.rank(); ++i) shape.add_dim(data.shape()[i]);
  const std::int64_t inner = data.shape().product(ids.rank(), data.rank());
  Array& out = c.allocate_output(0, shape);
  unsorted_segments(c, out, data, ids, inner, loops);
}

template <class Reduce>
void unsorted_segment(KernelContext& c) {
  unsorted_segment_of(c, loops_for<Reduce>(c.input(0).dtype()));
}

// ---- Sorted ids ----

template <class Index>
void check_sorted(const Array& ids) {
  const std::span<const Index> all = ids.values<Index>();
  const std::int64_t last = all.empty() ? -1 : std::int64_t{all.back()};
  Index before = 0;
  for (const Index id : all) {
    if (id < 0 || last == INT64_MAX) {
      throw InvalidArgumentError(cat("Segment id ", id, " out of range [0, ",
                                     std::max<std::int64_t>(last, 0) + (last != INT64_MAX),
                                     "), possibly because 'segment_ids' input is not sorted."));
    }
    if (id < before) throw InvalidArgumentError("segment ids are not increasing");
    before = id;
  }
}

// Checks the ids and allocates the output: a row more than the last id.
Array& sorted_output(KernelContext& c) {
  const Array& data = c.input(0);
  const Array& ids = c.input(1);
  if (ids.rank() != 1)
    throw InvalidArgumentError(cat("segment_ids should be a vector, got shape ", ids.shape()));
  if (data.rank() < 1 || data.shape()[0] != ids.num_elements()) {
    throw InvalidArgumentError("segment_ids should be the same size as dimension 0 of input.");
  }
  if (ids.dtype() == DType::kInt32) {
    check_sorted<std::int32_t>(ids);
  } else {
    check_sorted<std::int64_t>(ids);
  }
  const std::int64_t n = ids.num_elements();
  Shape shape = data.shape();
  shape.set_dim(0, n == 0 ? 0 : index_at(ids.dtype(), ids.raw_data(), n - 1) + 1);
  return c.allocate_output(0, shape);
}

// Where each segment begins, and a last one where the last ends.
template <class Index>
std::vector<std::int64_t> starts_of(const Array& ids, std::int64_t segments) {
  std::vector<std::int64_t> starts(static_cast<std::size_t>(segments) + 1, 0);
  const std::span<const Index> all = ids.values<Index>();
  std::size_t next = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (; next <= static_cast<std::size_t>(all[i]); ++next) {
      starts[next] = static_cast<std::int64_t>(i);
    }
  }
  starts.back() = static_cast<std::int64_t>(all.size());
  return starts;
}

void sorted_segment_of(KernelContext& c, const Loops& loops, bool mean) {
  const Array& data = c.input(0);
  const Array& ids = c.input(1);
  Array& out = sorted_output(c);
  if (out.num_elements() == 0) return;
  const std::int64_t inner = data.shape().product(1, data.rank());
  const std::int64_t segments = out.shape()[0];
  const std::vector<std::int64_t> starts = ids.dtype() == DType::kInt32
                                               ? starts_of<std::int32_t>(ids, segments)
                                               : starts_of<std::int64_t>(ids, segments);
  const double each = inner == 1 ? 1.0 : 0.1 * static_cast<double>(loops.element_bytes);
  const double cost = (each * static_cast<double>(data.num_elements() + out.num_elements())) /
                      static_cast<double>(segments);
  c.intra_op().parallel_for(segments, cost, [&](std::int64_t begin, std::int64_t end) {
    // Only what is added up in a wider type needs a row of it.
    const std::int64_t wide =
        loops.accumulator_bytes == loops.element_bytes ? 0 : inner * loops.accumulator_bytes;
    std::vector<std::max_align_t> row(static_cast<std::size_t>(wide) / sizeof(std::max_align_t) +
                                      1);
    loops.reduce_runs(out.raw_data(), data.raw_data(), starts.data(), begin, end, inner, row.data(),
                      mean);
  });
}

template <class Reduce, bool kMean = false>
void sorted_segment(KernelContext& c) {
  sorted_segment_of(c, loops_for<Reduce>(c.input(0).dtype()), kMean);
}

constexpr TypeConstraint kNumbers{"T", kNumberTypes};
constexpr TypeConstraint kReals{"T", kRealTypes};

const KernelRegistration kUnsortedSum{
    {.op = "UnsortedSegmentSum", .types = {kNumbers}, .run = unsorted_segment<Sum>}};
const KernelRegistration kUnsortedProd{
    {.op = "UnsortedSegmentProd", .types = {kNumbers}, .run = unsorted_segment<Prod>}};
const KernelRegistration kUnsortedMax{
    {.op = "UnsortedSegmentMax", .types = {kReals}, .run = unsorted_segment<Max>}};
const KernelRegistration kUnsortedMin{
    {.op = "UnsortedSegmentMin", .types = {kReals}, .run = unsorted_segment<Min>}};
const KernelRegistration kSum{
    {.op = "SegmentSum", .types = {kNumbers}, .run = sorted_segment<Sum>}};
const KernelRegistration kMean{
    {.op = "SegmentMean", .types = {kNumbers}, .run = sorted_segment<Sum, true>}};
const KernelRegistration kProd{
    {.op = "SegmentProd", .types = {kNumbers}, .run = sorted_segment<Prod>}};
const KernelRegistration kMax{{.op = "SegmentMax", .types = {kReals}, .run = sorted_segment<Max>}};
const KernelRegistration kMin{{.op = "SegmentMin", .types = {kReals}, .run = sorted_segment<Min>}};

}  // namespace
}  // namespace tandem::cpu
