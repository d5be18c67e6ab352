// ArgMax, ArgMin.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/axis_view.h"
#include "tandem/kernels/cpu/elementwise/float16_rows.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

// NaN is never better.
template <bool kLargest, class C>
bool better(C a, C b) {
  return kLargest ? a > b : a < b;
}

template <bool kLargest, class C>
C worst() {
  using L = std::numeric_limits<C>;
  if constexpr (L::has_infinity)
    return kLargest ? -L::infinity() : L::infinity();
  else
    return kLargest ? L::lowest() : L::max();
}

// The best of n values.
template <bool kLargest, class C>
C best_of(const C* x, std::int64_t n) {
  constexpr int kLanes = 16;  // independent, which compilers turn into vectors
  if (n < kLanes) {
    C best = worst<kLargest, C>();
    for (std::int64_t i = 0; i < n; ++i) best = better<kLargest>(x[i], best) ? x[i] : best;
    return best;
  }
  C best[kLanes];
  std::fill_n(best, kLanes, worst<kLargest, C>());
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int k = 0; k < kLanes; ++k)
      best[k] = better<kLargest>(x[i + k], best[k]) ? x[i + k] : best[k];
  }
  for (; i < n; ++i) best[0] = better<kLargest>(x[i], best[0]) ? x[i] : best[0];
  for (int k = 1; k < kLanes; ++k) best[0] = better<kLargest>(best[k], best[0]) ? best[k] : best[0];
  return best[0];
}

constexpr std::int64_t kBlock = 16;  // results at once

// Results `first` + places into out from `at` on; negative places change nothing.
template <class I>
void put(const I* places, std::int64_t n, std::int64_t first, Array& out, std::int64_t at) {
  const auto put_as = [&]<class O>(O* to) {
    if (first == 0 && n == kBlock) {
      for (std::int64_t k = 0; k < kBlock; ++k) to[k] = static_cast<O>(places[k]);
      return;
    }
    for (std::int64_t k = 0; k < n; ++k) {
      if (places[k] >= 0) to[k] = static_cast<O>(first + places[k]);
    }
  };
  switch (out.dtype()) {
    case DType::kInt32: return put_as(out.data<std::int32_t>() + at);
    case DType::kInt64: return put_as(out.data<std::int64_t>() + at);
    default: return put_as(out.data<std::uint16_t>() + at);  // and int16
  }
}

// Only a block that holds something better is searched for its place.
template <bool kLargest, class T>
std::int64_t arg_row(const T* x, std::int64_t n) {
  using C = Compute<T>;
  constexpr std::int64_t kStage = 512;
  [[maybe_unused]] C stage[kStage];
  C best = worst<kLargest, C>();
  std::int64_t place = 0;
  for (std::int64_t i = 0; i < n; i += kStage) {
    const std::int64_t count = std::min(kStage, n - i);
    const C* block;
    if constexpr (is_float16<T>) {
      to_floats(x + i, stage, count);
      block = stage;
    } else {
      block = x + i;
    }
    const C candidate = best_of<kLargest>(block, count);
    if (!better<kLargest>(candidate, best)) continue;
    best = candidate;
    place = i + (std::find(block, block + count, best) - block);
  }
  return place;
}

