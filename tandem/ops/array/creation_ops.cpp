#include "tandem/ops/creation_ops.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/diagonal_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/pad_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;

void fill_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 0);
  c.set_output(0, internal::requested_shape(c, 0));
}

void fill_grad(GradientContext& g) {
  const int rank = g.grad().rank();
  Tensor axes;
  if (rank >= 0) {
    std::vector<std::int64_t> all;
    for (int i = 0; i < rank; ++i) all.push_back(i);
    axes = internal::int_vector(all, int32);
  } else {
    axes = range(tandem::rank(g.grad()));
  }
  const Tensor sum = reduce_sum(g.grad(), axes);
  // The kernel also takes a vector of one element.
  g.set(1, g.input(1).rank() == 0 ? sum : reshape(sum, shape(g.input(1))));
}

// The number of elements from start to limit; fails where there can be none.
std::int64_t range_length(const InferenceContext& c, std::int64_t start, std::int64_t limit,
                          std::int64_t delta) {
  if (delta == 0) c.fail("Requires delta != 0");
  if (delta > 0 ? start > limit : start < limit) {
    c.fail(cat("Requires start ", delta > 0 ? "<=" : ">=", " limit when delta ",
               delta > 0 ? ">" : "<", " 0: ", start, "/", limit));
  }
  // Differences may need 64 bits without a sign.
  const auto u = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
  const std::uint64_t distance = delta > 0 ? u(limit) - u(start) : u(start) - u(limit);
  const std::uint64_t step = delta > 0 ? u(delta) : std::uint64_t{0} - u(delta);
  const std::uint64_t n = distance / step + (distance % step != 0);
  if (n > u(INT64_MAX)) c.fail("the range has more than 2^63 elements.");
  return static_cast<std::int64_t>(n);
}

std::int64_t range_length(const InferenceContext& c, double start, double limit, double delta) {
  if (delta == 0) c.fail("Requires delta != 0");
  if (delta > 0 ? start > limit : start < limit) {
    c.fail(cat("Requires start ", delta > 0 ? "<=" : ">=", " limit when delta ",
               delta > 0 ? ">" : "<", " 0: ", start, "/", limit));
  }
  const double n = std::ceil(std::abs((limit - start) / delta));
  if (!(n < 9.2e18)) c.fail("the range has more than 2^63 elements.");
  return static_cast<std::int64_t>(n);
}

// The number in a constant scalar, in a type that holds it.
std::int64_t integer_in(const Array& a) {
  switch (a.dtype()) {
    case DType::kInt8: return *a.data<std::int8_t>();
    case DType::kInt16: return *a.data<std::int16_t>();
    case DType::kInt32: return *a.data<std::int32_t>();
    case DType::kUint8: return *a.data<std::uint8_t>();
    case DType::kUint16: return *a.data<std::uint16_t>();
    case DType::kUint32: return *a.data<std::uint32_t>();
    default: return *a.data<std::int64_t>();
  }
}
double float_in(const Array& a) {
  switch (a.dtype()) {
    case DType::kHalf: return static_cast<float>(*a.data<Half>());
    case DType::kBFloat16: return static_cast<float>(*a.data<BFloat16>());
    case DType::kFloat: return *a.data<float>();
    default: return *a.data<double>();
  }
}

void range_shape(InferenceContext& c) {
  for (int i = 0; i < 3; ++i) c.require_rank(i, 0);
  const Array* v[3] = {c.input_value(0), c.input_value(1), c.input_value(2)};
  std::int64_t n = kUnknown;
  const DType dtype = c.input_dtype(0);
  if (v[0] && v[1] && v[2] && dtype == DType::kFloat) {
    // In float, as the kernel counts.
    const float quotient = (*v[1]->data<float>() - *v[0]->data<float>()) / *v[2]->data<float>();
    range_length(c, float_in(*v[0]), float_in(*v[1]), float_in(*v[2]));
    n = range_length(c, 0.0, static_cast<double>(std::abs(quotient)), 1.0);
  } else if (v[0] && v[1] && v[2] && is_floating(dtype)) {
    n = range_length(c, float_in(*v[0]), float_in(*v[1]), float_in(*v[2]));
  } else if (v[0] && v[1] && v[2] && dtype != DType::kUint64) {
    n = range_length(c, integer_in(*v[0]), integer_in(*v[1]), integer_in(*v[2]));
  }
  c.set_output(0, internal::vector_of(n));
}

