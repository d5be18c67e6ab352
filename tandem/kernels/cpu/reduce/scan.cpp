// Cumsum, Cumprod, CumulativeLogsumexp.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/axis_view.h"
#include "tandem/kernels/cpu/elementwise/float16_rows.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

enum class Scan { kSum, kProduct, kLogSumExp };

// What an empty row has.
template <Scan kScan, class C>
C neutral() {
  if constexpr (kScan == Scan::kLogSumExp)
    return -std::numeric_limits<C>::infinity();
  else
    return C(kScan == Scan::kProduct ? 1 : 0);
}

template <class C>
C log_sum_exp(C a, C b) {
  if (a != a || b != b) return a + b;
  const C large = std::max(a, b);
  const C small = std::min(a, b);
  if (std::isinf(small) || std::isinf(large)) return large;
  return large + std::log1p(std::exp(small - large));
}

template <Scan kScan, class C>
inline C accumulate(C a, C b) {
  if constexpr (kScan == Scan::kLogSumExp)
    return log_sum_exp(a, b);
  else if constexpr (kScan == Scan::kSum)
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
template <Scan kScan, class T>
void scan_row(const T* x, T* out, std::int64_t n, std::int64_t step, bool exclusive) {
  using C = Compute<T>;
  C total = neutral<kScan, C>();
  for (std::int64_t i = 0; i < n; ++i, x += step, out += step) {
    const C before = total;
    total = accumulate<kScan>(total, static_cast<C>(*x));
    *out = stored<T>(exclusive ? before : total);
  }
}

// Up to kColumns neighbours at once, over n rows `step` elements apart.
constexpr std::int64_t kColumns = 64;
template <Scan kScan, class T>
void scan_columns(const T* x, T* out, std::int64_t n, std::int64_t step, std::int64_t columns,
                  bool exclusive) {
  using C = Compute<T>;
  C total[kColumns];
  C before[kColumns];
  std::fill_n(total, kColumns, neutral<kScan, C>());
  const auto add_row = [&](std::int64_t width) {
    for (std::int64_t k = 0; k < width; ++k) {
      before[k] = total[k];
      total[k] = accumulate<kScan>(total[k], static_cast<C>(x[k]));
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

template <Scan kScan, class T>
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
        scan_row<kScan>(x + at, out + at, v.size, step, exclusive);
      else
        scan_columns<kScan>(x + at, out + at, v.size, step, std::min(kColumns, v.inner - column),
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

template <Scan kScan>
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
  const auto run = [&]<class T>() {
    using S = typename Unsigned<T>::type;  // the same bits, and overflow is defined
    scan_as<kScan>(c.intra_op(), view, x.data<S>(), out.data<S>(), exclusive, reverse);
  };
  if constexpr (kScan == Scan::kLogSumExp)
    with_floating(x.dtype(), run);
  else
    with_number(x.dtype(), run);
}

const KernelRegistration kCumsum{
    {.op = "Cumsum", .types = {{"T", kNumberTypes}}, .run = scan<Scan::kSum>}};
const KernelRegistration kCumprod{
    {.op = "Cumprod", .types = {{"T", kNumberTypes}}, .run = scan<Scan::kProduct>}};
const KernelRegistration kLogSumExp{
    {.op = "CumulativeLogsumexp", .types = {{"T", kFloatTypes}}, .run = scan<Scan::kLogSumExp>}};

}  // namespace
}  // namespace tandem::cpu
