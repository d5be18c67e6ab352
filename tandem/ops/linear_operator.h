#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/runtime/tensor.h"

/// Matrices known by their structure: of a diagonal, a product, a Kronecker product and so on only
/// what defines them is stored, and products and solutions use it. Batches of matrices, [..., rows,
/// columns], whose leading axes broadcast. Sizes must be known. Errors are InvalidArgumentError,
/// for shapes and dtypes that do not fit, singular matrices where they are solved with, and what
/// the hints exclude.
namespace tandem::linalg {

class OperatorImpl;

/// What the caller knows of a matrix; nothing: unknown. Not checked, except by the assert_
/// functions.
struct OperatorHints {
  std::optional<bool> is_non_singular = std::nullopt;
  std::optional<bool> is_self_adjoint = std::nullopt;
  std::optional<bool> is_positive_definite = std::nullopt;
};

/// A linear operator: a handle, cheap to copy. Made by one of the classes below.
///
///     td::linalg::LinearOperatorDiag d(td::Tensor{1.0, 2.0});
///     td::Tensor y = d.matvec(td::Tensor{3.0, 4.0});           // [3. 8.]
///     auto both = d.matmul(td::linalg::LinearOperatorIdentity(2));
class TANDEM_EXPORT LinearOperator {
 public:
  // ---- As a matrix. ----
  DType dtype() const;
  PartialShape shape() const;
  PartialShape batch_shape() const;
  std::int64_t range_dimension() const;   ///< rows
  std::int64_t domain_dimension() const;  ///< columns
  int tensor_rank() const { return shape().rank(); }
  Tensor shape_tensor() const;
  Tensor to_dense() const;
  Tensor diag_part() const;
  /// The matrix plus `x`.
  Tensor add_to_tensor(const Tensor& x) const;

  // ---- Products and solutions. ----
  /// A x or, with `adjoint`, Aᴴ x; of xᴴ with adjoint_arg. x: [..., columns, r].
  Tensor matmul(const Tensor& x, bool adjoint = false, bool adjoint_arg = false) const;
  LinearOperator matmul(const LinearOperator& x, bool adjoint = false,
                        bool adjoint_arg = false) const;
  Tensor matvec(const Tensor& x, bool adjoint = false) const;
  /// x with A x = rhs.
  Tensor solve(const Tensor& rhs, bool adjoint = false, bool adjoint_arg = false) const;
  Tensor solvevec(const Tensor& rhs, bool adjoint = false) const;

  // ---- Numbers. ----
  Tensor determinant() const;
  Tensor log_abs_determinant() const;
  Tensor trace() const;
  /// Ascending; InvalidArgumentError unless the operator is said to be self-adjoint.
  Tensor eigvals() const;
  /// The largest singular value over the smallest.
  Tensor cond() const;

  // ---- Other operators. ----
  LinearOperator adjoint() const;
  LinearOperator H() const { return adjoint(); }
  LinearOperator inverse() const;
  /// The lower triangular factor; needs the hints self-adjoint and positive definite.
  LinearOperator cholesky() const;

  // ---- What is known. ----
  std::optional<bool> is_non_singular() const;
  std::optional<bool> is_self_adjoint() const;
  std::optional<bool> is_positive_definite() const;
  bool is_square() const;
  /// Throw InvalidArgumentError where the values are otherwise.
  void assert_non_singular() const;
  void assert_self_adjoint() const;
  void assert_positive_definite() const;

 protected:
  explicit LinearOperator(std::shared_ptr<const OperatorImpl> impl) : impl_(std::move(impl)) {}

