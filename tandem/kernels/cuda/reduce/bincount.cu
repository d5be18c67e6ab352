// How often each number occurs, or what its occurrences weigh: Bincount and its kin. What is
// negative, beyond the last bin or outside of the tensor is found on the device and counts nowhere.
//
// Whole numbers are added up atomically, in whatever order; weights with a fraction are sorted by
// their bins first, and one thread adds up those of a bin, in their order.

#include <algorithm>

#include "tandem/kernels/cuda/array/targets.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"
#include "tandem/kernels/cuda/support/warp.h"

namespace tandem::cuda {
namespace {

// The row that value i counts in.
struct RowOf {
  enum class Kind { kFirst, kOfColumns, kOfSplits, kOfIndices };
  Kind kind = Kind::kFirst;
  std::int64_t rows = 1;
  std::int64_t columns = 1;             // of values, or of indices
  const std::int64_t* given = nullptr;  // splits or indices
  std::int64_t sizes[2] = {};           // that indices are less than
  bool one_row = true;                  // the result has no axis of rows

  // Negative if there is none.
  TANDEM_DEVICE std::int64_t operator()(std::int64_t i) const {
    if (kind == Kind::kFirst) return 0;
    if (kind == Kind::kOfColumns) return i / columns;
    if (kind == Kind::kOfIndices) {
      for (std::int64_t axis = 0; axis < columns; ++axis) {
        const std::int64_t index = given[i * columns + axis];
        if (index < 0 || index >= sizes[axis]) return -1;
      }
      return one_row ? 0 : given[i * columns];
    }
    // The last row that begins at i or before it.
    std::int64_t low = 0, high = rows;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (given[middle] <= i ? low : high) = middle;
    }
    return rows > 0 && given[low] <= i && i < given[low + 1] ? low : -1;
  }
};

template <class Value>
struct Bins {
  const Value* values;
  std::int64_t size;
  RowOf row_of;

  // Of value i; -1 if there is none.
  TANDEM_DEVICE std::int64_t operator()(std::int64_t i) const {
    const auto value = static_cast<std::int64_t>(values[i]);
    if (value < 0 || value >= size) return -1;
    const std::int64_t row = row_of(i);
    return row < 0 ? -1 : row * size + value;
  }
};

template <class T, class Value>
TANDEM_KERNEL mark_bins_kernel(Bins<Value> bins, T* y, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t bin = bins(i);
    if (bin >= 0) y[bin] = T(1);
  }
}

template <class T, class Value>
TANDEM_KERNEL count_bins_kernel(Bins<Value> bins, const T* weights, T* y, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t bin = bins(i);
    if (bin >= 0) atomic_add(&y[bin], weights ? weights[i] : T(1));
  }
}

template <class T>
TANDEM_KERNEL counts_kernel(const std::int64_t* counts, T* y, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    y[i] = static_cast<T>(counts[i]);
  }
}

template <class Value>
TANDEM_KERNEL find_bins_kernel(Bins<Value> bins, std::int64_t* found, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    found[i] = bins(i);
  }
}

// One thread adds up what is in a bin.
template <class T>
TANDEM_KERNEL weigh_bins_kernel(Targets in, const T* weights, T* y) {
  for (auto p = first_index<std::int64_t>(); p < in.size; p += index_step<std::int64_t>()) {
    const std::uint64_t bin = in.rows[p];
    if (bin == kLastKey || (p > 0 && in.rows[p - 1] == bin)) continue;
    T sum = T(0);
    for (std::int64_t q = p; q < in.size && in.rows[q] == bin; ++q) sum += weights[in.updates[q]];
    y[bin] = sum;
  }
}

template <class T, class Value>
void count(KernelCall& call, const Bins<Value>& bins, const TensorView& y, const T* weights,
           std::int64_t n, bool binary) {
  T* const out = y.as<T>();
  call.zero(out, static_cast<std::size_t>(y.count) * sizeof(T));
  if (n == 0) return;
  if (binary) {
    TANDEM_LAUNCH((mark_bins_kernel<T, Value>), shape_for(n), 0, bins, out, n);
  } else if constexpr (std::is_integral_v<T>) {
    TANDEM_LAUNCH((count_bins_kernel<T, Value>), shape_for(n), 0, bins, weights, out, n);
  } else if (weights) {
    TensorView found;
    found.type = Type::kInt64;
    found.sizes = {n};
    found.count = n;
    found.data = call.scratch(static_cast<std::size_t>(n) * sizeof(std::int64_t));
    TANDEM_LAUNCH(find_bins_kernel<Value>, shape_for(n), 0, bins, found.as<std::int64_t>(), n);
    TANDEM_LAUNCH(weigh_bins_kernel<T>, shape_for(n), 0, row_targets(call, found, y.count), weights,
                  out);
  } else {
    const std::size_t bytes = static_cast<std::size_t>(y.count) * sizeof(std::int64_t);
    auto* const counts = static_cast<std::int64_t*>(call.scratch(bytes));
    call.zero(counts, bytes);
    const std::int64_t* const none = nullptr;
    TANDEM_LAUNCH((count_bins_kernel<std::int64_t, Value>), shape_for(n), 0, bins, none, counts, n);
    TANDEM_LAUNCH(counts_kernel<T>, shape_for(y.count), 0, counts, out, y.count);
  }
}

