#include "tandem/ops/linear_operator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/debugging_ops.h"
#include "tandem/ops/diagonal_ops.h"
#include "tandem/ops/internal/operator_impl.h"
#include "tandem/ops/linalg_functions.h"
#include "tandem/ops/linalg_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::linalg {
namespace operators {

std::vector<std::int64_t> dims_of(const PartialShape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

void require_known(const Tensor& x, int least_rank, const char* what) {
  if (!x.defined()) throw InvalidArgumentError(cat(what, ": the tensor is undefined."));
  const PartialShape shape = x.partial_shape();
  if (shape.is_fully_known() && shape.rank() >= least_rank) return;
  throw InvalidArgumentError(cat(what, ": needs a tensor of ", least_rank,
                                 " axes or more and known sizes, got shape ", shape, "."));
}

std::vector<std::int64_t> batch_of(const PartialShape& shape, std::size_t count) {
  std::vector<std::int64_t> dims = dims_of(shape);
  dims.resize(dims.size() - count);
  return dims;
}

PartialShape matrix_shape(std::vector<std::int64_t> batch, std::int64_t rows,
                          std::int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return PartialShape(std::move(batch));
}

std::vector<std::int64_t> common_batch(const std::vector<std::int64_t>& a,
                                       const std::vector<std::int64_t>& b) {
  return broadcast_static_shape(Shape(a), Shape(b)).to_vector();
}

Tensor with_batch(const Tensor& x, const std::vector<std::int64_t>& batch) {
  const PartialShape shape = x.partial_shape();
  if (batch_of(shape, 2) == batch) return x;
  std::vector<std::int64_t> dims = batch;
  dims.push_back(shape.dim(shape.rank() - 2));
  dims.push_back(shape.dim(shape.rank() - 1));
  return broadcast_to(x, dims);
}

std::pair<Tensor, Tensor> same_batch(const Tensor& a, const Tensor& b) {
  const auto batch = common_batch(batch_of(a.partial_shape(), 2), batch_of(b.partial_shape(), 2));
  return {with_batch(a, batch), with_batch(b, batch)};
}

Tensor conj_if(bool wanted, const Tensor& x) {
  return wanted && is_complex(x.dtype()) ? math::conj(x) : x;
}

Tensor column(const Tensor& x) { return expand_dims(x, -1); }

Tensor number(double value, DType dtype) {
  return cast(Tensor(std::vector<double>{value}), dtype)[0];
}

}  // namespace operators

using namespace operators;  // NOLINT: the helpers of this file

OperatorImpl::~OperatorImpl() = default;

Tensor OperatorImpl::apply(const Tensor& x, bool adjoint) const {
  return linalg::matmul(dense(), x, {.adjoint_a = adjoint});
}
Tensor OperatorImpl::solve(const Tensor& rhs, bool adjoint) const {
  const auto [matrix, b] = same_batch(dense(), rhs);
  return linalg::solve(matrix, b, adjoint);
}
Tensor OperatorImpl::diagonal() const { return linalg::diag_part(dense()); }
Tensor OperatorImpl::determinant() const { return linalg::det(dense()); }
Tensor OperatorImpl::log_abs_determinant() const {
  return linalg::slogdet(dense()).log_abs_determinant;
}

namespace {

void require_square(const OperatorImpl& op, const char* what) {
  if (op.rows() == op.columns()) return;
  throw InvalidArgumentError(cat(
      "LinearOperator::", what, ": needs a square matrix, but the shape ", "is ", op.shape(), "."));
}

void check_operand(const OperatorImpl& op, const Tensor& x, std::int64_t wanted, const char* what) {
  require_known(x, 2, what);
  if (x.dtype() != op.dtype()) {
    throw InvalidArgumentError(cat("LinearOperator::", what, ": the operator has dtype ",
                                   op.dtype(), " but the tensor ", x.dtype(), "."));
  }
  if (x.dim(-2) == wanted) return;
  throw InvalidArgumentError(cat("LinearOperator::", what, ": the operator has shape ", op.shape(),
                                 ", so axis -2 of the tensor must have size ", wanted,
                                 ", but its shape is ", x.partial_shape(), "."));
}

class FullMatrix final : public OperatorImpl {
 public:
  FullMatrix(Tensor matrix, const OperatorHints& hints)
      : OperatorImpl(matrix.dtype(), matrix.partial_shape(), hints), matrix_(std::move(matrix)) {}
  Tensor dense() const override { return matrix_; }

