// ArgMax, ArgMin.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/axis_view.h"
#include "tandem/kernels/cpu/float16_rows.h"
#include "tandem/kernels/cpu/number_types.h"

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

// Only a block that holds something better is searched for its place.
template <bool kLargest, class T>
std::int64_t arg_row(const T* x, std::int64_t n) {
  using C = Compute<T>;
  constexpr std::int64_t kBlock = 512;
  [[maybe_unused]] C stage[kBlock];
  C best = worst<kLargest, C>();
  std::int64_t place = 0;
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t count = std::min(kBlock, n - i);
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

// `columns` neighbours at once, over rows `stride` elements apart.
template <bool kLargest, class T, class I, class O>
void arg_columns(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, O* out) {
  using C = Compute<T>;
  constexpr std::int64_t kBlock = 16;
  for (std::int64_t j = 0; j < columns; j += kBlock, x += kBlock, out += kBlock) {
    const std::int64_t count = std::min(kBlock, columns - j);
    C best[kBlock];
    I place[kBlock] = {};
    std::fill_n(best, kBlock, worst<kLargest, C>());
    const auto take = [&](const T* row, I r, std::int64_t n) {
      for (std::int64_t k = 0; k < n; ++k) {
        const C value = static_cast<C>(row[k]);
        const bool is_better = better<kLargest>(value, best[k]);
        best[k] = is_better ? value : best[k];
        place[k] = is_better ? r : place[k];
      }
    };
    for (std::int64_t r = 0; r < rows; ++r) {
      if (count == kBlock)
        take(x + r * stride, static_cast<I>(r), kBlock);
      else
        take(x + r * stride, static_cast<I>(r), count);
    }
    for (std::int64_t k = 0; k < count; ++k) out[k] = static_cast<O>(place[k]);
  }
}

template <bool kLargest, class T, class O>
void arg_as(IntraOpPool& pool, const AxisView& v, const T* x, O* out) {
  const double cost = 0.5 * static_cast<double>(v.size) + 5;
  pool.parallel_for(v.outer * v.inner, cost, [&](std::int64_t begin, std::int64_t end) {
    if (v.inner == 1) {
      for (std::int64_t i = begin; i < end; ++i)
        out[i] = static_cast<O>(arg_row<kLargest>(x + i * v.size, v.size));
      return;
    }
    while (begin < end) {
      const std::int64_t o = begin / v.inner;
      const std::int64_t j = begin % v.inner;
      const std::int64_t columns = std::min(v.inner - j, end - begin);
      const T* const first = x + o * v.size * v.inner + j;
      if (v.size <= std::numeric_limits<std::int32_t>::max()) {
        arg_columns<kLargest, T, std::int32_t>(first, v.size, v.inner, columns, out + begin);
      } else {
        arg_columns<kLargest, T, std::int64_t>(first, v.size, v.inner, columns, out + begin);
      }
      begin += columns;
    }
  });
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
  const auto run = [&]<class T>() {
    const T* const values = x.data<T>();
    switch (out.dtype()) {
      case DType::kInt32:
        return arg_as<kLargest>(c.intra_op(), view, values, out.data<std::int32_t>());
      case DType::kInt64:
        return arg_as<kLargest>(c.intra_op(), view, values, out.data<std::int64_t>());
      default:
        return arg_as<kLargest>(c.intra_op(), view, values,
                                out.data<std::uint16_t>());  // and int16
    }
  };
  if (x.dtype() == DType::kBool) return run.template operator()<std::uint8_t>();
  with_real(x.dtype(), run);
}

constexpr DTypeSet kOrderedTypes = kRealTypes | DTypeSet{DType::kBool};
const KernelRegistration kArgMax{
    {.op = "ArgMax", .types = {{"T", kOrderedTypes}}, .run = arg<true>}};
const KernelRegistration kArgMin{
    {.op = "ArgMin", .types = {{"T", kOrderedTypes}}, .run = arg<false>}};

}  // namespace
}  // namespace tandem::cpu
