// Cumsum, Cumprod.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/axis_view.h"
#include "tandem/kernels/cpu/float16_rows.h"
#include "tandem/kernels/cpu/number_types.h"

namespace tandem::cpu {
namespace {

template <bool kProduct, class C>
inline C accumulate(C a, C b) {
  if constexpr (!kProduct)
    return static_cast<C>(a + b);
  else if constexpr (std::is_integral_v<C>)
    return static_cast<C>(1u * a * b);  // no int that could overflow
  else
    return a * b;
}

template <class T, class C>
inline T stored(C value) {
  if constexpr (is_float16<T>)
    return T(value);
  else
    return value;
}

// One row of n elements; every element is read before it is written.
template <bool kProduct, class T>
void scan_row(const T* x, T* out, std::int64_t n, std::int64_t step, bool exclusive) {
  using C = Compute<T>;
  C total(kProduct ? 1 : 0);
  for (std::int64_t i = 0; i < n; ++i, x += step, out += step) {
    const C before = total;
    total = accumulate<kProduct>(total, static_cast<C>(*x));
    *out = stored<T>(exclusive ? before : total);
  }
}

// Up to kColumns neighbours at once, over n rows `step` elements apart.
constexpr std::int64_t kColumns = 64;
template <bool kProduct, class T>
void scan_columns(const T* x, T* out, std::int64_t n, std::int64_t step, std::int64_t columns,
                  bool exclusive) {
  using C = Compute<T>;
  C total[kColumns];
  C before[kColumns];
  std::fill_n(total, kColumns, C(kProduct ? 1 : 0));
  const auto add_row = [&](std::int64_t width) {
    for (std::int64_t k = 0; k < width; ++k) {
      before[k] = total[k];
      total[k] = accumulate<kProduct>(total[k], static_cast<C>(x[k]));
    }
    const C* const result = exclusive ? before : total;
    for (std::int64_t k = 0; k < width; ++k) out[k] = stored<T>(result[k]);
  };
  for (std::int64_t i = 0; i < n; ++i, x += step, out += step) {
    if (columns == kColumns)
      add_row(kColumns);  // a constant count makes vectors
    else
      add_row(columns);
  }
}

template <bool kProduct, class T>
void scan_as(IntraOpPool& pool, const AxisView& v, const T* x, T* out, bool exclusive,
             bool reverse) {
  const std::int64_t step = reverse ? -v.inner : v.inner;
  const std::int64_t first = reverse ? (v.size - 1) * v.inner : 0;
  const std::int64_t chunks = (v.inner + kColumns - 1) / kColumns;
  const double cost = static_cast<double>(v.size * std::min(v.inner, kColumns));
  pool.parallel_for(v.outer * chunks, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t column = t % chunks * kColumns;
      const std::int64_t at = t / chunks * v.size * v.inner + first + column;
      if (v.inner == 1)
        scan_row<kProduct>(x + at, out + at, v.size, step, exclusive);
      else
        scan_columns<kProduct>(x + at, out + at, v.size, step, std::min(kColumns, v.inner - column),
                               exclusive);
    }
  });
}

template <class T, bool = std::is_integral_v<T>>
struct Unsigned {
  using type = T;
};
template <class T>
struct Unsigned<T, true> {
  using type = std::make_unsigned_t<T>;
};

template <bool kProduct>
void scan(KernelContext& c) {
  const Array& x = c.input(0);
  if (c.input(1).rank() != 0) {
    throw InvalidArgumentError(cat("ScanOp: axis must be a scalar, not ", c.input(1).shape()));
  }
  const std::int64_t wanted = axis_value(c.input(1));
  const int rank = x.rank();
  if (wanted < -rank || wanted >= rank) {
    throw InvalidArgumentError(
        cat("ScanOp: Expected scan axis in the range [", -rank, ", ", rank, "), but got ", wanted));
  }
  Array& out = c.reuse_or_allocate_output(0, 0, x.shape());
  if (x.num_elements() == 0) return;
  const AxisView view(x.shape(), static_cast<int>(wanted < 0 ? wanted + rank : wanted));
  const bool exclusive = c.attr<bool>("exclusive");
  const bool reverse = c.attr<bool>("reverse");
  with_number(x.dtype(), [&]<class T>() {
    using S = typename Unsigned<T>::type;  // the same bits, and overflow is defined
    scan_as<kProduct>(c.intra_op(), view, x.data<S>(), out.data<S>(), exclusive, reverse);
  });
}

const KernelRegistration kCumsum{
    {.op = "Cumsum", .types = {{"T", kNumberTypes}}, .run = scan<false>}};
const KernelRegistration kCumprod{
    {.op = "Cumprod", .types = {{"T", kNumberTypes}}, .run = scan<true>}};

}  // namespace
}  // namespace tandem::cpu
