// Elements found by their values: Where, Unique, TopK, InvertPermutation.

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/int_input.h"
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
  const DType dtype = c.input(0).dtype();
  if (dtype == DType::kBool) return where_of<bool>(c);
  number_switch(dtype, c.op().name, [&]<class T>() { where_of<T>(c); });
}

// ---- Unique ----

template <class T>
struct KeyOf {
  using type = T;
};
template <>
struct KeyOf<Half> {
  using type = float;
};
template <>
struct KeyOf<BFloat16> {
  using type = float;
};

void put_index(Array& out, std::int64_t i, std::int64_t value) {
  if (out.dtype() == DType::kInt64) {
    out.data<std::int64_t>()[i] = value;
  } else {
    out.data<std::int32_t>()[i] = static_cast<std::int32_t>(value);
  }
}

template <class T>
void unique_of(KernelContext& c) {
  using Key = typename KeyOf<T>::type;
  const Array& x = c.input(0);
  const std::int64_t n = x.num_elements();
  Array& idx = c.allocate_output(1, Shape{n});
  std::unordered_map<Key, std::int64_t> places;
  std::vector<std::int64_t> firsts;
  std::vector<std::int64_t> counts;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto [at, fresh] =
        places.emplace(static_cast<Key>(x.data<T>()[i]), static_cast<std::int64_t>(firsts.size()));
    if (fresh) {
      firsts.push_back(i);
      counts.push_back(0);
    }
    ++counts[static_cast<std::size_t>(at->second)];
    put_index(idx, i, at->second);
  }
  const Shape shape{static_cast<std::int64_t>(firsts.size())};
  Array& y = c.allocate_output(0, shape);
  for (std::size_t k = 0; k < firsts.size(); ++k) y.data<T>()[k] = x.data<T>()[firsts[k]];
  if (c.num_outputs() < 3) return;
  Array& count = c.allocate_output(2, shape);
  for (std::size_t k = 0; k < counts.size(); ++k)
    put_index(count, static_cast<std::int64_t>(k), counts[k]);
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

// The k best places of a row of n, best first; of equal values the first comes first, NaNs come
// last.
template <class T, class Index>
void top_of_row(const T* row, std::int64_t n, std::int64_t k, T* values, Index* indices,
                std::vector<std::int64_t>& order) {
  if (k == 1) {
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < n; ++i) {
      if (less(row[best], row[i]) || (!(row[best] == row[best]) && row[i] == row[i])) best = i;
    }
    values[0] = row[best];
    indices[0] = static_cast<Index>(best);
    return;
  }
  order.resize(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto before = [row](std::int64_t a, std::int64_t b) {
    if (less(row[b], row[a])) return true;
    if (less(row[a], row[b])) return false;
    const bool a_nan = !(row[a] == row[a]);
    const bool b_nan = !(row[b] == row[b]);
    return a_nan != b_nan ? b_nan : a < b;
  };
  if (k == n) {
    std::sort(order.begin(), order.end(), before);
  } else {
    std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
  }
  for (std::int64_t i = 0; i < k; ++i) {
    values[i] = row[order[static_cast<std::size_t>(i)]];
    indices[i] = static_cast<Index>(order[static_cast<std::size_t>(i)]);
  }
}

template <class T, class Index>
void top_rows(KernelContext& c, const Array& x, std::int64_t k, Array& values, Array& indices) {
  const std::int64_t n = x.shape()[x.rank() - 1];
  if (values.num_elements() == 0) return;
  const std::int64_t rows = x.num_elements() / n;
  const double cost = static_cast<double>(n) * (k == 1 ? 1.0 : 4.0);
  c.intra_op().parallel_for(rows, cost, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int64_t> order;
    for (std::int64_t r = begin; r < end; ++r) {
      top_of_row(x.data<T>() + r * n, n, k, values.data<T>() + r * k, indices.data<Index>() + r * k,
                 order);
    }
  });
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
  real_switch(x.dtype(), c.op().name, [&]<class T>() {
    switch (index_type) {
      case DType::kInt16: return top_rows<T, std::int16_t>(c, x, k, values, indices);
      case DType::kInt32: return top_rows<T, std::int32_t>(c, x, k, values, indices);
      default: return top_rows<T, std::int64_t>(c, x, k, values, indices);
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