void linspace_shape(InferenceContext& c) {
  for (int i = 0; i < 3; ++i) c.require_rank(i, 0);
  const auto n = internal::input_int(c, 2);
  if (n && *n <= 0) c.fail(cat("Requires num > 0: ", *n));
  c.set_output(0, internal::vector_of(n.value_or(kUnknown)));
}

void one_hot_shape(InferenceContext& c) {
  for (int i = 1; i < 4; ++i) c.require_rank(i, 0);
  const auto depth = internal::input_int(c, 1);
  if (depth && *depth < 0) c.fail(cat("depth must be non-negative, got: ", *depth));
  if (!c.input(0).has_rank()) return c.set_output(0, PartialShape::unknown());
  std::vector<std::int64_t> dims = c.input(0).dims();
  const auto axis = c.attr<std::int64_t>("axis");
  const int rank = c.input(0).rank();
  if (axis < -1 || axis > rank) {
    c.fail(cat("Expected axis to be -1 or between [0, ", rank, "].  But received: ", axis));
  }
  dims.insert(dims.begin() + (axis == -1 ? rank : axis), depth.value_or(kUnknown));
  c.set_output(0, PartialShape(std::move(dims)));
}

void empty_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.set_output(0, internal::requested_shape(c, 0));
}

const OpRegistration kFill{{.name = "Fill",
                            .inputs = "dims: index_type, value: T",
                            .outputs = "output: T",
                            .attrs = "T: type; index_type: index = int32",
                            .shape = fill_shape,
                            .gradient = fill_grad,
                            .traits = {.host_inputs = 0b01},
                            .doc = "The scalar `value` everywhere."}};

const OpRegistration kEmpty{
    {.name = "Empty",
     .inputs = "shape: int32",
     .outputs = "output: dtype",
     .attrs = "dtype: type; init: bool = false",
     .shape = empty_shape,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .host_inputs = 1},
     .doc = "A value of that shape: zeros if `init`, else whatever is there."}};

const OpRegistration kRange{
    {.name = "Range",
     .inputs = "start: Tidx, limit: Tidx, delta: Tidx",
     .outputs = "output: Tidx",
     .attrs = "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, "
              "uint64} = int32",
     .shape = range_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b111},
     .doc = "start, start + delta, … up to and without limit."}};

const OpRegistration kLinSpace{{.name = "LinSpace",
                                .inputs = "start: T, stop: T, num: Tidx",
                                .outputs = "output: T",
                                .attrs = "T: floats; Tidx: index = int32",
                                .shape = linspace_shape,
                                .gradient = not_differentiable,
                                .traits = {.host_inputs = 0b111},
                                .doc = "num values from start to stop, equally far apart."}};

const OpRegistration kOneHot{
    {.name = "OneHot",
     .inputs = "indices: TI, depth: int32, on_value: T, off_value: T",
     .outputs = "output: T",
     .attrs = "axis: int = -1; T: type; TI: {uint8, int8, int32, int64} = int64",
     .shape = one_hot_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b10},
     .doc = "A new axis of size depth with on_value where the index says and off_value elsewhere; "
            "indices out of range give off_value alone."}};

const OpRegistration kZerosLike{{.name = "ZerosLike",
                                 .inputs = "x: T",
                                 .outputs = "y: T",
                                 .attrs = "T: type",
                                 .shape = shapes::unchanged,
                                 .gradient = not_differentiable,
                                 .traits = {.elementwise = true, .may_reuse = 1},
                                 .doc = "Zeros of x's shape and dtype."}};

const OpRegistration kOnesLike{{.name = "OnesLike",
                                .inputs = "x: T",
                                .outputs = "y: T",
                                .attrs = "T: pod",
                                .shape = shapes::unchanged,
                                .gradient = not_differentiable,
                                .traits = {.elementwise = true, .may_reuse = 1},
                                .doc = "Ones of x's shape and dtype."}};

// ---- td::constant ----

[[noreturn]] void does_not_fit(double value, DType dtype) {
  throw InvalidArgumentError(cat("The value ", value, " cannot be represented in dtype ", dtype,
                                 ". Use td::cast where rounding is meant."));
}

