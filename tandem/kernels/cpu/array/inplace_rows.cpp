// Rows of an array set, added to and subtracted from. Indices count modulo the number of rows.

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/support/arithmetic.h"
#include "tandem/kernels/cpu/support/elements.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

// Output 0 holds x; calls f(row of it, row of v, elements) for each index.
template <class T, class F>
void change_rows(KernelContext& c, F f) {
  const Array &x = c.input(0), &rows = c.input(1), &v = c.input(2);
  const Shape& shape = x.shape();
  if (rows.rank() > 1 || shape.rank() == 0) {
    throw InvalidArgumentError(
        cat("x must have rows and i must be a scalar or a vector, but they "
            "have shapes ",
            shape, " and ", rows.shape()));
  }
  Shape wanted{rows.num_elements()};
  for (int k = 1; k < shape.rank(); ++k) wanted.add_dim(shape[k]);
  if (!(v.shape() == wanted)) {
    throw InvalidArgumentError(
        cat("v must have shape ", wanted, " to fit x and i, but has ", v.shape()));
  }
  if (rows.num_elements() > 0 && shape[0] == 0) {
    throw InvalidArgumentError("x has no rows to change.");
  }
  Array& out = c.reuse_or_allocate_output(0, 0, shape);
  T* to = static_cast<T*>(out.raw_data());
  const T* from = static_cast<const T*>(x.raw_data());
  if (to != from) copy_elements(to, from, shape.num_elements());
  const std::int64_t inner = shape.product(1, shape.rank());
  for (std::int64_t i = 0; i < rows.num_elements(); ++i) {
    const std::int64_t index = rows.data<std::int32_t>()[i];
    const std::int64_t row = (index % shape[0] + shape[0]) % shape[0];
    f(to + row * inner, static_cast<const T*>(v.raw_data()) + i * inner, inner);
  }
}

void update(KernelContext& c) {
  with_element(c.input(0).dtype(), [&]<class T>() {
    change_rows<T>(c, [](T* row, const T* by, std::int64_t n) { copy_elements(row, by, n); });
  });
}

template <bool kAdd>
void accumulate(KernelContext& c) {
  with_number(c.input(0).dtype(), [&]<class T>() {
    change_rows<T>(c, [](T* row, const T* by, std::int64_t n) {
      for (std::int64_t k = 0; k < n; ++k) {
        row[k] = kAdd ? add(row[k], by[k]) : subtract(row[k], by[k]);
      }
    });
  });
}

const KernelRegistration kUpdate{{.op = "InplaceUpdate", .run = update}};
const KernelRegistration kAdd{
    {.op = "InplaceAdd", .types = {{"T", kNumberTypes}}, .run = accumulate<true>}};
const KernelRegistration kSub{
    {.op = "InplaceSub", .types = {{"T", kNumberTypes}}, .run = accumulate<false>}};

}  // namespace
}  // namespace tandem::cpu
