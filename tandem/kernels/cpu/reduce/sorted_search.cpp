// Places by order: LowerBound, UpperBound, NthElement, InvertPermutation; and Cross.

#include <algorithm>
#include <cmath>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/put_indices.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/support/arithmetic.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

// Rows of sorted elements in which places are looked for.
struct Bounds {
  const Array& sorted;
  const Array& values;
  Array& out;
};

// Element `to` + i of out: how many elements of the row come before value i. Several values are
// searched for side by side, by steps that do not depend on what is found: there is nothing to be
// guessed wrong, and nothing waits for another's element.
template <class T, class Before>
void find_places(const T* sorted, std::int64_t n, const T* values, std::int64_t count, Array& out,
                 std::int64_t to, Before before) {
  constexpr std::int64_t kTogether = 8;
  for (std::int64_t i = 0; i < count; i += kTogether) {
    const std::int64_t together = std::min(kTogether, count - i);
    T value[kTogether];
    std::int64_t at[kTogether] = {};
    for (std::int64_t j = 0; j < kTogether; ++j) value[j] = values[i + std::min(j, together - 1)];
    const auto advance = [&](std::int64_t step) {
      for (std::int64_t j = 0; j < kTogether; ++j) {
        at[j] += step & -static_cast<std::int64_t>(before(sorted[at[j] + step - 1], value[j]));
      }
    };
    for (std::int64_t left = n; left > 1; left -= left / 2) advance(left / 2);
    if (n > 0) advance(1);
    put_indices(out, to + i, at, together);
  }
}

// For values [begin, end).
template <class T>
void find_bounds(const Bounds& b, bool upper, std::int64_t begin, std::int64_t end) {
  const std::int64_t n = b.sorted.shape()[1], m = b.values.shape()[1];
  const auto not_after = [](T element, T value) { return !less(value, element); };
  const auto is_less = [](T element, T value) { return less(element, value); };
  for (std::int64_t row = begin / m; begin < end; ++row) {
    const T* const sorted = b.sorted.data<T>() + row * n;
    const T* const values = b.values.data<T>() + begin;
    const std::int64_t count = std::min(end, (row + 1) * m) - begin;
    if (!upper) {
      find_places(sorted, n, values, count, b.out, begin, is_less);
    } else if (n == 0 || sorted[n - 1] == sorted[n - 1]) {
      find_places(sorted, n, values, count, b.out, begin, not_after);
    } else {
      // NaNs at the end come after nothing: what is found depends on where it is looked for.
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t at = std::upper_bound(sorted, sorted + n, values[i], less<T>) - sorted;
        put_indices(b.out, begin + i, &at, 1);
      }
    }
    begin += count;
  }
}

template <bool kUpper>
void bound(KernelContext& c) {
  const Array& sorted = c.input(0);
  const Array& values = c.input(1);
  if (sorted.rank() != 2 || values.rank() != 2 || sorted.shape()[0] != values.shape()[0]) {
    throw InvalidArgumentError(cat(
        "Leading dim_size of both tensors must match: sorted_inputs and values must be matrices "
        "of as many rows, got ",
        sorted.shape(), " and ", values.shape()));
  }
  const std::int64_t n = sorted.shape()[1];
  if (c.output_dtype(0) == DType::kInt32 && n >= INT32_MAX) {
    throw InvalidArgumentError(cat("Rows of ", n, " elements need out_type int64."));
  }
  const Bounds bounds{sorted, values, c.allocate_output(0, values.shape())};
  void (*find)(const Bounds&, bool, std::int64_t, std::int64_t) = nullptr;
  with_real(values.dtype(), [&]<class T>() { find = find_bounds<T>; });
  const double cost = 2 + std::log2(static_cast<double>(n) + 1);
  c.intra_op().parallel_for(values.num_elements(), cost, [&](std::int64_t begin, std::int64_t end) {
    find(bounds, kUpper, begin, end);
  });
}

