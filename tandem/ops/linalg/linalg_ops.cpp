// Solvers, inverses, determinants. The factorisations are in linalg_factor_ops.cpp.
#include "tandem/ops/linalg_ops.h"

#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/broadcast_gradient.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/diagonal_ops.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/linalg_shapes.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;
using internal::matrix_of;
using internal::with_matrix;

void square_shape(InferenceContext& c) {
  internal::require_square(c, 0);
  c.set_output(0, c.input(0));
}

// The right sides of a system of `rows` equations; the result has `columns` rows.
void solve_shape(InferenceContext& c, bool square) {
  if (square) internal::require_square(c, 0);
  const internal::MatrixShape a = matrix_of(c, 0);
  const internal::MatrixShape b = matrix_of(c, 1);
  c.merge_dim(a.rows, b.rows, "rows of matrix and rhs");
  PartialShape batch = a.batch.merge(b.batch);
  c.set_output(0, with_matrix(batch, square ? (b.rows == kUnknown ? a.rows : b.rows) : a.columns,
                              b.columns));
}
void square_solve_shape(InferenceContext& c) { solve_shape(c, true); }
void least_squares_shape(InferenceContext& c) {
  c.require_rank(2, 0);
  solve_shape(c, false);
}

void triangular_shape(InferenceContext& c) {
  internal::require_square(c, 0);
  const internal::MatrixShape a = matrix_of(c, 0);
  const internal::MatrixShape b = matrix_of(c, 1);
  const std::int64_t rows = c.merge_dim(a.rows, b.rows, "rows of matrix and rhs");
  if (!a.batch.has_rank() || !b.batch.has_rank()) return c.set_output(0, PartialShape::unknown());
  c.set_output(0, with_matrix(broadcast(a.batch, b.batch), rows, b.columns));
}

void determinant_shape(InferenceContext& c) {
  internal::require_square(c, 0);
  const PartialShape batch = matrix_of(c, 0).batch;
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, batch);
}

void inverse_grad(GradientContext& g) {
  const Tensor& inverse = g.output();
  const bool adjoint = g.attr<bool>("adjoint");
  const Tensor right = matmul(g.grad(), inverse, {.adjoint_a = adjoint, .adjoint_b = !adjoint});
  g.set(0, -matmul(inverse, right, {.adjoint_a = !adjoint}));
}

void solve_grad(GradientContext& g) {
  const bool adjoint = g.attr<bool>("adjoint");
  const Tensor b = linalg::solve(g.input(0), g.grad(), !adjoint);
  if (g.needs(0)) {
    g.set(0, adjoint ? -matmul(g.output(), b, {.adjoint_b = true})
                     : -matmul(b, g.output(), {.adjoint_b = true}));
  }
  if (g.needs(1)) g.set(1, b);
}

void triangular_grad(GradientContext& g) {
  const bool adjoint = g.attr<bool>("adjoint"), lower = g.attr<bool>("lower");
  const Tensor b = linalg::triangular_solve(g.input(0), g.grad(), lower, !adjoint);
  if (g.needs(0)) {
    const Tensor a = adjoint ? -matmul(g.output(), b, {.adjoint_b = true})
                             : -matmul(b, g.output(), {.adjoint_b = true});
    const Tensor triangle = lower ? linalg::band_part(a, -1, 0) : linalg::band_part(a, 0, -1);
    g.set(0, sum_to_shape_of(triangle, g.input(0)));
  }
  if (g.needs(1)) g.set(1, sum_to_shape_of(b, g.input(1)));
}

// The factor of Aᴴ A (or A Aᴴ) + l2 I.
Tensor gramian_factor(const Tensor& a, const Tensor& l2, bool of_columns) {
  const Tensor gram = matmul(a, a, {.adjoint_a = of_columns, .adjoint_b = !of_columns});
  const Tensor diagonal = linalg::diag_part(gram);
  return linalg::cholesky(linalg::set_diag(gram, diagonal + cast(l2, a.dtype())));
}

void least_squares_grad(GradientContext& g) {
  if (!g.attr<bool>("fast")) {
    throw InvalidArgumentError("Gradient not defined for fast=False");
  }
  const Tensor &a = g.input(0), &b = g.input(1), &x = g.output();
  const std::int64_t rows = a.dim(-2), columns = a.dim(-1);
  if (rows < 0 || columns < 0) {
    throw InvalidArgumentError(
        "The gradient of MatrixSolveLs needs matrices of known size while tracing.");
  }
  if (rows >= columns) {
    const Tensor z = linalg::cholesky_solve(gramian_factor(a, g.input(2), true), g.grad());
    const Tensor xz = matmul(x, z, {.adjoint_b = true});
    g.set(0, matmul(b, z, {.adjoint_b = true}) - matmul(a, xz + linalg::adjoint(xz)));
    g.set(1, matmul(a, z));
    return;
  }
  const Tensor factor = gramian_factor(a, g.input(2), false);
  const Tensor grad_b = linalg::cholesky_solve(factor, matmul(a, g.grad()));
  const Tensor z = linalg::cholesky_solve(factor, b);
  const Tensor a1 = -matmul(grad_b, matmul(z, a, {.adjoint_a = true}));
  const Tensor a2 = g.grad() - matmul(a, grad_b, {.adjoint_a = true});
  g.set(0, a1 + matmul(z, a2, {.adjoint_b = true}));
  g.set(1, grad_b);
}

