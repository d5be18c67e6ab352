#pragma once

#include <cstdint>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem::linalg {

// Linear algebra of the matrices in the last two axes: float, double, complex64 and complex128
// (inv and qr also half). All axes before them are a batch. Matrices of the wrong shape, singular
// ones where they are inverted, and sizes beyond what LAPACK counts throw InvalidArgumentError.

/// The lower triangle L with A = L Lᴴ; of A only the lower triangle is read. NaN if A is not
/// positive definite.
TANDEM_EXPORT Tensor cholesky(Tensor input);
/// X with A X = B from A's factor L.
TANDEM_EXPORT Tensor cholesky_solve(Tensor chol, Tensor rhs);
TANDEM_EXPORT Tensor inv(Tensor input, bool adjoint = false);
/// X with A X = B, or with Aᴴ X = B.
TANDEM_EXPORT Tensor solve(Tensor matrix, Tensor rhs, bool adjoint = false);
/// Solves for a triangular matrix, of which the other triangle is not read. Batches broadcast.
TANDEM_EXPORT Tensor triangular_solve(Tensor matrix, Tensor rhs, bool lower = true,
                                      bool adjoint = false);
/// X with the least |A X - B|² + l2_regularizer |X|². `fast` goes through the normal equations;
/// otherwise l2_regularizer does not count and X is the shortest of the best ones.
TANDEM_EXPORT Tensor lstsq(Tensor matrix, Tensor rhs, double l2_regularizer = 0, bool fast = true);
TANDEM_EXPORT Tensor det(Tensor input);

struct LogDeterminant {
  Tensor sign;                 ///< 1 or -1, 0 if singular; of complex matrices of modulus 1
  Tensor log_abs_determinant;  ///< of the input's dtype
};
TANDEM_EXPORT LogDeterminant slogdet(Tensor input);
/// The logarithm of the determinant of a positive definite matrix.
TANDEM_EXPORT Tensor logdet(Tensor matrix);

struct LuFactors {
  Tensor lu;  ///< U, and below the diagonal L without its unit diagonal
  Tensor p;   ///< row i of L U is row p[i] of the matrix
};
TANDEM_EXPORT LuFactors lu(Tensor input, DType output_idx_type = int32);

struct QrFactors {
  Tensor q;
  Tensor r;
};
/// A = Q R with orthonormal columns of Q, as many as the smaller side, or, with full_matrices, as
/// rows.
TANDEM_EXPORT QrFactors qr(Tensor input, bool full_matrices = false);

struct SvdFactors {
  Tensor s;  ///< descending; of the input's dtype
  Tensor u;
  Tensor v;  ///< A = U diag(s) Vᴴ
};
TANDEM_EXPORT SvdFactors svd(Tensor input, bool full_matrices = false);
/// The singular values alone.
TANDEM_EXPORT Tensor svdvals(Tensor input);

struct Eigen {
  Tensor e;
  Tensor v;  ///< eigenvectors, one a column
};
/// Eigenvalues and eigenvectors of self-adjoint matrices, of which the lower triangle is read;
/// eigenvalues ascend.
TANDEM_EXPORT Eigen eigh(Tensor input);
TANDEM_EXPORT Tensor eigvalsh(Tensor input);
/// Eigenvalues and eigenvectors of any square matrix; complex results.
TANDEM_EXPORT Eigen eig(Tensor input);
TANDEM_EXPORT Tensor eigvals(Tensor input);

/// The principal square root, and of complex matrices the principal logarithm.
TANDEM_EXPORT Tensor sqrtm(Tensor input);
TANDEM_EXPORT Tensor logm(Tensor input);

/// X with A X = B. diagonals: [..., 3, n]: those above (its last entry unused), on and below (its
/// first entry unused) the main one.
TANDEM_EXPORT Tensor tridiagonal_solve(Tensor diagonals, Tensor rhs, bool partial_pivoting = true);
/// A X; the diagonals have shape [..., 1, n].
TANDEM_EXPORT Tensor tridiagonal_matmul(Tensor superdiag, Tensor maindiag, Tensor subdiag,
                                        Tensor rhs);

/// The conjugate transpose.
TANDEM_EXPORT Tensor adjoint(Tensor matrix);

}  // namespace tandem::linalg
