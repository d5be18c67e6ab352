// Reductions over groups of rows: UnsortedSegmentSum, SegmentSum and their kin.

#include <algorithm>
#include <limits>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/gather.h"
#include "tandem/kernels/cpu/int_input.h"
#include "tandem/kernels/cpu/rows.h"
#include "tandem/kernels/cpu/type_switch.h"

namespace tandem::cpu {
namespace {

// A sum, product or extreme of T, kept in A: float for the 16-bit types, so that long sums keep
// their digits.
template <class T>
using Accumulator = std::conditional_t<is_small_float<T>, float, T>;

struct Sum {
  static constexpr bool kRealOnly = false;
  template <class A>
  static A start() {
    return A(0);
  }
  template <class A>
  static A combine(A a, A b) {
    return add(a, b);
  }
};
struct Prod {
  static constexpr bool kRealOnly = false;
  template <class A>
  static A start() {
    return A(1);
  }
  template <class A>
  static A combine(A a, A b) {
    return multiply(a, b);
  }
};
struct Max {
  static constexpr bool kRealOnly = true;
  template <class A>
  static A start() {
    return std::numeric_limits<A>::lowest();
  }
  template <class A>
  static A combine(A a, A b) {
    return less(a, b) ? b : a;
  }
};
struct Min {
  static constexpr bool kRealOnly = true;
  template <class A>
  static A start() {
    return std::numeric_limits<A>::max();
  }
  template <class A>
  static A combine(A a, A b) {
    return less(b, a) ? b : a;
  }
};

// What an empty segment is in T itself: the extremes of half are not those of float.
template <class Reduce, class T>
T empty_segment() {
  if constexpr (std::is_same_v<T, Half> && Reduce::kRealOnly) {
    return Half(Reduce::template start<float>() > 0 ? 65504.0f : -65504.0f);
  } else if constexpr (std::is_same_v<T, BFloat16> && Reduce::kRealOnly) {
    BFloat16 largest;
    largest.bits = Reduce::template start<float>() > 0 ? 0x7f7f : 0xff7f;
    return largest;
  } else {
    return T(Reduce::template start<Accumulator<T>>());
  }
}

template <class Reduce, class F>
void reduce_switch(DType dtype, std::string_view op, F f) {
  if constexpr (Reduce::kRealOnly) {
    real_switch(dtype, op, f);
  } else {
    number_switch(dtype, op, f);
  }
}

template <class Reduce, class A, class T>
void combine_row(A* to, const T* from, std::int64_t n) {
  combine_rows(to, from, n, [](A a, T b) { return Reduce::combine(a, static_cast<A>(b)); });
}

// Rows of `data` into segments [begin, end) of `to`, which holds start values.
template <class Reduce, class A, class T>
void reduce_segments(A* to, const T* data, const Array& ids, std::int64_t inner, std::int64_t begin,
                     std::int64_t end) {
  const DType index_type = ids.dtype();
  const void* index = ids.raw_data();
  const std::int64_t n = ids.num_elements();
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t id = index_at(index_type, index, i);
    if (id >= begin && id < end) combine_row<Reduce>(to + id * inner, data + i * inner, inner);
  }
}

template <class Reduce, class T>
void unsorted_segments(KernelContext& c, Array& out, const Array& data, const Array& ids,
                       std::int64_t inner) {
  using A = Accumulator<T>;
  const std::int64_t segments = out.shape()[0];
  if (out.num_elements() == 0) return;
  std::vector<A> wide;
  A* to = nullptr;
  if constexpr (std::is_same_v<A, T>) {
    to = out.data<T>();
  } else {
    wide.resize(static_cast<std::size_t>(out.num_elements()));
    to = wide.data();
  }
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    std::fill(to + begin * inner, to + end * inner, Reduce::template start<A>());
    reduce_segments<Reduce>(to, data.data<T>(), ids, inner, begin, end);
  };
  for_each_share(c.intra_op(), segments, data.num_elements() + out.num_elements(), inner, run);
  if constexpr (!std::is_same_v<A, T>) {
    const T none = empty_segment<Reduce, T>();
    std::vector<bool> seen(Reduce::kRealOnly ? static_cast<std::size_t>(segments) : 0, false);
    for (std::int64_t i = 0; Reduce::kRealOnly && i < ids.num_elements(); ++i) {
      const std::int64_t id = index_at(ids.dtype(), ids.raw_data(), i);
      if (id >= 0) seen[static_cast<std::size_t>(id)] = true;
    }
    for (std::int64_t i = 0; i < out.num_elements(); ++i) {
      const bool empty = Reduce::kRealOnly && !seen[static_cast<std::size_t>(i / inner)];
      out.data<T>()[i] = empty ? none : T(to[i]);
    }
  }
}

