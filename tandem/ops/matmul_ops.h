#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// Which operands of a matrix product are turned before they are multiplied. `adjoint_*` also
/// conjugates; transpose and adjoint of the same operand exclude each other.
struct MatMulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  bool adjoint_a = false;
  bool adjoint_b = false;
};

/// Matrix product of the last two axes; the axes before them are broadcast like NumPy's. [..., n,
/// k] x [..., k, m] gives
/// [..., n, m]. Numbers of one dtype: half, bfloat16, float, double, int32, int64, complex64,
/// complex128. Throws InvalidArgumentError if the inner sizes differ, an operand has rank below 2,
/// or batches do not broadcast.
TANDEM_EXPORT Tensor matmul(Tensor a, Tensor b, const MatMulOptions& options = {});

/// Sum of products by Einstein's notation: `einsum("bij,bjk->bik", {a, b})`. Any number of
/// operands. Letters name axes,
/// "..." stands for broadcast axes, a letter twice in one operand takes the diagonal; without "->"
/// the letters that occur once, in alphabetical order, form the result. Operands of more than two
/// are contracted from left to right.
TANDEM_EXPORT Tensor einsum(StringView equation, std::span<const Tensor> inputs);
TANDEM_EXPORT Tensor einsum(StringView equation, std::initializer_list<Tensor> inputs);

/// Sums over the last `axes` axes of `a` and the first `axes` axes of `b`; 0 gives the outer
/// product.
TANDEM_EXPORT Tensor tensordot(Tensor a, Tensor b, int axes);
/// Sums over a_axes of `a` paired with b_axes of `b`; the other axes of `a`, then those of `b`,
/// form the result.
TANDEM_EXPORT Tensor tensordot(Tensor a, Tensor b, const std::vector<std::int64_t>& a_axes,
                               const std::vector<std::int64_t>& b_axes);
/// Both in one argument, as tf.tensordot takes them: `{{1}, {0}}`.
inline Tensor tensordot(
    Tensor a, Tensor b,
    const std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>& axes) {
  return tensordot(std::move(a), std::move(b), axes.first, axes.second);
}

namespace linalg {

using tandem::einsum;
using tandem::matmul;
using tandem::tensordot;

/// Matrix times vector: [..., n, k] x [..., k] gives [..., n]. Only the options of `a` apply.
TANDEM_EXPORT Tensor matvec(Tensor a, Tensor b, const MatMulOptions& options = {});

}  // namespace linalg
}  // namespace tandem
