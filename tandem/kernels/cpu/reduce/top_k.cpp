// The greatest elements of rows: TopK.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/put_indices.h"
#include "tandem/kernels/cpu/array/strided_copy.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/reduce/top_k_nan.h"
#include "tandem/kernels/cpu/support/arithmetic.h"
#include "tandem/kernels/cpu/support/elements.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

// An unsigned number of the size of T (4 bytes at least) that is the smaller the greater the value
// is: equal for zeros of both signs. Rows with a NaN go another way.
template <class T>
auto rank_of(T element) {
  const auto value = widen(element);
  using V = std::remove_const_t<decltype(value)>;
  using U = std::conditional_t<sizeof(V) == 8, std::uint64_t, std::uint32_t>;
  constexpr U kSign = U(1) << (8 * sizeof(U) - 1);
  if constexpr (std::is_unsigned_v<V>) {
    return static_cast<U>(~U(value));
  } else if constexpr (std::is_integral_v<V>) {
    return static_cast<U>(~(static_cast<U>(value) ^ kSign));
  } else {
    const U bits = value == 0 ? U(0) : std::bit_cast<U>(value);
    return bits & kSign ? bits : static_cast<U>(~(bits | kSign));
  }
}

// An element of a row: U holds ranks and places.
template <class U>
struct Ranked {
  U rank, place;
  bool operator<(const Ranked& other) const {
    return rank != other.rank ? rank < other.rank : place < other.place;
  }
};

// The loops over elements, all that is compiled for each type.
struct Loops {
  void (*narrow)(const void* row, std::int64_t n, Ranked<std::uint32_t>* to);
  void (*wide)(const void* row, std::int64_t n, Ranked<std::uint64_t>* to);
  std::int64_t (*best)(const void* row, std::int64_t n);  // The place of the first of the greatest.
  // Whether the row holds a NaN; its elements are then in `to`.
  bool (*widen_nans)(const void* row, std::int64_t n, std::vector<double>& to);
};

template <class T>
bool widen_nans(const void* row, std::int64_t n, std::vector<double>& to) {
  if constexpr (std::is_integral_v<std::remove_const_t<decltype(widen(T()))>>) {
    return false;
  } else {
    const T* from = static_cast<const T*>(row);
    int nans = 0;
    for (std::int64_t i = 0; i < n; ++i) nans |= from[i] == from[i] ? 0 : 1;
    if (nans == 0) return false;
    to.resize(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i)
      to[static_cast<std::size_t>(i)] = static_cast<double>(widen(from[i]));
    return true;
  }
}

template <class T, class U>
void ranks_of(const void* row, std::int64_t n, Ranked<U>* to) {
  const T* from = static_cast<const T*>(row);
  for (std::int64_t i = 0; i < n; ++i)
    to[i] = {static_cast<U>(rank_of(from[i])), static_cast<U>(i)};
}

template <class T>
std::int64_t best_of(const void* input, std::int64_t n) {
  const T* row = static_cast<const T*>(input);
  std::int64_t best = 0;
  T most = row[0];
  // Most elements are not greater than all before them, which is seen of many at once.
  constexpr std::int64_t kRun = 32;
  for (std::int64_t i = 1; i < n; i += kRun) {
    const std::int64_t run = std::min(kRun, n - i);
    if (run == kRun) {
      int greater = 0;
      for (std::int64_t j = 0; j < kRun; ++j) greater |= less(most, row[i + j]) ? 1 : 0;
      if (greater == 0) continue;
    }
    for (std::int64_t j = i; j < i + run; ++j) {
      if (!less(most, row[j])) continue;
      most = row[j];
      best = j;
    }
  }
  return best;
}

// Sorts elements whose places rise, digit by digit of their ranks: no branch depends on them.
template <class U>
void sort_by_digits(std::vector<Ranked<U>>& all, std::vector<Ranked<U>>& other) {
  other.resize(all.size());
  for (unsigned shift = 0; shift < 8 * sizeof(U); shift += 8) {
    const auto digit = [shift](const Ranked<U>& e) { return e.rank >> shift & 255; };
    std::size_t places[256] = {};
    for (const Ranked<U>& e : all) ++places[digit(e)];
    if (places[digit(all[0])] == all.size()) continue;
    std::size_t before = 0;
    for (std::size_t& place : places) before += std::exchange(place, before);
    for (const Ranked<U>& e : all) other[places[digit(e)]++] = e;
    all.swap(other);
  }
}

