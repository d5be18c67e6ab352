// Factorisations of matrices and their gradients.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/diagonal_ops.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/linalg_shapes.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/linalg_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;
using internal::matrix_of;
using internal::MatrixShape;
using internal::with_matrix;
using internal::with_vector;

// ---- Shapes ----

std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a == 0 || b == 0 ? 0 : a == kUnknown || b == kUnknown ? kUnknown : std::min(a, b);
}

void cholesky_shape(InferenceContext& c) {
  internal::require_square(c, 0);
  c.set_output(0, c.input(0));
}

void cholesky_grad_shape(InferenceContext& c) {
  internal::require_square(c, 0);
  internal::require_square(c, 1);
  c.set_output(0, c.input(0).merge(c.input(1)));
}

void lu_shape(InferenceContext& c) {
  const MatrixShape m = matrix_of(c, 0);
  c.set_output(0, c.input(0));
  c.set_output(1, with_vector(m.batch, m.rows));
}

void qr_shape(InferenceContext& c) {
  const MatrixShape m = matrix_of(c, 0);
  const std::int64_t width = c.attr<bool>("full_matrices") ? m.rows : smaller(m.rows, m.columns);
  c.set_output(0, with_matrix(m.batch, m.rows, width));
  c.set_output(1, with_matrix(m.batch, width, m.columns));
}

void svd_shape(InferenceContext& c) {
  const MatrixShape m = matrix_of(c, 0);
  const std::int64_t k = smaller(m.rows, m.columns);
  const bool full = c.attr<bool>("full_matrices"), vectors = c.attr<bool>("compute_uv");
  const PartialShape none = PartialShape::scalar();
  c.set_output(0, with_vector(m.batch, k));
  c.set_output(1, vectors ? with_matrix(m.batch, m.rows, full ? m.rows : k) : none);
  c.set_output(2, vectors ? with_matrix(m.batch, m.columns, full ? m.columns : k) : none);
}

void eig_shape(InferenceContext& c) {
  internal::require_square(c, 0);
  const MatrixShape m = matrix_of(c, 0);
  c.set_output(0, with_vector(m.batch, m.rows));
  c.set_output(
      1, c.attr<bool>("compute_v") ? with_matrix(m.batch, m.rows, m.rows) : PartialShape::scalar());
}

// ---- Gradients ----

// aᴴ b and a bᴴ.
Tensor inner(const Tensor& a, const Tensor& b) { return matmul(a, b, {.adjoint_a = true}); }
Tensor outer(const Tensor& a, const Tensor& b) { return matmul(a, b, {.adjoint_b = true}); }

// 1 / x, but nearly 0 where x is 0.
Tensor safe_reciprocal(const Tensor& x) { return x / (x * x + 1e-20); }

// 1 / (e[j] - e[i]) beside the diagonal.
Tensor reciprocal_differences(const Tensor& e) {
  return linalg::set_diag(safe_reciprocal(expand_dims(e, -2) - expand_dims(e, -1)), zeros_like(e));
}

Tensor halved_diagonal(const Tensor& m) { return linalg::set_diag(m, linalg::diag_part(m) * 0.5); }

void cholesky_grad(GradientContext& g) {
  const Tensor& l = g.output();
  const Tensor unit = linalg::diag(ones_like(linalg::diag_part(l)));
  const Tensor inverse = linalg::triangular_solve(l, unit);
  const Tensor middle = linalg::band_part(halved_diagonal(inner(l, g.grad())), -1, 0);
  const Tensor a = matmul(inner(inverse, middle), inverse);
  g.set(0, (a + linalg::adjoint(a)) * 0.5);
}

// x r⁻ᴴ.
Tensor solve_right(const Tensor& x, const Tensor& r) {
  return linalg::adjoint(linalg::triangular_solve(r, linalg::adjoint(x), false));
}

Tensor qr_grad_deep(const Tensor& q, const Tensor& r, const Tensor& dq, const Tensor& dr) {
  const Tensor qdq = inner(q, dq);
  const Tensor rdr = outer(r, dr);
  const Tensor lower =
      linalg::band_part(qdq - linalg::adjoint(qdq) + rdr - linalg::adjoint(rdr), -1, 0);
  const Tensor a = matmul(q, dr + solve_right(lower, r)) + solve_right(dq - matmul(q, qdq), r);
  if (!is_complex(q.dtype())) return a;
  const Tensor m = linalg::diag(linalg::diag_part(rdr - linalg::adjoint(qdq)));
  const Tensor correction = m - cast(math::real(m), q.dtype());
  return a + solve_right(matmul(q, linalg::adjoint(correction)), r);
}

