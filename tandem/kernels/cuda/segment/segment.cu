// Reductions over groups of rows: UnsortedSegmentSum, SegmentSum and their kin, and sums of picked
// rows (SparseSegmentSum). One thread goes through the rows of one result, in their order.

#include <vector>

#include "tandem/kernels/cuda/array/targets.h"
#include "tandem/kernels/cuda/elementwise/arithmetic.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"
#include "tandem/kernels/cuda/support/warp.h"

namespace tandem::cuda {
namespace {

// What a segment without rows is, by `start` where any row may come, and by `none` where segments
// begin with their first row.
struct SumOf : Add {
  static constexpr float none = 0;
  template <class T>
  static T start() {
    return store<T>(0);
  }
};
struct ProdOf : Mul {
  static constexpr float none = 1;
  template <class T>
  static T start() {
    return store<T>(1);
  }
};
template <class T>
T farthest(bool negative) {
  T value;
  if constexpr (std::is_same_v<T, Half>) {
    value.bits = negative ? 0xfbff : 0x7bff;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    value.bits = negative ? 0xff7f : 0x7f7f;
  } else {
    value = negative ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  }
  return value;
}
// The later row wins unless the earlier one is better: so does a NaN, until the next row comes.
struct MaxOf {
  static constexpr float none = 0;
  template <class T>
  static T start() {
    return farthest<T>(true);
  }
  template <class T>
  TANDEM_DEVICE static T apply(T a, T b) {
    return b < a ? a : b;
  }
};
struct MinOf {
  static constexpr float none = 0;
  template <class T>
  static T start() {
    return farthest<T>(false);
  }
  template <class T>
  TANDEM_DEVICE static T apply(T a, T b) {
    return a < b ? a : b;
  }
};

template <class T>
TANDEM_KERNEL fill_kernel(T* y, T value, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) y[i] = value;
}

enum class Scale { kSum, kMean, kSqrtN };

template <class T>
TANDEM_DEVICE T scaled(Compute<T> sum, std::int64_t rows, Scale scale) {
  using C = Compute<T>;
  if constexpr (std::is_floating_point_v<C>) {
    if (scale == Scale::kMean) sum = sum / static_cast<C>(rows);
    if (scale == Scale::kSqrtN) sum = sum / std::sqrt(static_cast<C>(rows));
    return store<T>(sum);
  } else {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    if (scale == Scale::kSum) return sum;
    return static_cast<T>(static_cast<Wide>(sum) / static_cast<Wide>(rows));
  }
}

// Row r of the data is that of number r, or of picks[r]. With `keeps` the results begin with what
// is there.
template <class F, class T>
TANDEM_KERNEL segment_kernel(const T* data, T* y, Targets rows, std::int64_t inner,
                             const std::int64_t* picks, bool keeps, Scale scale) {
  const std::int64_t n = rows.size * inner;
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t p = i / inner, column = i % inner;
    const std::uint64_t segment = rows.rows[p];
    if (segment == kLastKey || (p > 0 && rows.rows[p - 1] == segment)) continue;
    T& result = y[static_cast<std::int64_t>(segment) * inner + column];
    Compute<T> value = load(result);
    std::int64_t q = p;
    for (; q < rows.size && rows.rows[q] == segment; ++q) {
      const std::int64_t row = picks ? picks[rows.updates[q]] : rows.updates[q];
      const Compute<T> next = load(data[row * inner + column]);
      value = q == p && !keeps ? next : F::apply(value, next);
    }
    result = scaled<T>(value, q - p, scale);
  }
}

template <class F, class T>
void reduce_segments(const TensorView& data, const TensorView& y, const Targets& rows,
                     std::int64_t inner, const std::int64_t* picks, bool keeps, Scale scale) {
  if (y.count == 0) return;
  const T start = keeps ? F::template start<T>() : store<T>(F::none);
  TANDEM_LAUNCH(fill_kernel<T>, shape_for(y.count), 0, y.as<T>(), start, y.count);
  if (rows.size * inner == 0) return;
  TANDEM_LAUNCH((segment_kernel<F, T>), shape_for(rows.size * inner), 0, data.as<T>(), y.as<T>(),
                rows, inner, picks, keeps, scale);
}

template <class F>
void reduce_any(const TensorView& data, const TensorView& y, const Targets& rows,
                std::int64_t inner, const std::int64_t* picks, bool keeps, Scale scale) {
  if (!visit_numbers(data.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        reduce_segments<F, T>(data, y, rows, inner, picks, keeps, scale);
      })) {
    no_kernel_for(data.type);
  }
}

template <class F>
void unsorted(KernelCall& call) {
  const TensorView data = call.input(0), ids = call.input(1);
  const std::int64_t segments = call.input(2).host_scalar("num_segments");
  if (segments < 0) {
    refuse("Input num_segments == " + std::to_string(segments) + " must not be negative.");
  }
  if (ids.rank() > data.rank() ||
      !std::equal(ids.sizes.begin(), ids.sizes.end(), data.sizes.begin())) {
    refuse("data.shape does not start with segment_ids.shape");
  }
  Sizes sizes(data.sizes.begin() + ids.rank(), data.sizes.end());
  const std::int64_t inner = product(sizes);
  sizes.insert(sizes.begin(), segments);
  const TensorView y = call.allocate_output(0, sizes);
  if (y.count == 0) return;
  reduce_any<F>(data, y, row_targets(call, ids, segments), inner, nullptr, true, Scale::kSum);
}