 private:
  friend class OperatorImpl;
  std::shared_ptr<const OperatorImpl> impl_;
};

/// A matrix as it is.
struct TANDEM_EXPORT LinearOperatorFullMatrix : LinearOperator {
  explicit LinearOperatorFullMatrix(Tensor matrix, const OperatorHints& hints = {});
};
/// A diagonal, [..., n].
struct TANDEM_EXPORT LinearOperatorDiag : LinearOperator {
  explicit LinearOperatorDiag(Tensor diag, const OperatorHints& hints = {});
};
struct TANDEM_EXPORT LinearOperatorIdentity : LinearOperator {
  explicit LinearOperatorIdentity(std::int64_t num_rows,
                                  const std::vector<std::int64_t>& batch_shape = {},
                                  DType dtype = float32);
};
/// `multiplier`, [...], times the identity.
struct TANDEM_EXPORT LinearOperatorScaledIdentity : LinearOperator {
  LinearOperatorScaledIdentity(std::int64_t num_rows, Tensor multiplier,
                               const OperatorHints& hints = {});
};
struct TANDEM_EXPORT LinearOperatorZeros : LinearOperator {
  explicit LinearOperatorZeros(std::int64_t num_rows, std::int64_t num_columns = -1,
                               const std::vector<std::int64_t>& batch_shape = {},
                               DType dtype = float32);
};
/// The lower triangle of a matrix, whose rest is not read.
struct TANDEM_EXPORT LinearOperatorLowerTriangular : LinearOperator {
  explicit LinearOperatorLowerTriangular(Tensor tril, const OperatorHints& hints = {});
};
/// Three diagonals, [..., 3, n]: above (its last entry unused), on and below (its first entry
/// unused) the main one.
struct TANDEM_EXPORT LinearOperatorTridiag : LinearOperator {
  explicit LinearOperatorTridiag(Tensor diagonals, const OperatorHints& hints = {});
};
/// Constant along diagonals: the first column and the first row, [..., n].
struct TANDEM_EXPORT LinearOperatorToeplitz : LinearOperator {
  LinearOperatorToeplitz(Tensor col, Tensor row, const OperatorHints& hints = {});
};
/// The reflection I - 2 v vᴴ / |v|² along `reflection_axis`, [..., n].
struct TANDEM_EXPORT LinearOperatorHouseholder : LinearOperator {
  explicit LinearOperatorHouseholder(Tensor reflection_axis, const OperatorHints& hints = {});
};
/// (A x)[i] = x[perm[i]]; perm: integers [..., n].
struct TANDEM_EXPORT LinearOperatorPermutation : LinearOperator {
  explicit LinearOperatorPermutation(Tensor perm, DType dtype = float32,
                                     const OperatorHints& hints = {});
};
/// Circular convolutions, by the Fourier transform of their kernel: spectrum [..., n]. Operands and
/// results are complex unless another dtype is given.
struct TANDEM_EXPORT LinearOperatorCirculant : LinearOperator {
  explicit LinearOperatorCirculant(Tensor spectrum, DType input_output_dtype = complex64,
                                   const OperatorHints& hints = {});
};
/// Convolutions of images, spectrum [..., n0, n1], and volumes, whose pixels are numbered row by
/// row.
struct TANDEM_EXPORT LinearOperatorCirculant2D : LinearOperator {
  explicit LinearOperatorCirculant2D(Tensor spectrum, DType input_output_dtype = complex64,
                                     const OperatorHints& hints = {});
};
struct TANDEM_EXPORT LinearOperatorCirculant3D : LinearOperator {
  explicit LinearOperatorCirculant3D(Tensor spectrum, DType input_output_dtype = complex64,
                                     const OperatorHints& hints = {});
};
struct TANDEM_EXPORT LinearOperatorAdjoint : LinearOperator {
  explicit LinearOperatorAdjoint(LinearOperator op);
};
struct TANDEM_EXPORT LinearOperatorInversion : LinearOperator {
  explicit LinearOperatorInversion(LinearOperator op);
};
/// A1 A2 … An.
struct TANDEM_EXPORT LinearOperatorComposition : LinearOperator {
  explicit LinearOperatorComposition(std::vector<LinearOperator> operators,
                                     const OperatorHints& hints = {});
};
/// A1 ⊗ A2 ⊗ … ⊗ An.
struct TANDEM_EXPORT LinearOperatorKronecker : LinearOperator {
  explicit LinearOperatorKronecker(std::vector<LinearOperator> operators,
                                   const OperatorHints& hints = {});
};
/// The operators along the diagonal of blocks.
struct TANDEM_EXPORT LinearOperatorBlockDiag : LinearOperator {
  explicit LinearOperatorBlockDiag(std::vector<LinearOperator> operators,
                                   const OperatorHints& hints = {});
};
/// Rows of blocks, row i of i + 1 blocks.
struct TANDEM_EXPORT LinearOperatorBlockLowerTriangular : LinearOperator {
  explicit LinearOperatorBlockLowerTriangular(std::vector<std::vector<LinearOperator>> operators,
                                              const OperatorHints& hints = {});
};
/// base + U diag(d) Vᴴ with few columns in U and V. diag_update: ones by default, v: u.
struct TANDEM_EXPORT LinearOperatorLowRankUpdate : LinearOperator {
  LinearOperatorLowRankUpdate(LinearOperator base_operator, Tensor u, Tensor diag_update = {},
                              Tensor v = {}, const OperatorHints& hints = {});
};

namespace experimental {

struct ConjugateGradientState {
  Tensor i;  ///< iterations
  Tensor x;  ///< the solution
  Tensor r;  ///< what is left: rhs - A x
  Tensor p;
  Tensor gamma;  ///< r · M r
};
/// x with A x = rhs for a self-adjoint, positive definite operator, by conjugate gradients: ends
/// when |r| ≤ tol |rhs|, or after max_iter iterations. rhs and x: [..., n].
TANDEM_EXPORT ConjugateGradientState conjugate_gradient(const LinearOperator& op, const Tensor& rhs,
                                                        const Tensor& x = {}, double tol = 1e-5,
                                                        int max_iter = 20);

}  // namespace experimental
}  // namespace tandem::linalg