 private:
  Tensor matrix_;
};

}  // namespace

LinearOperatorFullMatrix::LinearOperatorFullMatrix(Tensor matrix, const OperatorHints& hints)
    : LinearOperator([&] {
        require_known(matrix, 2, "LinearOperatorFullMatrix");
        return std::make_shared<FullMatrix>(matrix, hints);
      }()) {}

DType LinearOperator::dtype() const { return impl_->dtype(); }
PartialShape LinearOperator::shape() const { return impl_->shape(); }
PartialShape LinearOperator::batch_shape() const {
  return PartialShape(batch_of(impl_->shape(), 2));
}
std::int64_t LinearOperator::range_dimension() const { return impl_->rows(); }
std::int64_t LinearOperator::domain_dimension() const { return impl_->columns(); }
Tensor LinearOperator::shape_tensor() const {
  std::vector<std::int32_t> dims;
  for (const std::int64_t d : impl_->shape().dims()) dims.push_back(static_cast<std::int32_t>(d));
  return Tensor::from(dims);
}
Tensor LinearOperator::to_dense() const { return impl_->dense(); }
Tensor LinearOperator::diag_part() const { return impl_->diagonal(); }
Tensor LinearOperator::add_to_tensor(const Tensor& x) const { return impl_->dense() + x; }

Tensor LinearOperator::matmul(const Tensor& x, bool adjoint, bool adjoint_arg) const {
  const Tensor operand = adjoint_arg ? linalg::adjoint(x) : x;
  check_operand(*impl_, operand, adjoint ? impl_->rows() : impl_->columns(), "matmul");
  return impl_->apply(operand, adjoint);
}
LinearOperator LinearOperator::matmul(const LinearOperator& x, bool adjoint,
                                      bool adjoint_arg) const {
  return LinearOperatorComposition(
      {adjoint ? this->adjoint() : *this, adjoint_arg ? x.adjoint() : x});
}
Tensor LinearOperator::matvec(const Tensor& x, bool adjoint) const {
  return squeeze(matmul(column(x), adjoint), {-1});
}
Tensor LinearOperator::solve(const Tensor& rhs, bool adjoint, bool adjoint_arg) const {
  require_square(*impl_, "solve");
  if (impl_->hints().is_non_singular == false) {
    throw InvalidArgumentError(
        "Exact solve not implemented for an operator that is expected to be singular.");
  }
  const Tensor operand = adjoint_arg ? linalg::adjoint(rhs) : rhs;
  check_operand(*impl_, operand, impl_->rows(), "solve");
  return impl_->solve(operand, adjoint);
}
Tensor LinearOperator::solvevec(const Tensor& rhs, bool adjoint) const {
  return squeeze(solve(column(rhs), adjoint), {-1});
}

Tensor LinearOperator::determinant() const {
  require_square(*impl_, "determinant");
  return impl_->determinant();
}
Tensor LinearOperator::log_abs_determinant() const {
  require_square(*impl_, "log_abs_determinant");
  return impl_->log_abs_determinant();
}
Tensor LinearOperator::trace() const { return reduce_sum(diag_part(), -1); }
Tensor LinearOperator::eigvals() const {
  if (is_self_adjoint() != true)
    throw InvalidArgumentError("Only self-adjoint matrices are supported.");
  return linalg::eigvalsh(to_dense());
}
Tensor LinearOperator::cond() const {
  const Tensor values = abs(linalg::svdvals(to_dense()));
  return reduce_max(values, -1) / reduce_min(values, -1);
}

LinearOperator LinearOperator::adjoint() const {
  const bool real = !is_complex(dtype());
  if (is_self_adjoint() == true && (real || is_self_adjoint() == true)) return *this;
  return LinearOperatorAdjoint(*this);
}
LinearOperator LinearOperator::inverse() const {
  require_square(*impl_, "inverse");
  if (impl_->hints().is_non_singular == false)
    throw InvalidArgumentError(
        "Cannot take the Inverse: This operator represents a singular matrix.");
  return LinearOperatorInversion(*this);
}
LinearOperator LinearOperator::cholesky() const {
  if (is_positive_definite() != true || is_self_adjoint() != true) {
    throw InvalidArgumentError(
        "Cannot take the Cholesky decomposition: Not a positive definite self adjoint matrix.");
  }
  return LinearOperatorLowerTriangular(linalg::cholesky(to_dense()), {.is_non_singular = true});
}

std::optional<bool> LinearOperator::is_non_singular() const {
  return impl_->hints().is_non_singular;
}
std::optional<bool> LinearOperator::is_self_adjoint() const {
  return impl_->hints().is_self_adjoint;
}
std::optional<bool> LinearOperator::is_positive_definite() const {
  return impl_->hints().is_positive_definite;
}
bool LinearOperator::is_square() const { return impl_->rows() == impl_->columns(); }

void LinearOperator::assert_non_singular() const {
  const double epsilon = dtype() == float64 || dtype() == complex128 ? 2.3e-16 : 1.2e-7;
  debugging::assert_less(cond(), number(1 / epsilon, cond().dtype()), "Singular matrix");
}
void LinearOperator::assert_self_adjoint() const {
  const Tensor dense = to_dense();
  debugging::assert_near(abs(dense - linalg::adjoint(dense)), abs(zeros_like(dense)), -1, -1,
                         "Matrix was not equal to its adjoint.");
}
void LinearOperator::assert_positive_definite() const {
  const Tensor root = linalg::diag_part(linalg::cholesky(to_dense()));
  const Tensor real_root = is_complex(root.dtype()) ? math::real(root) : root;
  // The factor is NaN unless the matrix is positive definite.
  debugging::Assert(reduce_all(real_root > zeros_like(real_root)), {real_root});
}

namespace experimental {

ConjugateGradientState conjugate_gradient(const LinearOperator& op, const Tensor& rhs,
                                          const Tensor& x, double tol, int max_iter) {
  if (op.is_self_adjoint() != true || op.is_positive_definite() != true) {
    throw InvalidArgumentError(
        "Expected a self-adjoint, positive definite operator; the hints say so.");
  }
  const auto dot = [](const Tensor& a, const Tensor& b) {
    return reduce_sum(conj_if(true, a) * b, -1, true);
  };
  const auto length = [](const Tensor& a) { return norm(a, "euclidean", -1); };
  ConjugateGradientState s;
  s.x = x.defined() ? x : zeros_like(rhs);
  s.r = x.defined() ? rhs - op.matvec(x) : rhs;
  s.p = s.r;
  s.gamma = dot(s.r, s.r);
  int i = 0;
  const Tensor limit = length(rhs) * number(tol, length(rhs).dtype());
  while (i < max_iter && reduce_any(length(s.r) > limit).item<bool>()) {
    const Tensor z = op.matvec(s.p);
    const Tensor alpha = s.gamma / dot(s.p, z);
    s.x = s.x + alpha * s.p;
    s.r = s.r - alpha * z;
    const Tensor gamma = dot(s.r, s.r);
    s.p = s.r + gamma / s.gamma * s.p;
    s.gamma = gamma;
    ++i;
  }
  s.gamma = squeeze(s.gamma, {-1});
  s.i = Tensor(i);
  return s;
}

}  // namespace experimental
}  // namespace tandem::linalg
