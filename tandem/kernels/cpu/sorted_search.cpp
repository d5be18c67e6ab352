// Places by order: LowerBound, UpperBound, NthElement; and Cross.

#include <algorithm>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/int_input.h"
#include "tandem/kernels/cpu/type_switch.h"

namespace tandem::cpu {
namespace {

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
  const std::int64_t m = values.shape()[1];
  if (c.output_dtype(0) == DType::kInt32 && n >= INT32_MAX) {
    throw InvalidArgumentError(cat("Rows of ", n, " elements need out_type int64."));
  }
  Array& out = c.allocate_output(0, values.shape());
  real_switch(values.dtype(), c.op().name, [&]<class T>() {
    const auto compare = [](T a, T b) { return less(a, b); };
    c.intra_op().parallel_for(values.num_elements(), 30, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T* row = sorted.data<T>() + i / m * n;
        const T value = values.data<T>()[i];
        const T* at = kUpper ? std::upper_bound(row, row + n, value, compare)
                             : std::lower_bound(row, row + n, value, compare);
        if (out.dtype() == DType::kInt32) {
          out.data<std::int32_t>()[i] = static_cast<std::int32_t>(at - row);
        } else {
          out.data<std::int64_t>()[i] = at - row;
        }
      }
    });
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
  real_switch(x.dtype(), c.op().name, [&]<class T>() {
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
  real_switch(a.dtype(), c.op().name, [&]<class T>() {
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

constexpr TypeConstraint kReals{"T", kRealTypes};
const KernelRegistration kLower{{.op = "LowerBound", .types = {kReals}, .run = bound<false>}};
const KernelRegistration kUpper{{.op = "UpperBound", .types = {kReals}, .run = bound<true>}};
const KernelRegistration kNth{{.op = "NthElement", .types = {kReals}, .run = nth_element}};
const KernelRegistration kCross{{.op = "Cross", .types = {kReals}, .run = cross}};

}  // namespace
}  // namespace tandem::cpu