// Finds the k greatest of rows of n.
template <class U>
class Order {
 public:
  // The places, best first; of equal values the first comes first.
  void find(void (*ranks)(const void*, std::int64_t, Ranked<U>*), const void* row, std::int64_t n,
            std::int64_t k, std::int64_t* to) {
    all_.resize(static_cast<std::size_t>(n));
    ranks(row, n, all_.data());
    const auto begin = all_.begin(), middle = begin + k;
    constexpr std::int64_t kMany = 128;  // are sorted by digits
    if (k == n && n >= kMany) {
      sort_by_digits(all_, other_);
    } else if (k < n / 16) {
      std::partial_sort(begin, middle, all_.end());
    } else {
      if (k < n) std::nth_element(begin, middle, all_.end());
      std::sort(begin, middle);
    }
    for (std::int64_t i = 0; i < k; ++i)
      to[i] = static_cast<std::int64_t>(all_[static_cast<std::size_t>(i)].place);
  }

 private:
  std::vector<Ranked<U>> all_, other_;
};

void top_k_of(KernelContext& c, std::int64_t k) {
  const Array& x = c.input(0);
  if (x.rank() < 1) throw InvalidArgumentError(cat("input must be >= 1-D, got shape ", x.shape()));
  if (k < 0) throw InvalidArgumentError(cat("Need k >= 0, got ", k));
  const std::int64_t n = x.shape()[x.rank() - 1];
  if (n < k) {
    throw InvalidArgumentError(cat("input must have at least k columns. Had ", n, ", needed ", k));
  }
  const DType index_type = c.output_dtype(1);
  const std::int64_t limit = index_type == DType::kInt16   ? INT16_MAX
                             : index_type == DType::kInt32 ? INT32_MAX
                                                           : INT64_MAX;
  if (n > limit)
    throw InvalidArgumentError(cat("Places in ", n, " columns do not fit into ", index_type, "."));
  Shape shape = x.shape();
  shape.set_dim(x.rank() - 1, k);
  Array& values = c.allocate_output(0, shape);
  Array& indices = c.allocate_output(1, shape);
  if (values.num_elements() == 0) return;
  Loops loops{};
  with_real(x.dtype(), [&]<class T>() {
    loops = {ranks_of<T, std::uint32_t>, ranks_of<T, std::uint64_t>, best_of<T>, widen_nans<T>};
  });
  const double cost = static_cast<double>(n) * (k == 1 ? 1.0 : 4.0);
  c.intra_op().parallel_for(x.num_elements() / n, cost, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(k));
    Order<std::uint32_t> narrow;
    Order<std::uint64_t> wide;
    std::vector<double> with_nans;
    const bool fits = dtype_size(x.dtype()) <= 4 && n <= UINT32_MAX;
    for (std::int64_t r = begin; r < end; ++r) {
      const auto* row = element_at(x.raw_data(), x.dtype(), r * n);
      if (loops.widen_nans(row, n, with_nans)) {
        const std::int64_t lanes = x.dtype() == DType::kDouble ? 4 : 8;  // of TensorFlow's AVX
        top_k_with_nans(with_nans, k, lanes, order.data());
      } else if (k == 1) {
        order[0] = loops.best(row, n);
      } else {
        if (fits) {
          narrow.find(loops.narrow, row, n, k, order.data());
        } else {
          wide.find(loops.wide, row, n, k, order.data());
        }
      }
      put_indices(indices, r * k, order.data(), k);
      with_element(x.dtype(), [&]<class T>() {
        const T* from = static_cast<const T*>(row);
        T* to = static_cast<T*>(values.raw_data()) + r * k;
        for (std::int64_t i = 0; i < k; ++i) to[i] = from[order[static_cast<std::size_t>(i)]];
      });
    }
  });
}

void top_k(KernelContext& c) { top_k_of(c, c.attr<std::int64_t>("k")); }
void top_k_v2(KernelContext& c) { top_k_of(c, scalar_int_input(c, 1, "k")); }

const KernelRegistration kTopK{{.op = "TopK", .types = {{"T", kRealTypes}}, .run = top_k}};
const KernelRegistration kTopKV2{{.op = "TopKV2", .types = {{"T", kRealTypes}}, .run = top_k_v2}};

}  // namespace
}  // namespace tandem::cpu