// ---- Ids that ascend: how many segments there are follows from the last ----

std::int64_t checked_ascending(const std::vector<std::int64_t>& ids) {
  std::int64_t before = 0;
  for (const std::int64_t id : ids) {
    if (id < 0 || ids.back() == INT64_MAX) {
      refuse("Segment id " + std::to_string(id) +
             " out of range, possibly because 'segment_ids' input is not sorted.");
    }
    if (id < before) refuse("segment ids are not increasing");
    before = id;
  }
  return ids.empty() ? 0 : ids.back() + 1;
}

template <class F>
void sorted(KernelCall& call, Scale scale) {
  const TensorView data = call.input(0), ids = call.input(1);
  if (ids.rank() != 1) refuse("segment_ids should be a vector");
  if (data.rank() < 1 || data.sizes[0] != ids.count) {
    refuse("segment_ids should be the same size as dimension 0 of input.");
  }
  const std::int64_t segments = checked_ascending(call.read_integers(ids));
  Sizes sizes = data.sizes;
  sizes[0] = segments;
  const TensorView y = call.allocate_output(0, sizes);
  if (y.count == 0) return;
  reduce_any<F>(data, y, row_targets(call, ids, segments), y.count / segments, nullptr, false,
                scale);
}

// ---- Rows that are picked ----

template <class Index>
TANDEM_KERNEL widen_kernel(const Index* from, std::int64_t* to, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    to[i] = static_cast<std::int64_t>(from[i]);
  }
}

void widen(const TensorView& from, std::int64_t* to) {
  visit_index(from.type, [&](auto tag) {
    using Index = typename decltype(tag)::type;
    TANDEM_LAUNCH(widen_kernel<Index>, shape_for(from.count), 0, from.as<Index>(), to, from.count);
  });
}

void check_pairs(const TensorView& data, const TensorView& indices, const TensorView& ids) {
  if (indices.rank() != 1) refuse("indices should be a vector.");
  if (ids.rank() != 1) refuse("segment_ids should be a vector.");
  if (indices.count != ids.count) refuse("segment_ids and indices should have same size.");
  if (data.rank() < 1) refuse("input must be at least rank 1.");
}

void check_rows(const std::vector<std::int64_t>& rows, std::int64_t limit, const char* what) {
  for (const std::int64_t row : rows) {
    if (row < 0 || row >= limit) {
      refuse(std::string(what) + " " + std::to_string(row) + " out of range [0, " +
             std::to_string(limit) + ")");
    }
  }
}

void picked(KernelCall& call, Scale scale, bool counted) {
  const TensorView data = call.input(0), indices = call.input(1), ids = call.input(2);
  check_pairs(data, indices, ids);
  std::int64_t segments = checked_ascending(call.read_integers(ids));
  if (counted) {
    const std::int64_t wanted = call.input(3).host_scalar("num_segments");
    if (wanted < 0) refuse("segment ids must be >= 0: num_segments is negative");
    if (segments > wanted) refuse("segment ids must be < num_segments");
    segments = wanted;
  }
  check_rows(call.read_integers(indices), data.sizes[0], "Bad: an index");
  Sizes sizes = data.sizes;
  sizes[0] = segments;
  const TensorView y = call.allocate_output(0, sizes);
  if (y.count == 0) return;
  void* picks = nullptr;
  const Targets rows =
      row_targets(call, ids, segments, static_cast<std::size_t>(ids.count) * 8 + 8, &picks);
  if (ids.count > 0) widen(indices, static_cast<std::int64_t*>(picks));
  reduce_any<SumOf>(data, y, rows, y.count / segments, static_cast<std::int64_t*>(picks), false,
                    scale);
}

// ---- Their gradients: rows of the gradient by segment, added to rows by index ----

TANDEM_KERNEL count_kernel(const std::int64_t* ids, std::int64_t* counts, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    atomic_add(&counts[ids[i]], std::int64_t{1});
  }
}

// `rank` of a row is where it goes; null: to its own number.
template <class T>
TANDEM_KERNEL spread_kernel(const T* gradient, T* y, Targets rows, std::int64_t inner,
                            const std::int64_t* ids, const std::int64_t* counts,
                            const std::int64_t* ranks, Scale scale) {
  using C = Compute<T>;
  const std::int64_t n = rows.size * inner;
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t p = i / inner, column = i % inner;
    const std::uint64_t row = rows.rows[p];
    if (row == kLastKey || (p > 0 && rows.rows[p - 1] == row)) continue;
    C sum = C(0);
    for (std::int64_t q = p; q < rows.size && rows.rows[q] == row; ++q) {
      const std::int64_t segment = ids[rows.updates[q]];
      C factor = C(1);
      if (scale == Scale::kMean) factor = C(1) / static_cast<C>(counts[segment]);
      if (scale == Scale::kSqrtN) factor = C(1) / std::sqrt(static_cast<C>(counts[segment]));
      sum += load(gradient[segment * inner + column]) * factor;
    }
    const std::int64_t to = ranks ? ranks[p] : static_cast<std::int64_t>(row);
    y[to * inner + column] = store<T>(sum);
  }
}