template <class From, class To>
void convert_elements(const Array& from, Array& to) {
  for (std::int64_t i = 0; i < from.num_elements(); ++i) {
    const From value = from.data<From>()[i];
    To& result = to.data<To>()[i];
    if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
      result = To(static_cast<float>(value));
    } else if constexpr (std::is_floating_point_v<To>) {
      result = static_cast<To>(value);
      // Integers must survive; floating-point numbers are rounded.
      if (std::is_integral_v<From> && static_cast<From>(result) != value) {
        does_not_fit(static_cast<double>(value), dtype_of<To>);
      }
    } else {
      if constexpr (std::is_floating_point_v<From>) {
        if (!(std::abs(value) < 9.2e18) || std::trunc(value) != value) {
          does_not_fit(static_cast<double>(value), dtype_of<To>);
        }
      }
      const auto wide = static_cast<std::int64_t>(value);
      result = static_cast<To>(wide);
      if (static_cast<std::int64_t>(result) != wide || (std::is_unsigned_v<To> && wide < 0)) {
        does_not_fit(static_cast<double>(value), dtype_of<To>);
      }
    }
  }
}

template <class From>
Array convert_from(const Array& from, DType dtype) {
  Array to(dtype, from.shape());
  switch (dtype) {
    case DType::kFloat: convert_elements<From, float>(from, to); break;
    case DType::kDouble: convert_elements<From, double>(from, to); break;
    case DType::kHalf: convert_elements<From, Half>(from, to); break;
    case DType::kBFloat16: convert_elements<From, BFloat16>(from, to); break;
    case DType::kInt8: convert_elements<From, std::int8_t>(from, to); break;
    case DType::kInt16: convert_elements<From, std::int16_t>(from, to); break;
    case DType::kInt32: convert_elements<From, std::int32_t>(from, to); break;
    case DType::kInt64: convert_elements<From, std::int64_t>(from, to); break;
    case DType::kUint8: convert_elements<From, std::uint8_t>(from, to); break;
    case DType::kUint16: convert_elements<From, std::uint16_t>(from, to); break;
    case DType::kUint32: convert_elements<From, std::uint32_t>(from, to); break;
    case DType::kUint64: convert_elements<From, std::uint64_t>(from, to); break;
    case DType::kComplex64:
    case DType::kComplex128: return cast(Tensor(from), dtype).array();
    default:
      throw InvalidArgumentError(
          cat("td::constant cannot make ", dtype, " of ", from.dtype(), "."));
  }
  return to;
}

Array converted(const Array& from, DType dtype) {
  if (from.dtype() == dtype) return from;
  switch (from.dtype()) {
    case DType::kFloat: return convert_from<float>(from, dtype);
    case DType::kDouble: return convert_from<double>(from, dtype);
    case DType::kInt32: return convert_from<std::int32_t>(from, dtype);
    case DType::kInt64: return convert_from<std::int64_t>(from, dtype);
    case DType::kUint8: return convert_from<std::uint8_t>(from, dtype);
    default:
      throw InvalidArgumentError(
          cat("td::constant cannot make ", dtype, " of ", from.dtype(), ". Use td::cast."));
  }
}

// 0 or 1 of any dtype that has one.
Tensor filled(const IntList& shape, std::int64_t value, DType dtype) {
  return fill(shape, internal::int_scalar(value, dtype));
}

}  // namespace

Tensor constant(Tensor value) { return value; }

Tensor constant(const Tensor& value, DTypeLike dtype) {
  return Tensor(converted(value.array(), dtype));
}

Tensor constant(const Tensor& value, DTypeLike dtype, const Shape& shape) {
  const Array array = converted(value.array(), dtype);
  if (array.num_elements() == 1 && shape.num_elements() != 1) {
    return fill(shape, Tensor(array.reshape(Shape{})));
  }
  return Tensor(array.reshape(shape));
}

Tensor zeros(const IntList& shape, DTypeLike dtype) { return filled(shape, 0, dtype); }

Tensor ones(const IntList& shape, DTypeLike dtype) { return filled(shape, 1, dtype); }

namespace {

Tensor filled_like(const Tensor& x, std::int64_t value, DType dtype) {
  const auto dims = internal::known_dims(x);
  return filled(dims ? IntList(*dims) : IntList(shape(x)), value, dtype);
}

}  // namespace

Tensor zeros_like(Tensor x, std::optional<DType> dtype) {
  if (dtype && *dtype != x.dtype()) return filled_like(x, 0, *dtype);
  return call1(kZerosLike, {std::move(x)});
}

Tensor ones_like(Tensor x, std::optional<DType> dtype) {
  if (dtype && *dtype != x.dtype()) return filled_like(x, 1, *dtype);
  return call1(kOnesLike, {std::move(x)});
}

