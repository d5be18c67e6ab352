// Values made from nothing but sizes and scalars.

#include <cmath>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/strided_copy.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/support/elements.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

void fill(KernelContext& c) {
  const Array& value = c.input(1);
  if (value.rank() != 0 && value.num_elements() != 1) {
    throw InvalidArgumentError(cat("value must represent a scalar, got shape ", value.shape()));
  }
  const Shape shape = shape_input(c, 0, "dims");
  Array& out = c.allocate_output(0, shape);
  fill_flat(c.intra_op(), out.dtype(), out.raw_data(), value.raw_data(), out.num_elements());
}

void empty(KernelContext& c) {
  Array& out = c.allocate_output(0, shape_input(c, 0));
  // Without `init` the elements may be anything; zeros cost little and are never a leak of other
  // values.
  clear_flat(c.intra_op(), out.dtype(), out.raw_data(), out.num_elements());
}

void fake_param(KernelContext& c) {
  const auto& wanted = c.attr<PartialShape>("shape");
  Shape shape;
  for (const std::int64_t size : wanted.dims()) shape.add_dim(size < 0 ? 0 : size);
  Array& out = c.allocate_output(0, shape);
  clear_flat(c.intra_op(), out.dtype(), out.raw_data(), out.num_elements());
}

void zeros_like(KernelContext& c) {
  const Array& x = c.input(0);
  Array& out = c.reuse_or_allocate_output(0, 0, x.shape());
  clear_flat(c.intra_op(), out.dtype(), out.raw_data(), out.num_elements());
}

void ones_like(KernelContext& c) {
  const Array& x = c.input(0);
  Array& out = c.reuse_or_allocate_output(0, 0, x.shape());
  if (x.dtype() == DType::kBool) {
    const bool one = true;
    return fill_flat(c.intra_op(), out.dtype(), out.raw_data(), &one, out.num_elements());
  }
  with_number(x.dtype(), [&]<class T>() {
    const T one(1);
    fill_flat(c.intra_op(), out.dtype(), out.raw_data(), &one, out.num_elements());
  });
}

// ---- Range, LinSpace ----

template <class T>
T scalar_input(const KernelContext& c, int i, const char* name) {
  if (c.input(i).num_elements() != 1) {
    throw InvalidArgumentError(cat(name, " must be a scalar, not shape ", c.input(i).shape()));
  }
  return *c.input(i).data<T>();
}

template <class Wide>
void check_range(Wide start, Wide limit, Wide delta) {
  if (delta == 0) throw InvalidArgumentError(cat("Requires delta != 0: ", delta));
  if (delta > 0 ? start > limit : start < limit) {
    throw InvalidArgumentError(cat("Requires start ", delta > 0 ? "<=" : ">=", " limit when delta ",
                                   delta > 0 ? ">" : "<", " 0: ", start, "/", limit));
  }
}

// start + i * delta, as TensorFlow rounds it.
template <class T>
void range_of(KernelContext& c) {
  const T start = scalar_input<T>(c, 0, "start");
  const T limit = scalar_input<T>(c, 1, "limit");
  const T delta = scalar_input<T>(c, 2, "delta");
  if constexpr (std::is_integral_v<T>) {
    using Printed = std::conditional_t<std::is_unsigned_v<T>, std::uint64_t, std::int64_t>;
    check_range<Printed>(start, limit, delta);
    // Differences of 64-bit numbers may need 64 bits without a sign.
    const auto u = [](T v) { return static_cast<std::uint64_t>(v); };
    const bool up = delta > 0;
    const std::uint64_t distance = up ? u(limit) - u(start) : u(start) - u(limit);
    const std::uint64_t step = up ? u(delta) : std::uint64_t{0} - u(delta);
    const std::uint64_t n = distance / step + (distance % step != 0);
    if (n > static_cast<std::uint64_t>(INT64_MAX)) {
      throw InvalidArgumentError("The range has more than 2^63 elements.");
    }
    Array& out = c.allocate_output(0, Shape{static_cast<std::int64_t>(n)});
    T* data = out.data<T>();
    c.intra_op().parallel_for(out.num_elements(), 0.5, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        data[i] = static_cast<T>(u(start) + static_cast<std::uint64_t>(i) * u(delta));
      }
    });
  } else {
    using Wide = std::conditional_t<is_float16<T>, float, T>;
    const Wide first(start);
    const Wide by(delta);
    if (!std::isfinite(first) || !std::isfinite(Wide(limit)) || !std::isfinite(by)) {
      throw InvalidArgumentError(
          cat("Requires finite start, limit and delta: ", first, "/", Wide(limit), "/", by));
    }
    check_range<Wide>(first, Wide(limit), by);
    const Wide quotient(T((Wide(limit) - first) / by));
    const double n = std::ceil(std::abs(static_cast<double>(quotient)));
    if (!(n < 9.2e18)) throw InvalidArgumentError("The range has more than 2^63 elements.");
    Array& out = c.allocate_output(0, Shape{static_cast<std::int64_t>(n)});
    T* data = out.data<T>();
    c.intra_op().parallel_for(out.num_elements(), 1.0, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const Wide product(T(Wide(T(static_cast<Wide>(i))) * by));
        data[i] = T(first + product);
      }
    });
  }
}

void range(KernelContext& c) {
  with_real(c.output_dtype(0), [&]<class T>() { range_of<T>(c); });
}

template <class T>
void linspace_of(KernelContext& c) {
  using Wide = std::conditional_t<is_float16<T>, float, T>;
  const Wide start(scalar_input<T>(c, 0, "start"));
  const T stop = scalar_input<T>(c, 1, "stop");
  const std::int64_t n = int_input(c, 2, "num");
  if (n <= 0) throw InvalidArgumentError(cat("Requires num > 0: ", n));
  Array& out = c.allocate_output(0, Shape{n});
  T* data = out.data<T>();
  data[0] = T(start);
  if (n == 1) return;
  const Wide step = (Wide(stop) - start) / static_cast<Wide>(n - 1);
  c.intra_op().parallel_for(n, 1.0, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) data[i] = T(start + step * static_cast<Wide>(i));
  });
  data[n - 1] = stop;  // whatever rounding made of it
}

void linspace(KernelContext& c) {
  with_floating(c.output_dtype(0), [&]<class T>() { linspace_of<T>(c); });
}

const KernelRegistration kFill{{.op = "Fill", .run = fill}};
const KernelRegistration kEmpty{{.op = "Empty", .run = empty}};
const KernelRegistration kFakeParam{{.op = "FakeParam", .run = fake_param}};
const KernelRegistration kZerosLike{{.op = "ZerosLike", .run = zeros_like}};
const KernelRegistration kOnesLike{{.op = "OnesLike", .run = ones_like}};
const KernelRegistration kRange{{.op = "Range", .run = range}};
const KernelRegistration kLinSpace{{.op = "LinSpace", .run = linspace}};

}  // namespace
}  // namespace tandem::cpu
