// Elements found by their values: Where, Unique, TopK, InvertPermutation.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/int_input.h"
#include "tandem/kernels/cpu/number_types.h"
#include "tandem/kernels/cpu/type_switch.h"

namespace tandem::cpu {
namespace {

// ---- Where ----

template <class T>
bool is_set(T value) {
  if constexpr (is_small_float<T>) {
    return static_cast<float>(value) != 0.0f;
  } else {
    return value != T(0);
  }
}

template <class T>
void where_of(KernelContext& c) {
  const Array& x = c.input(0);
  const T* data = x.data<T>();
  const std::int64_t n = x.num_elements();
  const int rank = x.rank();
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) count += is_set(data[i]);
  Array& out = c.allocate_output(0, Shape{count, rank});
  std::int64_t* to = out.data<std::int64_t>();
  std::int64_t index[Shape::kMaxRank] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    if (is_set(data[i])) {
      for (int k = 0; k < rank; ++k) *to++ = index[k];
    }
    for (int k = rank - 1; k >= 0; --k) {
      if (++index[k] < x.shape()[k]) break;
      index[k] = 0;
    }
  }
}

void where(KernelContext& c) {
  const int rank = c.input(0).rank();
  if (rank < 1 || rank > 8) throw InvalidArgumentError(cat("Unhandled input dimensions: ", rank));
  const DType dtype = c.input(0).dtype();
  if (dtype == DType::kBool) return where_of<bool>(c);
  number_switch(dtype, c.op().name, [&]<class T>() { where_of<T>(c); });
}

// ---- Unique ----

// What equal elements have in common: a few types that hold the values of all others.
template <class T>
struct KeyOf {
  using type = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
};
template <>
struct KeyOf<std::string> {
  using type = std::string;
};

void put_index(Array& out, std::int64_t i, std::int64_t value) {
  switch (out.dtype()) {
    case DType::kInt16: out.data<std::int16_t>()[i] = static_cast<std::int16_t>(value); break;
    case DType::kInt32: out.data<std::int32_t>()[i] = static_cast<std::int32_t>(value); break;
    default: out.data<std::int64_t>()[i] = value;
  }
}

// idx, and the place where each value is first and how often it comes.
template <class Key>
class Occurrences {
 public:
  explicit Occurrences(Array& idx) : idx_(idx) {}
  void add(Key key) {
    const std::int64_t i = next_++;
    const auto [at, fresh] =
        places_.emplace(std::move(key), static_cast<std::int64_t>(firsts.size()));
    if (fresh) {
      firsts.push_back(i);
      counts.push_back(0);
    }
    ++counts[static_cast<std::size_t>(at->second)];
    put_index(idx_, i, at->second);
  }

  std::vector<std::int64_t> firsts;
  std::vector<std::int64_t> counts;

 private:
  Array& idx_;
  std::int64_t next_ = 0;
  std::unordered_map<Key, std::int64_t> places_;
};

template <class T>
void unique_of(KernelContext& c) {
  using Key = typename KeyOf<T>::type;
  const Array& x = c.input(0);
  Occurrences<Key> found(c.allocate_output(1, x.shape()));
  for (const T& value : x.values<T>()) {
    if constexpr (std::is_same_v<T, Key>) {
      found.add(value);
    } else {
      found.add(static_cast<Key>(widen(value)));
    }
  }
  const Shape shape{static_cast<std::int64_t>(found.firsts.size())};
  T* y = c.allocate_output(0, shape).data<T>();
  for (const std::int64_t first : found.firsts) *y++ = x.data<T>()[first];
  if (c.num_outputs() < 3) return;
  Array& count = c.allocate_output(2, shape);
  for (std::size_t k = 0; k < found.counts.size(); ++k)
    put_index(count, static_cast<std::int64_t>(k), found.counts[k]);
}

void unique(KernelContext& c) {
  const Array& x = c.input(0);
  if (x.rank() != 1) throw InvalidArgumentError("unique expects a 1D vector.");
  if (c.output_dtype(1) == DType::kInt32 && x.num_elements() > INT32_MAX) {
    throw InvalidArgumentError(cat("unique does not support input of ", x.num_elements(),
                                   " elements with out_idx int32: use int64."));
  }
  if (x.dtype() == DType::kBool) return unique_of<bool>(c);
  if (x.dtype() == DType::kString) return unique_of<std::string>(c);
  real_switch(x.dtype(), c.op().name, [&]<class T>() { unique_of<T>(c); });
}

