// Ops that forward a value as it is.

#include <cmath>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

void constant(KernelContext& c) { c.set_output(0, *c.attr<std::shared_ptr<const Array>>("value")); }

void placeholder(KernelContext& c) {
  throw InvalidArgumentError(cat("You must feed a value for placeholder tensor '", c.node_name(),
                                 "' with dtype ", c.attr<DType>("dtype"), " and shape ",
                                 c.attr<PartialShape>("shape")));
}

void identity(KernelContext& c) { c.set_output(0, c.input(0)); }

void identity_n(KernelContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) c.set_output(i, c.input(i));
}

void no_op(KernelContext&) {}

void ensure_shape(KernelContext& c) {
  const auto& wanted = c.attr<PartialShape>("shape");
  if (!wanted.is_compatible(c.input(0).shape())) {
    throw InvalidArgumentError(cat("Shape of tensor ", c.node_name(), " ", c.input(0).shape(),
                                   " is not compatible with expected shape ", wanted, "."));
  }
  c.set_output(0, c.input(0));
}

struct Seen {
  bool nan = false;
  bool infinity = false;
};

template <class T, class Wide>
Seen look(const Array& a) {
  Seen seen;
  const T* data = a.data<T>();
  for (std::int64_t i = 0; i < a.num_elements(); ++i) {
    const auto v = static_cast<Wide>(data[i]);
    if (!std::isfinite(v)) (std::isnan(v) ? seen.nan : seen.infinity) = true;
  }
  return seen;
}

void check_numerics(KernelContext& c) {
  const Array& x = c.input(0);
  Seen seen;
  with_floating(x.dtype(), [&]<class T>() { seen = look<T, Wide<T>>(x); });
  if (seen.nan || seen.infinity) {
    throw InvalidArgumentError(cat(c.attr<std::string>("message"), " : Tensor had ",
                                   seen.nan && seen.infinity ? "Inf and NaN"
                                   : seen.nan                ? "NaN"
                                                             : "Inf",
                                   " values"));
  }
  c.set_output(0, x);
}

void bitcast(KernelContext& c) {
  const Array& x = c.input(0);
  const DType type = c.attr<DType>("type");
  const auto from = static_cast<std::int64_t>(dtype_size(x.dtype()));
  const auto to = static_cast<std::int64_t>(dtype_size(type));
  std::vector<std::int64_t> dims = x.shape().to_vector();
  if (from > to) {
    dims.push_back(from / to);
  } else if (from < to) {
    if (dims.empty() || dims.back() * from != to) {
      throw InvalidArgumentError(cat("Cannot bitcast from ", x.dtype(), " to ", type, ": shape ",
                                     x.shape(), " must end with an axis of size ", to / from, "."));
    }
    dims.pop_back();
  }
  // Elements of the larger type may lie where only the smaller one may: then they move.
  Array source = x;
  if (reinterpret_cast<std::uintptr_t>(x.raw_data()) % static_cast<std::uintptr_t>(to) != 0) {
    source = x.clone();
  }
  c.set_output(0, Array(type, Shape(dims), source.buffer(), source.raw_data()));
}

const KernelRegistration kConst{{.op = "Const", .run = constant}};
const KernelRegistration kPlaceholder{{.op = "Placeholder", .run = placeholder}};
const KernelRegistration kPlaceholderWithDefault{
    {.op = "PlaceholderWithDefault", .kernel_class = "*", .run = identity}};
const KernelRegistration kIdentity{{.op = "Identity", .kernel_class = "*", .run = identity}};
const KernelRegistration kSnapshot{{.op = "Snapshot", .kernel_class = "*", .run = identity}};
const KernelRegistration kIdentityN{{.op = "IdentityN", .kernel_class = "*", .run = identity_n}};
const KernelRegistration kStopGradient{
    {.op = "StopGradient", .kernel_class = "*", .run = identity}};
const KernelRegistration kPreventGradient{
    {.op = "PreventGradient", .kernel_class = "*", .run = identity}};
const KernelRegistration kNoOp{{.op = "NoOp", .kernel_class = "*", .run = no_op}};
const KernelRegistration kEnsureShape{
    {.op = "EnsureShape", .kernel_class = "*", .run = ensure_shape}};
const KernelRegistration kCheckNumerics{{.op = "CheckNumerics", .run = check_numerics}};
const KernelRegistration kBitcast{{.op = "Bitcast", .run = bitcast}};

}  // namespace
}  // namespace tandem::cpu