void nth_element(KernelContext& c) {
  const Array& x = c.input(0);
  const std::int64_t n = scalar_int_input(c, 1, "n");
  if (n < 0) throw InvalidArgumentError(cat("n must be non-negative but is ", n));
  if (x.rank() < 1) {
    throw InvalidArgumentError(cat("Input must be at least rank 1 but is rank ", x.rank()));
  }
  const std::int64_t m = x.shape()[x.rank() - 1];
  if (m <= n) {
    throw InvalidArgumentError(cat("Input must have last dimension > n = ", n, " but is ", m));
  }
  const std::int64_t place = c.attr<bool>("reverse") ? m - n - 1 : n;
  Shape shape;
  for (int i = 0; i + 1 < x.rank(); ++i) shape.add_dim(x.shape()[i]);
  Array& out = c.allocate_output(0, shape);
  with_real(x.dtype(), [&]<class T>() {
    const auto compare = [](T a, T b) { return less(a, b); };
    const double cost = 5.0 * static_cast<double>(m);
    c.intra_op().parallel_for(out.num_elements(), cost, [&](std::int64_t begin, std::int64_t end) {
      std::vector<T> row;
      for (std::int64_t i = begin; i < end; ++i) {
        const T* from = x.data<T>() + i * m;
        row.assign(from, from + m);
        std::nth_element(row.begin(), row.begin() + place, row.end(), compare);
        out.data<T>()[i] = row[static_cast<std::size_t>(place)];
      }
    });
  });
}

void cross(KernelContext& c) {
  const Array& a = c.input(0);
  const Array& b = c.input(1);
  if (!(a.shape() == b.shape())) {
    throw InvalidArgumentError(
        cat("Both inputs must be of same shape: ", a.shape(), " vs. ", b.shape()));
  }
  if (a.rank() < 1 || a.shape()[a.rank() - 1] != 3) {
    throw InvalidArgumentError(
        cat("Cross-products are only defined for 3-element vectors, got shape ", a.shape()));
  }
  Array& out = c.allocate_output(0, a.shape());
  with_real(a.dtype(), [&]<class T>() {
    using A = Arithmetic<T>;
    c.intra_op().parallel_for(a.num_elements() / 3, 5, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T* u = a.data<T>() + 3 * i;
        const T* v = b.data<T>() + 3 * i;
        for (int k = 0; k < 3; ++k) {
          const int p = (k + 1) % 3, q = (k + 2) % 3;
          out.data<T>()[3 * i + k] = static_cast<T>(static_cast<A>(u[p]) * static_cast<A>(v[q]) -
                                                    static_cast<A>(u[q]) * static_cast<A>(v[p]));
        }
      }
    });
  });
}

template <class T>
void invert(const Array& x, Array& out) {
  const std::int64_t n = x.num_elements();
  T* const y = out.data<T>();
  std::fill(y, y + n, T(-1));
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t at = x.data<T>()[i];
    if (at < 0 || at >= n) throw InvalidArgumentError(cat(at, " is not between 0 and ", n));
    if (y[at] != -1) throw InvalidArgumentError(cat(at, " is duplicated in the input."));
    y[at] = static_cast<T>(i);
  }
}

void invert_permutation(KernelContext& c) {
  const Array& x = c.input(0);
  if (x.rank() != 1) {
    throw InvalidArgumentError(
        cat("invert_permutation expects a 1D vector, got shape ", x.shape()));
  }
  Array& out = c.allocate_output(0, x.shape());
  if (x.dtype() == DType::kInt32) return invert<std::int32_t>(x, out);
  invert<std::int64_t>(x, out);
}

constexpr TypeConstraint kReals{"T", kRealTypes};
const KernelRegistration kLower{{.op = "LowerBound", .types = {kReals}, .run = bound<false>}};
const KernelRegistration kUpper{{.op = "UpperBound", .types = {kReals}, .run = bound<true>}};
const KernelRegistration kNth{{.op = "NthElement", .types = {kReals}, .run = nth_element}};
const KernelRegistration kInvertPermutation{{.op = "InvertPermutation", .run = invert_permutation}};
const KernelRegistration kCross{{.op = "Cross", .types = {kReals}, .run = cross}};

}  // namespace
}  // namespace tandem::cpu