Tensor as_matrices(const Tensor& scalars) { return expand_dims(expand_dims(scalars, -1), -1); }

// TensorFlow's formula; of complex matrices the determinant is not conjugated.
void determinant_grad(GradientContext& g) {
  g.set(0, as_matrices(g.grad() * g.output()) * linalg::inv(g.input(0), true));
}
void log_determinant_grad(GradientContext& g) {
  g.set(0, as_matrices(g.grad(1)) * linalg::inv(g.input(0), true));
}

const OpRegistration kInverse{{.name = "MatrixInverse",
                               .inputs = "input: T",
                               .outputs = "output: T",
                               .attrs = "adjoint: bool = false; T: {double, float, half, "
                                        "complex64, complex128}",
                               .shape = square_shape,
                               .gradient = inverse_grad,
                               .flops = flops::cubic<6>,
                               .doc = "The inverses of matrices or of their adjoints."}};

const OpRegistration kSolve{{.name = "MatrixSolve",
                             .inputs = "matrix: T, rhs: T",
                             .outputs = "output: T",
                             .attrs = "adjoint: bool = false; T: {double, float, half, complex64, "
                                      "complex128}",
                             .shape = square_solve_shape,
                             .gradient = solve_grad,
                             .flops = flops::solve,
                             .doc = "X with A X = B."}};

const OpRegistration kTriangular{
    {.name = "MatrixTriangularSolve",
     .inputs = "matrix: T, rhs: T",
     .outputs = "output: T",
     .attrs = "lower: bool = true; adjoint: bool = false; T: {bfloat16, double, float, half, "
              "complex64, complex128}",
     .shape = triangular_shape,
     .gradient = triangular_grad,
     .flops = flops::triangular_solve,
     .doc = "X with A X = B for a triangle of A."}};

const OpRegistration kMinSquares{
    {.name = "MatrixSolveLs",
     .inputs = "matrix: T, rhs: T, l2_regularizer: double",
     .outputs = "output: T",
     .attrs = "T: {double, float, half, complex64, complex128}; fast: bool = true",
     .shape = least_squares_shape,
     .gradient = least_squares_grad,
     .traits = {.host_inputs = 0b100},
     .flops = flops::solve,
     .doc = "X with the least |A X - B|² + l2_regularizer |X|²."}};

const OpRegistration kDeterminant{{.name = "MatrixDeterminant",
                                   .inputs = "input: T",
                                   .outputs = "output: T",
                                   .attrs = "T: {half, float, double, complex64, complex128}",
                                   .shape = determinant_shape,
                                   .gradient = determinant_grad,
                                   .flops = flops::cubic<2>,
                                   .doc = "The determinants of square matrices."}};

const OpRegistration kLogDeterminant{{.name = "LogMatrixDeterminant",
                                      .inputs = "input: T",
                                      .outputs = "sign: T, log_abs_determinant: T",
                                      .attrs = "T: {half, float, double, complex64, complex128}",
                                      .shape = determinant_shape,
                                      .gradient = log_determinant_grad,
                                      .flops = flops::cubic<2>,
                                      .doc = "Sign and logarithm of the modulus of the "
                                             "determinant."}};

}  // namespace

namespace linalg {

Tensor adjoint(Tensor matrix) { return math::conj(matrix_transpose(std::move(matrix))); }

Tensor inv(Tensor input, bool adjoint) {
  return call1(kInverse, {std::move(input)}, {{"adjoint", adjoint}});
}
Tensor solve(Tensor matrix, Tensor rhs, bool adjoint) {
  return call1(kSolve, {std::move(matrix), std::move(rhs)}, {{"adjoint", adjoint}});
}
Tensor triangular_solve(Tensor matrix, Tensor rhs, bool lower, bool adjoint) {
  return call1(kTriangular, {std::move(matrix), std::move(rhs)},
               {{"lower", lower}, {"adjoint", adjoint}});
}
Tensor cholesky_solve(Tensor chol, Tensor rhs) {
  return triangular_solve(chol, triangular_solve(chol, std::move(rhs)), true, true);
}
Tensor lstsq(Tensor matrix, Tensor rhs, double l2_regularizer, bool fast) {
  return call1(kMinSquares,
               {std::move(matrix), std::move(rhs), Tensor(Array::scalar(l2_regularizer))},
               {{"fast", fast}});
}
Tensor det(Tensor input) { return call1(kDeterminant, {std::move(input)}); }
LogDeterminant slogdet(Tensor input) {
  auto out = call(kLogDeterminant, {std::move(input)});
  return {std::move(out[0]), std::move(out[1])};
}
Tensor logdet(Tensor matrix) {
  const Tensor diagonal = math::real(diag_part(cholesky(std::move(matrix))));
  return reduce_sum(math::log(diagonal), -1) * 2;
}

}  // namespace linalg
}  // namespace tandem