Tensor fill(const IntList& shape, Tensor value) {
  return call1(kFill, {shape.tensor(), std::move(value)});
}

namespace {

// Numbers of several dtypes take the last of theirs in this order, as tf.range has it.
DType range_dtype(std::initializer_list<const Tensor*> numbers) {
  constexpr DType kOrder[] = {int32, int64, float32, float64};
  const auto rank = [&](const Tensor* t) {
    return std::find(std::begin(kOrder), std::end(kOrder), t->dtype());
  };
  const DType* last = std::begin(kOrder);
  for (const Tensor* t : numbers) {
    if (rank(t) == std::end(kOrder)) return (*numbers.begin())->dtype();
    last = std::max(last, rank(t));
  }
  return *last;
}

Tensor number_of(Tensor number, DType dtype) {
  return number.dtype() == dtype ? number : cast(std::move(number), dtype);
}

}  // namespace

Tensor range(Tensor start, Tensor limit, Tensor delta) {
  if (start.dtype() != limit.dtype() || start.dtype() != delta.dtype()) {
    const DType dtype = range_dtype({&start, &limit, &delta});
    start = number_of(std::move(start), dtype);
    limit = number_of(std::move(limit), dtype);
    delta = number_of(std::move(delta), dtype);
  }
  return call1(kRange, {std::move(start), std::move(limit), std::move(delta)});
}

Tensor range(Tensor start, Tensor limit) {
  const DType dtype = range_dtype({&start, &limit});
  return range(std::move(start), std::move(limit), internal::int_scalar(1, dtype));
}

Tensor range(Tensor start, Tensor limit, Tensor delta, const RangeOptions& o) {
  const DType dtype = o.dtype ? DType(*o.dtype) : range_dtype({&start, &limit, &delta});
  return range(number_of(std::move(start), dtype), number_of(std::move(limit), dtype),
               number_of(std::move(delta), dtype));
}

Tensor range(Tensor start, Tensor limit, const RangeOptions& o) {
  return range(std::move(start), std::move(limit), Tensor(1), o);
}

Tensor range(Tensor limit, const RangeOptions& o) {
  return range(Tensor(0), std::move(limit), Tensor(1), o);
}

Tensor range(Tensor limit) {
  const DType dtype = limit.dtype();
  return range(internal::int_scalar(0, dtype), std::move(limit), internal::int_scalar(1, dtype));
}

Tensor linspace(Tensor start, Tensor stop, std::int64_t num) {
  return call1(kLinSpace, {std::move(start), std::move(stop), internal::index_scalar(num)});
}

Tensor one_hot(Tensor indices, std::int64_t depth, const OneHotOptions& o) {
  if (depth < 0 || depth > INT32_MAX) {
    throw InvalidArgumentError(cat("td::one_hot: depth ", depth, " must be in [0, 2^31)."));
  }
  const auto value = [&](double v) { return constant(Tensor(Array::scalar(v)), o.dtype); };
  const bool truth = o.dtype == DType::kBool;
  return call1(kOneHot,
               {std::move(indices), internal::int_scalar(depth, int32),
                truth ? Tensor(o.on_value.value_or(1) != 0) : value(o.on_value.value_or(1)),
                truth ? Tensor(o.off_value.value_or(0) != 0) : value(o.off_value.value_or(0))},
               {{"axis", o.axis}});
}

Tensor eye(std::int64_t num_rows, std::optional<std::int64_t> num_columns, DType dtype,
           const IntList& batch_shape) {
  const std::int64_t columns = num_columns.value_or(num_rows);
  const std::int64_t shorter = std::min(num_rows, columns);
  Tensor matrix;
  if (num_rows == columns) {
    matrix = linalg::diag(ones({shorter}, dtype));
  } else {
    matrix = linalg::set_diag(zeros({num_rows, columns}, dtype), ones({shorter}, dtype));
  }
  if (batch_shape.empty()) return matrix;
  const auto known = batch_shape.known();
  if (known) {
    std::vector<std::int64_t> dims = *known;
    dims.push_back(num_rows);
    dims.push_back(columns);
    return broadcast_to(std::move(matrix), dims);
  }
  const Tensor sizes = cast(batch_shape.tensor(), int64);
  return broadcast_to(std::move(matrix),
                      concat({sizes, internal::int_vector({num_rows, columns}, int64)}, 0));
}

}  // namespace tandem