template <class Reduce>
void unsorted_segment(KernelContext& c) {
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
  reduce_switch<Reduce>(data.dtype(), c.op().name,
                        [&]<class T>() { unsorted_segments<Reduce, T>(c, out, data, ids, inner); });
}

// ---- Sorted ids ----

// Checks the ids and allocates the output: a row more than the last id.
Array& sorted_output(KernelContext& c) {
  const Array& data = c.input(0);
  const Array& ids = c.input(1);
  if (ids.rank() != 1)
    throw InvalidArgumentError(cat("segment_ids should be a vector, got shape ", ids.shape()));
  if (data.rank() < 1 || data.shape()[0] != ids.num_elements()) {
    throw InvalidArgumentError("segment_ids should be the same size as dimension 0 of input.");
  }
  const std::int64_t n = ids.num_elements();
  const std::int64_t last = n == 0 ? -1 : index_at(ids.dtype(), ids.raw_data(), n - 1);
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t id = index_at(ids.dtype(), ids.raw_data(), i);
    if (id < 0 || last == INT64_MAX) {
      throw InvalidArgumentError(cat("Segment id ", id, " out of range [0, ",
                                     std::max<std::int64_t>(last, 0) + (last != INT64_MAX),
                                     "), possibly because 'segment_ids' input is not sorted."));
    }
    if (id < before) throw InvalidArgumentError("segment ids are not increasing");
    before = id;
  }
  Shape shape = data.shape();
  shape.set_dim(0, last + 1);
  return c.allocate_output(0, shape);
}

// Calls f(row of out, first row of data, rows) for each segment; rows is 0 for those without any.
template <class F>
void for_each_segment(KernelContext& c, const Array& out, F f) {
  const Array& ids = c.input(1);
  const std::int64_t n = ids.num_elements();
  std::int64_t first = 0;
  for (std::int64_t s = 0; s < out.shape()[0]; ++s) {
    std::int64_t end = first;
    while (end < n && index_at(ids.dtype(), ids.raw_data(), end) == s) ++end;
    f(s, first, end - first);
    first = end;
  }
}

template <class Reduce, bool kMean = false>
void sorted_segment(KernelContext& c) {
  const Array& data = c.input(0);
  Array& out = sorted_output(c);
  const std::int64_t inner = data.shape().product(1, data.rank());
  reduce_switch<Reduce>(data.dtype(), c.op().name, [&]<class T>() {
    using A = Accumulator<T>;
    std::vector<A> row(static_cast<std::size_t>(inner));
    for_each_segment(c, out, [&](std::int64_t s, std::int64_t first, std::int64_t rows) {
      T* to = out.data<T>() + s * inner;
      if (rows == 0) {
        std::fill(to, to + inner, std::is_same_v<Reduce, Prod> ? T(1) : T(0));
        return;
      }
      const T* from = data.data<T>() + first * inner;
      for (std::int64_t k = 0; k < inner; ++k)
        row[static_cast<std::size_t>(k)] = static_cast<A>(from[k]);
      for (std::int64_t r = 1; r < rows; ++r)
        combine_row<Reduce>(row.data(), from + r * inner, inner);
      for (std::int64_t k = 0; k < inner; ++k) {
        A value = row[static_cast<std::size_t>(k)];
        if constexpr (kMean) value = static_cast<A>(value / static_cast<A>(rows));
        to[k] = static_cast<T>(value);
      }
    });
  });
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
