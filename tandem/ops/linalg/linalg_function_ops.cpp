// Functions of matrices, and tridiagonal matrices.
#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/linalg_shapes.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/linalg_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;
using internal::matrix_of;
using internal::MatrixShape;

void square_shape(InferenceContext& c) {
  internal::require_square(c, 0);
  c.set_output(0, c.input(0));
}

// With S = sqrt(A) and dA = dS S + S dS the gradient G solves G Sᴴ + Sᴴ G = grad: one linear
// system for all elements.
void sqrt_grad(GradientContext& g) {
  const std::int64_t n = g.output().dim(-1);
  if (n < 0) {
    throw InvalidArgumentError(
        "The gradient of MatrixSquareRoot needs matrices of known size while tracing.");
  }
  const Tensor s = reshape(g.output(), {-1, n, n});
  const Tensor one = eye(n, {}, s.dtype());
  const Tensor system = einsum("ij,bkl->bikjl", {one, math::conj(s)}) +
                        einsum("bij,kl->bikjl", {linalg::adjoint(s), one});
  const Tensor grad = reshape(g.grad(), {-1, n * n, 1});
  g.set(0, reshape(linalg::solve(reshape(system, {-1, n * n, n * n}), grad), shape(g.grad())));
}

void tridiagonal_solve_shape(InferenceContext& c) {
  const MatrixShape a = matrix_of(c, 0), b = matrix_of(c, 1);
  c.merge_dim(a.rows, 3, "diagonals");
  const std::int64_t n = c.merge_dim(a.columns, b.rows, "rows of the matrix and rhs");
  c.set_output(0, internal::with_matrix(a.batch.merge(b.batch), n, b.columns));
}

void tridiagonal_product_shape(InferenceContext& c) {
  const MatrixShape b = matrix_of(c, 3);
  std::int64_t n = b.rows;
  for (int i = 0; i < 3; ++i) {
    const MatrixShape diagonal = matrix_of(c, i);
    c.merge_dim(diagonal.rows, 1, "rows of a diagonal");
    n = c.merge_dim(n, diagonal.columns, "diagonals and rows of rhs");
  }
  c.set_output(0, internal::with_matrix(b.batch, n, b.columns));
}

// Row i is row i + 1, or i - 1, of x; zeros come in at the end.
Tensor rows_up(const Tensor& x) {
  return concat({index(x, {ellipsis, Slice(1, none), Slice()}),
                 zeros_like(index(x, {ellipsis, Slice(none, 1), Slice()}))},
                -2);
}
Tensor rows_down(const Tensor& x) {
  return concat({zeros_like(index(x, {ellipsis, Slice(none, 1), Slice()})),
                 index(x, {ellipsis, Slice(none, -1), Slice()})},
                -2);
}

Tensor solve_tridiagonal(const Tensor& diagonals, const Tensor& rhs, const AttrMap& attrs) {
  return std::move(raw_op("TridiagonalSolve", {diagonals, rhs}, attrs)[0]);
}

// The transpose has the outer diagonals in each other's place, moved by one. As in TensorFlow,
// complex matrices are not conjugated.
void tridiagonal_solve_grad(GradientContext& g) {
  const Tensor columns = matrix_transpose(g.input(0));  // [..., n, 3]
  const auto column = [&](int i) { return index(columns, {ellipsis, Slice(i, i + 1)}); };
  const Tensor turned =
      matrix_transpose(concat({rows_up(column(2)), column(1), rows_down(column(0))}, -1));
  const Tensor b = solve_tridiagonal(turned, g.grad(),
                                     {{"partial_pivoting", g.attr<bool>("partial_pivoting")},
                                      {"perturb_singular", g.attr<bool>("perturb_singular")}});
  if (g.needs(1)) g.set(1, b);
  if (g.needs(0)) {
    const Tensor& x = g.output();
    const Tensor above = reduce_sum(b * rows_up(x), -1);
    const Tensor below = reduce_sum(b * rows_down(x), -1);
    g.set(0, -stack({above, reduce_sum(b * x, -1), below}, -2));
  }
}

void tridiagonal_product_grad(GradientContext& g) {
  const Tensor x = math::conj(g.input(3));
  const auto diagonal_grad = [&](const Tensor& shifted) {
    return expand_dims(reduce_sum(shifted * g.grad(), -1), -2);
  };
  if (g.needs(0)) g.set(0, diagonal_grad(rows_up(x)));
  if (g.needs(1)) g.set(1, diagonal_grad(x));
  if (g.needs(2)) g.set(2, diagonal_grad(rows_down(x)));
  if (g.needs(3)) {
    const auto column = [&](int i) { return linalg::adjoint(g.input(i)); };
    g.set(3,
          rows_down(column(0) * g.grad()) + column(1) * g.grad() + rows_up(column(2) * g.grad()));
  }
}

const OpRegistration kSqrt{{.name = "MatrixSquareRoot",
                            .inputs = "input: T",
                            .outputs = "output: T",
                            .attrs = "T: {double, float, half, complex64, complex128}",
                            .shape = square_shape,
                            .gradient = sqrt_grad,
                            .flops = flops::cubic<75>,
                            .doc = "The principal square root of a matrix."}};

const OpRegistration kLog{{.name = "MatrixLogarithm",
                           .inputs = "input: T",
                           .outputs = "output: T",
                           .attrs = "T: {complex64, complex128}",
                           .shape = square_shape,
                           .flops = flops::cubic<150>,
                           .doc = "The principal logarithm of a matrix."}};

const OpRegistration kTridiagonalSolve{
    {.name = "TridiagonalSolve",
     .inputs = "diagonals: T, rhs: T",
     .outputs = "output: T",
     .attrs = "partial_pivoting: bool = true; perturb_singular: bool = false; T: {double, float, "
              "complex64, complex128}",
     .shape = tridiagonal_solve_shape,
     .gradient = tridiagonal_solve_grad,
     .doc = "X with A X = B for the diagonals above, on and below the main one of A."}};

const OpRegistration kTridiagonalMatMul{
    {.name = "TridiagonalMatMul",
     .inputs = "superdiag: T, maindiag: T, subdiag: T, rhs: T",
     .outputs = "output: T",
     .attrs = "T: {double, float, complex64, complex128}",
     .shape = tridiagonal_product_shape,
     .gradient = tridiagonal_product_grad,
     .doc = "The product of a tridiagonal matrix and a matrix."}};

}  // namespace

namespace linalg {

Tensor sqrtm(Tensor input) { return call1(kSqrt, {std::move(input)}); }
Tensor logm(Tensor input) { return call1(kLog, {std::move(input)}); }
Tensor tridiagonal_solve(Tensor diagonals, Tensor rhs, bool partial_pivoting) {
  return call1(kTridiagonalSolve, {std::move(diagonals), std::move(rhs)},
               {{"partial_pivoting", partial_pivoting}});
}
Tensor tridiagonal_matmul(Tensor superdiag, Tensor maindiag, Tensor subdiag, Tensor rhs) {
  return call1(kTridiagonalMatMul,
               {std::move(superdiag), std::move(maindiag), std::move(subdiag), std::move(rhs)});
}

}  // namespace linalg
}  // namespace tandem