void qr_grad(GradientContext& g) {
  const Tensor &q = g.output(0), &r = g.output(1);
  const std::int64_t rows = q.dim(-2), columns = r.dim(-1);
  if (rows < 0 || columns < 0) {
    throw InvalidArgumentError("The gradient of Qr needs matrices of known size while tracing.");
  }
  if (rows > columns && q.dim(-1) == rows) {
    throw UnimplementedError(
        "The gradient of Qr is not there for deep matrices with full_matrices.");
  }
  if (rows >= columns) return g.set(0, qr_grad_deep(q, r, g.grad(0), g.grad(1)));
  const auto left = [&](const Tensor& m) { return index(m, {ellipsis, Slice(none, rows)}); };
  const auto right = [&](const Tensor& m) { return index(m, {ellipsis, Slice(rows, none)}); };
  const Tensor y = right(g.input(0)), dv = right(g.grad(1));
  const Tensor dx = qr_grad_deep(q, left(r), g.grad(0) + outer(y, dv), left(g.grad(1)));
  g.set(0, concat({dx, matmul(q, dv)}, -1));
}

void svd_grad(GradientContext& g) {
  const Tensor& a = g.input(0);
  if (!g.attr<bool>("compute_uv")) {
    const linalg::SvdFactors f = linalg::svd(a);
    return g.set(0, matmul(f.u, outer(linalg::diag(g.grad(0)), f.v)));
  }
  std::int64_t m = a.dim(-2), n = a.dim(-1);
  if (m < 0 || n < 0) {
    throw InvalidArgumentError("The gradient of Svd needs matrices of known size while tracing.");
  }
  const bool full = g.attr<bool>("full_matrices");
  if (full && std::abs(m - n) > 1) {
    throw UnimplementedError(
        "The gradient of Svd with full_matrices is there only if the sides differ by at most 1.");
  }
  Tensor s = g.output(0), u = g.output(1), v = g.output(2);
  Tensor du = g.grad(1), dv = g.grad(2);
  const bool turned = m > n;  // then that of Aᴴ = V diag(s) Uᴴ
  if (turned) {
    std::swap(m, n);
    std::swap(u, v);
    std::swap(du, dv);
  }
  const Tensor s_matrix = linalg::diag(s);
  const Tensor f = reciprocal_differences(square(s));
  const Tensor s_inverse = linalg::diag(safe_reciprocal(s));
  const Tensor v1 = index(v, {ellipsis, Slice(none, m)});
  const Tensor dv1 = index(dv, {ellipsis, Slice(none, m)});
  const Tensor udu = inner(u, du), vdv = inner(v1, dv1);
  const Tensor fu = f * udu, fv = f * vdv;
  const Tensor middle = linalg::diag(g.grad(0)) + matmul(fu + linalg::adjoint(fu), s_matrix) +
                        matmul(s_matrix, fv + linalg::adjoint(fv));
  Tensor result = matmul(u, outer(middle, v1));
  if (m != n) {
    const Tensor dv1_turned = linalg::adjoint(dv1);
    Tensor rest = dv1_turned - outer(matmul(dv1_turned, v1), v1);
    if (full) {
      const Tensor v2 = index(v, {ellipsis, Slice(m, n)});
      const Tensor dv2 = index(dv, {ellipsis, Slice(m, n)});
      rest = rest - outer(inner(v1, dv2), v2);
    }
    result = result + matmul(matmul(u, s_inverse), rest);
  }
  if (is_complex(a.dtype())) {
    const Tensor l = linalg::diag(linalg::diag_part(vdv));
    const Tensor phase = matmul(s_inverse, l - math::conj(l)) * 0.5;
    result = result + matmul(u, outer(phase, v1)) * 0.5;
  }
  g.set(0, turned ? linalg::adjoint(result) : result);
}

void self_adjoint_eig_grad(GradientContext& g) {
  Tensor a;
  if (g.attr<bool>("compute_v")) {
    const Tensor &e = g.output(0), &v = g.output(1);
    const Tensor middle = linalg::diag(g.grad(0)) + reciprocal_differences(e) * inner(v, g.grad(1));
    a = matmul(v, outer(middle, v));
  } else {
    const Tensor v = linalg::eigh(g.input(0)).v;
    a = matmul(v, outer(linalg::diag(g.grad(0)), v));
  }
  // Only the lower triangle was read.
  g.set(0, halved_diagonal(linalg::band_part(a + linalg::adjoint(a), -1, 0)));
}

void eig_grad(GradientContext& g) {
  const Tensor& a = g.input(0);
  const bool vectors = g.attr<bool>("compute_v");
  const Tensor v = vectors ? g.output(1) : linalg::eig(a).v;
  const Tensor vh = linalg::adjoint(v);
  Tensor middle = linalg::diag(g.grad(0));
  if (vectors) {
    const Tensor f = math::conj(reciprocal_differences(g.output(0)));
    const Tensor vdv = matmul(vh, g.grad(1));
    const Tensor diagonal = linalg::diag(linalg::diag_part(cast(math::real(vdv), vdv.dtype())));
    middle = middle + f * (vdv - matmul(matmul(vh, v), diagonal));
  }
  g.set(0, cast(linalg::solve(vh, matmul(middle, vh)), a.dtype()));
}

// ---- Declarations ----