// The results [begin, end) of a view. Places are counted in 32 bits, as wide as most values are: so
// many rows at a time.
template <bool kLargest, class T>
void arg_columns(const T* x, const AxisView& v, std::int64_t begin, std::int64_t end, Array& out) {
  using C = Compute<T>;
  constexpr std::int64_t kRows = std::numeric_limits<std::int32_t>::max();
  std::int64_t j = begin % v.inner;
  x += begin / v.inner * v.size * v.inner;
  while (begin < end) {
    const std::int64_t count = std::min({kBlock, v.inner - j, end - begin});
    C best[kBlock];
    std::fill_n(best, kBlock, worst<kLargest, C>());
    for (std::int64_t first = 0; first < v.size; first += kRows) {
      std::int32_t place[kBlock];
      std::fill_n(place, kBlock, first == 0 ? 0 : -1);
      const auto take = [&](const T* row, std::int32_t r, std::int64_t n) {
        for (std::int64_t k = 0; k < n; ++k) {
          const C value = static_cast<C>(row[k]);
          const bool is_better = better<kLargest>(value, best[k]);
          best[k] = is_better ? value : best[k];
          place[k] = is_better ? r : place[k];
        }
      };
      const auto rows = static_cast<std::int32_t>(std::min(kRows, v.size - first));
      const T* row = x + first * v.inner + j;
      for (std::int32_t r = 0; r < rows; ++r, row += v.inner) {
        if (count == kBlock)
          take(row, r, kBlock);
        else
          take(row, r, count);
      }
      put(place, count, first, out, begin);
    }
    begin += count;
    j += count;
    if (j == v.inner) {
      j = 0;
      x += v.size * v.inner;
    }
  }
}

template <bool kLargest, class T>
void arg_rows(const T* x, const AxisView& v, std::int64_t begin, std::int64_t end, Array& out) {
  for (; begin < end; begin += kBlock) {
    std::int64_t place[kBlock];
    const std::int64_t count = std::min(kBlock, end - begin);
    for (std::int64_t k = 0; k < count; ++k)
      place[k] = arg_row<kLargest>(x + (begin + k) * v.size, v.size);
    put(place, count, 0, out, begin);
  }
}

using Find = void (*)(const void* x, const AxisView& v, std::int64_t begin, std::int64_t end,
                      Array& out);

template <bool kLargest>
Find find_of(DType dtype) {
  const auto of = []<class T>() -> Find {
    return [](const void* x, const AxisView& v, std::int64_t begin, std::int64_t end, Array& out) {
      const auto find = v.inner == 1 ? arg_rows<kLargest, T> : arg_columns<kLargest, T>;
      find(static_cast<const T*>(x), v, begin, end, out);
    };
  };
  return dtype == DType::kBool ? of.template operator()<std::uint8_t>() : with_real(dtype, of);
}

template <bool kLargest>
void arg(KernelContext& c) {
  const Array& x = c.input(0);
  if (c.input(1).rank() != 0) {
    throw InvalidArgumentError(
        cat("dim must be a scalar, but received tensor of shape: ", c.input(1).shape()));
  }
  const std::int64_t wanted = axis_value(c.input(1));
  const int rank = x.rank();
  if (wanted < -rank || wanted >= rank) {
    throw InvalidArgumentError(
        cat("Expected dimension in the range [", -rank, ", ", rank, "), but got ", wanted));
  }
  const int axis = static_cast<int>(wanted < 0 ? wanted + rank : wanted);
  if (x.shape()[axis] == 0) {
    throw InvalidArgumentError(cat("Reduction axis ", axis, " is empty in shape ", x.shape()));
  }
  Shape shape;
  for (int i = 0; i < rank; ++i) {
    if (i != axis) shape.add_dim(x.shape()[i]);
  }
  Array& out = c.allocate_output(0, shape);
  const AxisView view(x.shape(), axis);
  const Find find = find_of<kLargest>(x.dtype());
  const double cost = 0.5 * static_cast<double>(view.size) + 5;
  c.intra_op().parallel_for(
      view.outer * view.inner, cost,
      [&](std::int64_t begin, std::int64_t end) { find(x.raw_data(), view, begin, end, out); });
}

constexpr DTypeSet kOrderedTypes = kRealTypes | DTypeSet{DType::kBool};
const KernelRegistration kArgMax{
    {.op = "ArgMax", .types = {{"T", kOrderedTypes}}, .run = arg<true>}};
const KernelRegistration kArgMin{
    {.op = "ArgMin", .types = {{"T", kOrderedTypes}}, .run = arg<false>}};

}  // namespace
}  // namespace tandem::cpu
