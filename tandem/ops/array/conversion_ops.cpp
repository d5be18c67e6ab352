#include "tandem/ops/conversion_ops.h"

#include "tandem/core/error.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/random_ops.h"
#include "tandem/ops/shape_ops.h"

namespace tandem {

Tensor convert_to_tensor(Operand value, std::optional<DType> dtype) {
  const bool is_number = value.is_number();
  Tensor made = dtype ? std::move(value).take_as(*dtype) : std::move(value).take();
  if (!is_number && dtype && made.dtype() != *dtype) {
    throw InvalidArgumentError(cat("Tensor conversion requested dtype ", *dtype,
                                   " for Tensor with dtype ", made.dtype(),
                                   ": td::cast changes dtypes."));
  }
  return made;
}

Tensor full(const IntList& shape, Operand value, std::optional<DType> dtype) {
  Tensor scalar = dtype ? std::move(value).take_as(*dtype) : std::move(value).take();
  if (dtype && scalar.dtype() != *dtype) scalar = cast(scalar, *dtype);
  return fill(shape, std::move(scalar));
}

Tensor full_like(const Tensor& x, Operand value, std::optional<DType> dtype) {
  return full(shape(x), std::move(value), dtype.value_or(x.dtype()));
}

Tensor arange(Operand stop) { return arange(0, std::move(stop), 1); }

Tensor arange(Operand start, Operand stop, Operand step) {
  // The widest of what is given: a tensor's dtype, else that of the numbers.
  DType dtype = DType::kInt32;
  for (const Operand* o : {&start, &stop, &step}) {
    if (!o->is_number()) {
      dtype = o->dtype();
      break;
    }
    if (is_floating(o->dtype())) dtype = DType::kFloat;
    if (o->dtype() == DType::kInt64 && dtype == DType::kInt32) dtype = DType::kInt64;
  }
  return range(std::move(start).take_as(dtype), std::move(stop).take_as(dtype),
               std::move(step).take_as(dtype));
}

Tensor randn(const IntList& shape, DType dtype) { return random::normal(shape, {.dtype = dtype}); }
Tensor rand(const IntList& shape, DType dtype) { return random::uniform(shape, {.dtype = dtype}); }

}  // namespace tandem