const OpRegistration kCholesky{{.name = "Cholesky",
                                .inputs = "input: T",
                                .outputs = "output: T",
                                .attrs = "T: {double, float, half, complex64, complex128}",
                                .shape = cholesky_shape,
                                .gradient = cholesky_grad,
                                .flops = flops::cubic<1>,
                                .doc = "The lower triangle L with A = L Lᴴ."}};

const OpRegistration kCholeskyGrad{{.name = "CholeskyGrad",
                                    .inputs = "l: T, grad: T",
                                    .outputs = "output: T",
                                    .attrs = "T: {half, float, double}",
                                    .shape = cholesky_grad_shape,
                                    .flops = flops::cubic<6>,
                                    .doc = "The gradient of Cholesky towards its input."}};

const OpRegistration kLu{{.name = "Lu",
                          .inputs = "input: T",
                          .outputs = "lu: T, p: output_idx_type",
                          .attrs = "T: {double, float, half, complex64, complex128}; "
                                   "output_idx_type: index = int32",
                          .shape = lu_shape,
                          .flops = flops::cubic<2>,
                          .doc = "Triangles with L U = the matrix with its rows in the order p."}};

const OpRegistration kQr{{.name = "Qr",
                          .inputs = "input: T",
                          .outputs = "q: T, r: T",
                          .attrs = "full_matrices: bool = false; T: {double, float, half, "
                                   "complex64, complex128}",
                          .shape = qr_shape,
                          .gradient = qr_grad,
                          .flops = flops::cubic<6>,
                          .doc = "Orthonormal columns Q and an upper triangle R with A = Q R."}};

const OpRegistration kSvd{{.name = "Svd",
                           .inputs = "input: T",
                           .outputs = "s: T, u: T, v: T",
                           .attrs = "compute_uv: bool = true; full_matrices: bool = false; T: "
                                    "{double, float, half, complex64, complex128}",
                           .shape = svd_shape,
                           .gradient = svd_grad,
                           .flops = flops::cubic<60>,
                           .doc = "Singular values and vectors: A = U diag(s) Vᴴ."}};

const OpRegistration kSelfAdjointEig{{.name = "SelfAdjointEigV2",
                                      .inputs = "input: T",
                                      .outputs = "e: T, v: T",
                                      .attrs = "compute_v: bool = true; T: {double, float, half, "
                                               "complex64, complex128}",
                                      .shape = eig_shape,
                                      .gradient = self_adjoint_eig_grad,
                                      .flops = flops::cubic<27>,
                                      .doc = "Ascending eigenvalues, and eigenvectors, of "
                                             "self-adjoint matrices."}};

const OpRegistration kEig{{.name = "Eig",
                           .inputs = "input: T",
                           .outputs = "e: Tout, v: Tout",
                           .attrs = "compute_v: bool = true; T: {float, double, complex64, "
                                    "complex128}; Tout: {complex64, complex128}",
                           .shape = eig_shape,
                           .gradient = eig_grad,
                           .flops = flops::cubic<75>,
                           .doc = "Eigenvalues and eigenvectors of square matrices."}};

DType complex_of(DType dtype) {
  return dtype == DType::kDouble || dtype == DType::kComplex128 ? DType::kComplex128
                                                                : DType::kComplex64;
}

}  // namespace

namespace linalg {

Tensor cholesky(Tensor input) { return call1(kCholesky, {std::move(input)}); }

LuFactors lu(Tensor input, DType output_idx_type) {
  auto out = call(kLu, {std::move(input)}, {{"output_idx_type", output_idx_type}});
  return {std::move(out[0]), std::move(out[1])};
}

QrFactors qr(Tensor input, bool full_matrices) {
  auto out = call(kQr, {std::move(input)}, {{"full_matrices", full_matrices}});
  return {std::move(out[0]), std::move(out[1])};
}

SvdFactors svd(Tensor input, bool full_matrices) {
  auto out = call(kSvd, {std::move(input)}, {{"full_matrices", full_matrices}});
  return {std::move(out[0]), std::move(out[1]), std::move(out[2])};
}
Tensor svdvals(Tensor input) {
  return std::move(call(kSvd, {std::move(input)}, {{"compute_uv", false}})[0]);
}

Eigen eigh(Tensor input) {
  auto out = call(kSelfAdjointEig, {std::move(input)});
  return {std::move(out[0]), std::move(out[1])};
}
Tensor eigvalsh(Tensor input) {
  return std::move(call(kSelfAdjointEig, {std::move(input)}, {{"compute_v", false}})[0]);
}

Eigen eig(Tensor input) {
  const DType out_type = complex_of(input.dtype());
  auto out = call(kEig, {std::move(input)}, {{"Tout", out_type}});
  return {std::move(out[0]), std::move(out[1])};
}
Tensor eigvals(Tensor input) {
  const DType out_type = complex_of(input.dtype());
  return std::move(call(kEig, {std::move(input)}, {{"compute_v", false}, {"Tout", out_type}})[0]);
}

}  // namespace linalg
}  // namespace tandem
