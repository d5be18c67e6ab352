#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tandem/ops/linear_operator.h"

namespace tandem::linalg {

/// What a structure of matrices can do: by default everything is done with the dense matrix.
class OperatorImpl {
 public:
  OperatorImpl(DType dtype, PartialShape shape, OperatorHints hints)
      : dtype_(dtype), shape_(std::move(shape)), hints_(hints) {}
  virtual ~OperatorImpl();

  DType dtype() const { return dtype_; }
  const PartialShape& shape() const { return shape_; }
  const OperatorHints& hints() const { return hints_; }
  std::int64_t rows() const { return shape_.dim(shape_.rank() - 2); }
  std::int64_t columns() const { return shape_.dim(shape_.rank() - 1); }

  virtual Tensor dense() const = 0;
  /// A x or Aᴴ x of [..., n, r].
  virtual Tensor apply(const Tensor& x, bool adjoint) const;
  virtual Tensor solve(const Tensor& rhs, bool adjoint) const;
  virtual Tensor diagonal() const;
  virtual Tensor determinant() const;
  virtual Tensor log_abs_determinant() const;

  static LinearOperator handle(std::shared_ptr<const OperatorImpl> impl) {
    return LinearOperator(std::move(impl));
  }
  static const OperatorImpl& of(const LinearOperator& op) { return *op.impl_; }

 private:
  DType dtype_;
  PartialShape shape_;
  OperatorHints hints_;
};

namespace operators {

using Impl = std::shared_ptr<const OperatorImpl>;

/// Throws InvalidArgumentError for an undefined tensor, or one of fewer axes or of unknown sizes.
void require_known(const Tensor& x, int least_rank, const char* what);
std::vector<std::int64_t> dims_of(const PartialShape& shape);
/// The shape [batch…, rows, columns].
PartialShape matrix_shape(std::vector<std::int64_t> batch, std::int64_t rows, std::int64_t columns);
/// Without the last `count` axes.
std::vector<std::int64_t> batch_of(const PartialShape& shape, std::size_t count);
/// Their batches broadcast against each other; InvalidArgumentError if they do not.
std::vector<std::int64_t> common_batch(const std::vector<std::int64_t>& a,
                                       const std::vector<std::int64_t>& b);
/// The matrices repeated so that the batch is `batch`.
Tensor with_batch(const Tensor& x, const std::vector<std::int64_t>& batch);
/// Both with their common batch.
std::pair<Tensor, Tensor> same_batch(const Tensor& a, const Tensor& b);
Tensor conj_if(bool wanted, const Tensor& x);
/// [..., n] as a column [..., n, 1].
Tensor column(const Tensor& x);
/// A scalar of a floating or complex dtype.
Tensor number(double value, DType dtype);

}  // namespace operators
}  // namespace tandem::linalg