// ---- TopK ----

// The k best places of a row of n, best first, and the values there; of equal values the first
// comes first, NaNs come last. `order` holds n places.
template <class T>
void top_of_row(const void* input, std::int64_t n, std::int64_t k, void* output,
                std::int64_t* order) {
  const T* row = static_cast<const T*>(input);
  T* values = static_cast<T*>(output);
  if (k == 1) {
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < n; ++i) {
      if (less(row[best], row[i]) || (!(row[best] == row[best]) && row[i] == row[i])) best = i;
    }
    values[0] = row[best];
    order[0] = best;
    return;
  }
  std::iota(order, order + n, std::int64_t{0});
  const auto before = [row](std::int64_t a, std::int64_t b) {
    if (less(row[b], row[a])) return true;
    if (less(row[a], row[b])) return false;
    const bool a_nan = !(row[a] == row[a]);
    const bool b_nan = !(row[b] == row[b]);
    return a_nan != b_nan ? b_nan : a < b;
  };
  if (k == n) {
    std::sort(order, order + n, before);
  } else {
    std::partial_sort(order, order + k, order + n, before);
  }
  for (std::int64_t i = 0; i < k; ++i) values[i] = row[order[i]];
}

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
  void (*top)(const void*, std::int64_t, std::int64_t, void*, std::int64_t*) = nullptr;
  real_switch(x.dtype(), c.op().name, [&]<class T>() { top = top_of_row<T>; });
  const auto* from = static_cast<const std::byte*>(x.raw_data());
  auto* to = static_cast<std::byte*>(values.raw_data());
  const auto bytes = static_cast<std::int64_t>(dtype_size(x.dtype()));
  const double cost = static_cast<double>(n) * (k == 1 ? 1.0 : 4.0);
  c.intra_op().parallel_for(x.num_elements() / n, cost, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(k == 1 ? 1 : n));
    for (std::int64_t r = begin; r < end; ++r) {
      top(from + r * n * bytes, n, k, to + r * k * bytes, order.data());
      for (std::int64_t i = 0; i < k; ++i) {
        put_index(indices, r * k + i, order[static_cast<std::size_t>(i)]);
      }
    }
  });
}

void top_k(KernelContext& c) { top_k_of(c, c.attr<std::int64_t>("k")); }
void top_k_v2(KernelContext& c) { top_k_of(c, scalar_int_input(c, 1, "k")); }

// ---- InvertPermutation ----

void invert_permutation(KernelContext& c) {
  const Array& x = c.input(0);
  if (x.rank() != 1) {
    throw InvalidArgumentError(
        cat("invert_permutation expects a 1D vector, got shape ", x.shape()));
  }
  const std::int64_t n = x.num_elements();
  const IntInput values(x, "x");
  Array& out = c.allocate_output(0, x.shape());
  for (std::int64_t i = 0; i < n; ++i) put_index(out, i, -1);
  const IntInput filled(out, "y");
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t at = values[i];
    if (at < 0 || at >= n) throw InvalidArgumentError(cat(at, " is not between 0 and ", n));
    if (filled[at] != -1) throw InvalidArgumentError(cat(at, " is duplicated in the input."));
    put_index(out, at, i);
  }
}

const KernelRegistration kWhere{{.op = "Where", .run = where}};
const KernelRegistration kUnique{{.op = "Unique", .run = unique}};
const KernelRegistration kUniqueWithCounts{{.op = "UniqueWithCounts", .run = unique}};
const KernelRegistration kTopK{{.op = "TopK", .types = {{"T", kRealTypes}}, .run = top_k}};
const KernelRegistration kTopKV2{{.op = "TopKV2", .types = {{"T", kRealTypes}}, .run = top_k_v2}};
const KernelRegistration kInvertPermutation{{.op = "InvertPermutation", .run = invert_permutation}};

}  // namespace
}  // namespace tandem::cpu
