// Row-major numbers as places.

#include <cstdint>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"

namespace tandem::cpu {
namespace {

template <class T>
void unravel(KernelContext& c) {
  const Array &indices = c.input(0), &sizes = c.input(1);
  if (sizes.rank() != 1) {
    throw InvalidArgumentError(cat("dims must be 1-D, but has shape ", sizes.shape()));
  }
  if (indices.rank() > 1) {
    throw InvalidArgumentError(
        cat("The indices can only be scalar or vector, got shape ", indices.shape()));
  }
  if (indices.num_elements() == 0) throw InvalidArgumentError("received empty tensor indices");
  const T* dims = sizes.data<T>();
  std::int64_t all = 1;
  for (std::int64_t i = 0; i < sizes.num_elements(); ++i) {
    if (dims[i] <= 0) {
      throw InvalidArgumentError(cat("Input dims cannot contain a dim of zero or less: ", dims[i]));
    }
    all = checked_multiply(all, dims[i]);
  }
  const std::int64_t n = indices.num_elements();
  Shape shape{sizes.num_elements()};
  if (indices.rank() == 1) shape.add_dim(n);
  Array& out = c.allocate_output(0, shape);
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t index = indices.data<T>()[k];
    if (index < 0 || index >= all) {
      throw InvalidArgumentError(
          cat("index is out of bound as with dims: ", index, " not in [0, ", all, ")"));
    }
    for (std::int64_t i = sizes.num_elements() - 1; i >= 0; --i) {
      out.data<T>()[i * n + k] = static_cast<T>(index % dims[i]);
      index /= dims[i];
    }
  }
}

const KernelRegistration kInt32{
    {.op = "UnravelIndex", .types = {{"Tidx", {DType::kInt32}}}, .run = unravel<std::int32_t>}};
const KernelRegistration kInt64{
    {.op = "UnravelIndex", .types = {{"Tidx", {DType::kInt64}}}, .run = unravel<std::int64_t>}};

}  // namespace
}  // namespace tandem::cpu