template <class Index>
TANDEM_KERNEL unique_rows_kernel(Targets rows, std::int64_t* ranks, Index* unique) {
  // One thread: the number of rows is that of what was picked in one step.
  if (first_index<std::int64_t>() != 0) return;
  std::int64_t rank = -1;
  for (std::int64_t p = 0; p < rows.size; ++p) {
    if (p == 0 || rows.rows[p] != rows.rows[p - 1])
      unique[++rank] = static_cast<Index>(rows.rows[p]);
    ranks[p] = rank;
  }
}

void picked_gradient(KernelCall& call, Scale scale, bool unique) {
  const TensorView gradient = call.input(0), indices = call.input(1), ids = call.input(2);
  check_pairs(gradient, indices, ids);
  const std::int64_t rows = call.input(3).host_scalar("output_dim0");
  if (rows < 0) refuse("output_dim0 must not be negative");
  std::vector<std::int64_t> segments = call.read_integers(ids), picks = call.read_integers(indices);
  check_rows(segments, gradient.sizes[0], "Segment id");
  check_rows(picks, rows, "Bad: an index");
  Sizes sizes = gradient.sizes;
  sizes[0] = rows;
  if (unique) {
    std::sort(picks.begin(), picks.end());
    sizes[0] = std::unique(picks.begin(), picks.end()) - picks.begin();
  }
  const TensorView y = call.allocate_output(0, sizes);
  TensorView used;
  if (unique) used = call.allocate_output(1, {sizes[0]});
  const std::size_t bytes = static_cast<std::size_t>(y.count) * size_of(y.type);
  call.zero(y.data, bytes);
  if (ids.count == 0) return;
  const std::int64_t n = ids.count;
  void* memory = nullptr;
  const Targets targets = row_targets(
      call, indices, rows, static_cast<std::size_t>(2 * n + gradient.sizes[0]) * 8, &memory);
  auto* const wide_ids = static_cast<std::int64_t*>(memory);
  std::int64_t* const ranks = wide_ids + n;
  std::int64_t* const counts = ranks + n;
  widen(ids, wide_ids);
  call.zero(counts, static_cast<std::size_t>(gradient.sizes[0]) * 8);
  TANDEM_LAUNCH(count_kernel, shape_for(n), 0, wide_ids, counts, n);
  if (unique) {
    visit_index(used.type, [&](auto tag) {
      using Index = typename decltype(tag)::type;
      TANDEM_LAUNCH(unique_rows_kernel<Index>, shape_for(1), 0, targets, ranks, used.as<Index>());
    });
  }
  if (y.count == 0) return;
  const std::int64_t inner = y.count / sizes[0];
  visit_floating(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(spread_kernel<T>, shape_for(n * inner), 0, gradient.as<T>(), y.as<T>(), targets,
                  inner, wide_ids, counts, unique ? ranks : nullptr, scale);
  });
}

}  // namespace

void segment_unsorted_sum(KernelCall& call) { unsorted<SumOf>(call); }
void segment_unsorted_prod(KernelCall& call) { unsorted<ProdOf>(call); }
void segment_unsorted_max(KernelCall& call) { unsorted<MaxOf>(call); }
void segment_unsorted_min(KernelCall& call) { unsorted<MinOf>(call); }
void segment_sum(KernelCall& call) { sorted<SumOf>(call, Scale::kSum); }
void segment_mean(KernelCall& call) { sorted<SumOf>(call, Scale::kMean); }
void segment_prod(KernelCall& call) { sorted<ProdOf>(call, Scale::kSum); }
void segment_max(KernelCall& call) { sorted<MaxOf>(call, Scale::kSum); }
void segment_min(KernelCall& call) { sorted<MinOf>(call, Scale::kSum); }

// Sums, means and sums divided by the root of the number, of picked rows.
#define TANDEM_PICKED(NAME, SCALE)                                                             \
  void segment_picked_##NAME(KernelCall& call) { picked(call, SCALE, false); }                 \
  void segment_picked_##NAME##_counted(KernelCall& call) { picked(call, SCALE, true); }        \
  void segment_picked_##NAME##_grad(KernelCall& call) { picked_gradient(call, SCALE, false); } \
  void segment_picked_##NAME##_grad_v2(KernelCall& call) { picked_gradient(call, SCALE, true); }

TANDEM_PICKED(sum, Scale::kSum)
TANDEM_PICKED(mean, Scale::kMean)
TANDEM_PICKED(sqrt_n, Scale::kSqrtN)

}  // namespace tandem::cuda