template <class F>
void visit_counts(Type type, F&& f) {
  if (type == Type::kFloat) return f(Tag<float>());
  if (type == Type::kDouble) return f(Tag<double>());
  visit_index(type, f);
}

// Where an op has its inputs; `make_row_of` checks what else there is, and may refuse.
template <class MakeRowOf>
void bincount(KernelCall& call, int values_input, int size_input, bool binary,
              MakeRowOf make_row_of) {
  const TensorView values = call.input(values_input), weights = call.input(size_input + 1);
  const std::int64_t size = call.input(size_input).host_scalar("size");
  if (size < 0) refuse("size (" + std::to_string(size) + ") must be non-negative");
  if (weights.count != 0 && weights.sizes != values.sizes) {
    refuse(
        "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts "
        "as all weights equal to 1.");
  }
  const RowOf row_of = make_row_of(values);
  Sizes sizes{row_of.rows, size};
  if (row_of.one_row) sizes = {size};
  const TensorView y = call.allocate_output(0, sizes);
  if (y.count == 0) return;
  visit_counts(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    visit_index(values.type, [&](auto value_tag) {
      using Value = typename decltype(value_tag)::type;
      count<T, Value>(call, {values.as<Value>(), size, row_of}, y,
                      weights.count == 0 ? nullptr : weights.as<T>(), values.count, binary);
    });
  });
}

}  // namespace

void reduce_bincount(KernelCall& call) {
  bincount(call, 0, 1, false, [](const TensorView&) { return RowOf{}; });
}

void reduce_dense_bincount(KernelCall& call) {
  bincount(call, 0, 1, call.attr_bool("binary_output"), [](const TensorView& values) {
    if (values.rank() > 2) {
      refuse("Shape must be at most rank 2 but is rank " + std::to_string(values.rank()));
    }
    RowOf row_of;
    if (values.rank() < 2) return row_of;
    row_of.kind = RowOf::Kind::kOfColumns;
    row_of.one_row = false;
    row_of.rows = values.sizes[0];
    row_of.columns = values.sizes[1];
    return row_of;
  });
}

void reduce_ragged_bincount(KernelCall& call) {
  bincount(call, 1, 2, call.attr_bool("binary_output"), [&](const TensorView&) {
    const TensorView splits = call.input(0);
    if (splits.rank() != 1 || splits.count < 1) refuse("Splits must be non-empty");
    RowOf row_of;
    row_of.kind = RowOf::Kind::kOfSplits;
    row_of.one_row = false;
    row_of.rows = splits.count - 1;
    row_of.given = splits.as<std::int64_t>();
    return row_of;
  });
}

void reduce_sparse_bincount(KernelCall& call) {
  bincount(call, 1, 3, call.attr_bool("binary_output"), [&](const TensorView& values) {
    const TensorView indices = call.input(0);
    const Sizes dims = call.input(2).host_vector("dense_shape");
    if (indices.rank() != 2 || values.rank() != 1 || indices.sizes[0] != values.count ||
        indices.sizes[1] != static_cast<std::int64_t>(dims.size())) {
      refuse("indices, values and dense_shape do not make a sparse tensor.");
    }
    if (dims.size() != 1 && dims.size() != 2) {
      refuse("The sparse tensor must have 1 or 2 axes but has " + std::to_string(dims.size()) +
             ".");
    }
    RowOf row_of;
    row_of.kind = RowOf::Kind::kOfIndices;
    row_of.columns = indices.sizes[1];
    row_of.given = indices.as<std::int64_t>();
    std::copy(dims.begin(), dims.end(), row_of.sizes);
    if (dims.size() == 1) return row_of;
    if (dims[0] < 0) refuse("dense_shape[0] = " + std::to_string(dims[0]) + " is negative.");
    row_of.one_row = false;
    row_of.rows = dims[0];
    return row_of;
  });
}

}  // namespace tandem::cuda
