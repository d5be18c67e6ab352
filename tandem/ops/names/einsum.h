#pragma once

// The form of einsum whose operands stand one by one, as in tf.einsum.

#include <concepts>

#include "tandem/core/string.h"
#include "tandem/ops/matmul_ops.h"

namespace tandem {

/// `einsum("bij,bjk->bik", a, b)`: see matmul_ops.h.
template <std::convertible_to<Tensor>... T>
requires(sizeof...(T) > 0) Tensor einsum(StringView equation, const T&... operands) {
  return einsum(equation, {Tensor(operands)...});
}

namespace linalg {
using tandem::einsum;
}

}  // namespace tandem
