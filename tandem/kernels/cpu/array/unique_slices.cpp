// Slices and elements compared as wholes: UniqueV2, UniqueWithCountsV2, ListDiff.

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/axis_view.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

template <class T>
using Key = std::conditional_t<is_float16<T>, float, T>;

template <class F>
void comparable_switch(DType dtype, F&& f) {
  if (dtype == DType::kBool) return f.template operator()<bool>();
  if (dtype == DType::kString) return f.template operator()<std::string>();
  with_real(dtype, f);
}

void put_index(Array& out, std::int64_t i, std::int64_t value) {
  if (out.dtype() == DType::kInt64) {
    out.data<std::int64_t>()[i] = value;
  } else {
    out.data<std::int32_t>()[i] = static_cast<std::int32_t>(value);
  }
}

void check_index_type(DType dtype, std::int64_t n) {
  if (dtype == DType::kInt32 && n > INT32_MAX) {
    throw InvalidArgumentError(
        cat("An input of ", n, " elements needs int64 indices: use out_idx int64."));
  }
}

// The slices of x along an axis, as keys of a hash table.
template <class T>
struct Slices {
  const T* data;
  AxisView view;

  template <class F>
  bool all(std::int64_t i, F f) const {
    for (std::int64_t o = 0; o < view.outer; ++o) {
      const std::int64_t at = (o * view.size + i) * view.inner;
      for (std::int64_t k = 0; k < view.inner; ++k) {
        if (!f(at + k)) return false;
      }
    }
    return true;
  }
  std::size_t hash(std::int64_t i) const {
    std::size_t h = 0;
    all(i, [&](std::int64_t at) {
      h = h * 1099511628211u + std::hash<Key<T>>{}(static_cast<Key<T>>(data[at]));
      return true;
    });
    return h;
  }
  bool equal(std::int64_t i, std::int64_t j) const {
    const std::int64_t step = (j - i) * view.inner;
    return all(i, [&](std::int64_t at) {
      return static_cast<Key<T>>(data[at]) == static_cast<Key<T>>(data[at + step]);
    });
  }
};

template <class T>
void unique_of(KernelContext& c, int axis) {
  const Array& x = c.input(0);
  const Slices<T> slices{x.data<T>(), AxisView(x.shape(), axis)};
  const std::int64_t n = slices.view.size;
  const auto hash = [&](std::int64_t i) { return slices.hash(i); };
  const auto equal = [&](std::int64_t i, std::int64_t j) { return slices.equal(i, j); };
  std::unordered_map<std::int64_t, std::int64_t, decltype(hash), decltype(equal)> places(16, hash,
                                                                                         equal);
  std::vector<std::int64_t> firsts;
  std::vector<std::int64_t> counts;
  Array& idx = c.allocate_output(1, Shape{n});
  for (std::int64_t i = 0; i < n; ++i) {
    const auto [at, fresh] = places.emplace(i, static_cast<std::int64_t>(firsts.size()));
    if (fresh) {
      firsts.push_back(i);
      counts.push_back(0);
    }
    ++counts[static_cast<std::size_t>(at->second)];
    put_index(idx, i, at->second);
  }
  const auto found = static_cast<std::int64_t>(firsts.size());
  Shape shape = x.shape();
  shape.set_dim(axis, found);
  T* to = c.allocate_output(0, shape).template data<T>();
  for (std::int64_t o = 0; o < slices.view.outer; ++o) {
    for (const std::int64_t i : firsts) {
      const T* from = slices.data + (o * n + i) * slices.view.inner;
      to = std::copy(from, from + slices.view.inner, to);
    }
  }
  if (c.num_outputs() < 3) return;
  Array& count = c.allocate_output(2, Shape{found});
  for (std::int64_t k = 0; k < found; ++k) put_index(count, k, counts[static_cast<std::size_t>(k)]);
}

void unique_slices(KernelContext& c) {
  const Array& x = c.input(0);
  const Array& axes = c.input(1);
  if (axes.rank() != 1) throw InvalidArgumentError("axis expects a 1D vector.");
  if (axes.num_elements() > 1) {
    throw InvalidArgumentError("axis does not support input tensors larger than 1 elements");
  }
  if (axes.num_elements() == 0 && x.rank() != 1) {
    throw InvalidArgumentError("unique expects a 1D vector.");
  }
  const int axis = axes.num_elements() == 0 ? 0 : checked_axis(IntInput(axes, "axis")[0], x.rank());
  check_index_type(c.output_dtype(1), x.num_elements());
  comparable_switch(x.dtype(), [&]<class T>() { unique_of<T>(c, axis); });
}

template <class T>
void list_diff_of(KernelContext& c) {
  const Array& x = c.input(0);
  const Array& y = c.input(1);
  std::unordered_set<Key<T>> known;
  for (const T& value : y.values<T>()) known.insert(static_cast<Key<T>>(value));
  std::vector<std::int64_t> left;
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    if (known.count(static_cast<Key<T>>(x.data<T>()[i])) == 0) left.push_back(i);
  }
  const Shape shape{static_cast<std::int64_t>(left.size())};
  T* out = c.allocate_output(0, shape).template data<T>();
  Array& idx = c.allocate_output(1, shape);
  for (std::int64_t k = 0; k < shape[0]; ++k) {
    const std::int64_t i = left[static_cast<std::size_t>(k)];
    out[k] = x.data<T>()[i];
    put_index(idx, k, i);
  }
}

void list_diff(KernelContext& c) {
  for (int i = 0; i < 2; ++i) {
    if (c.input(i).rank() != 1) {
      throw InvalidArgumentError(
          cat("x and y should be 1D vectors, got shape ", c.input(i).shape(), "."));
    }
  }
  check_index_type(c.output_dtype(1), c.input(0).num_elements());
  comparable_switch(c.input(0).dtype(), [&]<class T>() { list_diff_of<T>(c); });
}

const KernelRegistration kUnique{{.op = "UniqueV2", .run = unique_slices}};
const KernelRegistration kUniqueCounts{{.op = "UniqueWithCountsV2", .run = unique_slices}};
const KernelRegistration kListDiff{{.op = "ListDiff", .run = list_diff}};

}  // namespace
}  // namespace tandem::cpu
