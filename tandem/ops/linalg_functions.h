#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "tandem/core/export.h"
#include "tandem/ops/axes.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// Which norm: a number p of Σ|x|^p, "euclidean", or "fro"; infinity for the largest value.
class TANDEM_EXPORT NormOrder {
 public:
  NormOrder(double p) : p_(p) {}
  NormOrder(int p) : p_(p) {}
  /// "euclidean", "fro", "inf"; InvalidArgumentError for others.
  NormOrder(const char* name);
  double p() const { return p_; }
  bool is_frobenius() const { return frobenius_; }
  bool is_euclidean() const { return euclidean_; }

 private:
  double p_ = 2;
  bool frobenius_ = false;
  bool euclidean_ = false;
};

namespace linalg {

// Functions of the matrices in the last two axes, made of the ops in tandem/ops/linalg_ops.h.

/// The norm of all elements, of vectors along one axis, or of matrices in two axes (orders
/// "fro", "euclidean", which is that too, 1, infinity and 2, the largest singular value).
TANDEM_EXPORT Tensor norm(const Tensor& tensor, NormOrder ord = "euclidean", Axes axis = {},
                          bool keepdims = false);
/// The tensor divided by its norm, and the norm.
TANDEM_EXPORT std::pair<Tensor, Tensor> normalize(const Tensor& tensor, NormOrder ord = "euclidean",
                                                  Axes axis = {});
/// The sum of the main diagonal.
TANDEM_EXPORT Tensor trace(const Tensor& x);
/// The number of singular values above `tol` (their largest times the larger side times epsilon by
/// default), int32.
TANDEM_EXPORT Tensor matrix_rank(const Tensor& a, std::optional<double> tol = {});
/// The Moore-Penrose inverse; singular values below rcond times the largest count as 0.
TANDEM_EXPORT Tensor pinv(const Tensor& a, std::optional<double> rcond = {});
/// The matrix exponential, by scaling and squaring of a Padé approximation.
TANDEM_EXPORT Tensor expm(const Tensor& input);
/// From the factors and the permutation of linalg::lu.
TANDEM_EXPORT Tensor lu_solve(const Tensor& lower_upper, const Tensor& perm, const Tensor& rhs);
TANDEM_EXPORT Tensor lu_reconstruct(const Tensor& lower_upper, const Tensor& perm);
TANDEM_EXPORT Tensor lu_matrix_inverse(const Tensor& lower_upper, const Tensor& perm);
/// [...] gives [..., ...]: a tensor of twice the rank with x on its diagonal, and back.
TANDEM_EXPORT Tensor tensor_diag(Tensor diagonal);
TANDEM_EXPORT Tensor tensor_diag_part(Tensor input);
/// The eigenvalues (ascending) of symmetric tridiagonal matrices: alpha on the diagonal, beta
/// beside it.
TANDEM_EXPORT Tensor eigh_tridiagonal(const Tensor& alpha, const Tensor& beta);
/// Solves with a triangular matrix of which only bands are given, [..., bands, n]: the diagonal
/// first and then those below it if lower, else last and above it.
TANDEM_EXPORT Tensor banded_triangular_solve(const Tensor& bands, const Tensor& rhs,
                                             bool lower = true, bool adjoint = false);

}  // namespace linalg

using linalg::norm;

}  // namespace tandem
