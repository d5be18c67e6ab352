// Operators that are made of others.

#include <utility>

#include "tandem/core/error.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/diagonal_ops.h"
#include "tandem/ops/internal/operator_impl.h"
#include "tandem/ops/linalg_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::linalg {
namespace {

using namespace operators;  // NOLINT: helpers of these files

const OperatorImpl& impl_of(const LinearOperator& op) { return OperatorImpl::of(op); }

using Operators = std::vector<LinearOperator>;

void check_list(const Operators& list, const char* what) {
  if (list.empty()) throw InvalidArgumentError(cat(what, ": the list of operators is empty."));
  for (const LinearOperator& op : list) {
    if (op.dtype() != list[0].dtype()) {
      throw InvalidArgumentError(cat(what, ": the operators have dtypes ", list[0].dtype(), " and ",
                                     op.dtype(), "; they must be equal."));
    }
  }
}

std::vector<std::int64_t> batch_of_all(const Operators& list) {
  std::vector<std::int64_t> batch;
  for (const LinearOperator& op : list) batch = common_batch(batch, batch_of(op.shape(), 2));
  return batch;
}

// A property that the whole has where all parts have it.
template <class F>
std::optional<bool> all_of(const Operators& list, std::optional<bool> given, const F& property) {
  if (given) return given;
  for (const LinearOperator& op : list) {
    if (property(op) != true) return std::nullopt;
  }
  return true;
}

OperatorHints hints_of(const Operators& list, OperatorHints hints) {
  hints.is_non_singular =
      all_of(list, hints.is_non_singular, [](const auto& op) { return op.is_non_singular(); });
  hints.is_self_adjoint =
      all_of(list, hints.is_self_adjoint, [](const auto& op) { return op.is_self_adjoint(); });
  hints.is_positive_definite = all_of(list, hints.is_positive_definite,
                                      [](const auto& op) { return op.is_positive_definite(); });
  return hints;
}

class Adjoint final : public OperatorImpl {
 public:
  explicit Adjoint(LinearOperator op)
      : OperatorImpl(
            op.dtype(),
            matrix_shape(batch_of(op.shape(), 2), op.domain_dimension(), op.range_dimension()),
            impl_of(op).hints()),
        op_(std::move(op)) {}
  Tensor dense() const override { return linalg::adjoint(op_.to_dense()); }
  Tensor apply(const Tensor& x, bool adjoint) const override {
    return impl_of(op_).apply(x, !adjoint);
  }
  Tensor solve(const Tensor& rhs, bool adjoint) const override {
    return impl_of(op_).solve(rhs, !adjoint);
  }
  Tensor determinant() const override { return conj_if(true, op_.determinant()); }
  Tensor log_abs_determinant() const override { return op_.log_abs_determinant(); }

 private:
  LinearOperator op_;
};

class Inversion final : public OperatorImpl {
 public:
  explicit Inversion(LinearOperator op)
      : OperatorImpl(op.dtype(), op.shape(),
                     {true, op.is_self_adjoint(), op.is_positive_definite()}),
        op_(std::move(op)) {}
  Tensor dense() const override {
    return with_batch(impl_of(op_).solve(eye(rows(), {}, dtype()), false), batch_of(shape(), 2));
  }
  Tensor apply(const Tensor& x, bool adjoint) const override {
    return impl_of(op_).solve(x, adjoint);
  }
  Tensor solve(const Tensor& rhs, bool adjoint) const override {
    return impl_of(op_).apply(rhs, adjoint);
  }
  Tensor determinant() const override { return number(1, dtype()) / op_.determinant(); }
  Tensor log_abs_determinant() const override { return -op_.log_abs_determinant(); }

 private:
  LinearOperator op_;
};

class Composition final : public OperatorImpl {
 public:
  Composition(Operators list, const OperatorHints& hints)
      : OperatorImpl(list[0].dtype(),
                     matrix_shape(batch_of_all(list), list.front().range_dimension(),
                                  list.back().domain_dimension()),
                     hints),
        list_(std::move(list)) {}
  Tensor dense() const override {
    Tensor product = list_.back().to_dense();
    for (std::size_t i = list_.size() - 1; i-- > 0;)
      product = impl_of(list_[i]).apply(product, false);
    return with_batch(product, batch_of(shape(), 2));
  }
  Tensor apply(const Tensor& x, bool adjoint) const override {
    Tensor result = x;
    for (std::size_t i = 0; i < list_.size(); ++i)
      result = impl_of(list_[adjoint ? i : list_.size() - 1 - i]).apply(result, adjoint);
    return result;
  }
  Tensor solve(const Tensor& rhs, bool adjoint) const override {
    Tensor result = rhs;
    for (std::size_t i = 0; i < list_.size(); ++i)
      result = impl_of(list_[adjoint ? list_.size() - 1 - i : i]).solve(result, adjoint);
    return result;
  }

 private:
  Operators list_;
};

class Kronecker final : public OperatorImpl {
 public:
  Kronecker(Operators list, const OperatorHints& hints)
      : OperatorImpl(list[0].dtype(), shape_of(list), hints), list_(std::move(list)) {}
  Tensor dense() const override {
    Tensor product = list_[0].to_dense();
    for (std::size_t i = 1; i < list_.size(); ++i) {
      const auto [a, b] = same_batch(product, list_[i].to_dense());
      std::vector<std::int64_t> dims = batch_of(a.partial_shape(), 2);
      dims.push_back(a.dim(-2) * b.dim(-2));
      dims.push_back(a.dim(-1) * b.dim(-1));
      // [..., r, 1, c, 1] · [..., 1, r', 1, c']
      product =
          reshape(expand_dims(expand_dims(a, -2), -1) * expand_dims(expand_dims(b, -3), -2), dims);
    }
    return product;
  }

 private:
  static PartialShape shape_of(const Operators& list) {
    std::int64_t rows = 1, columns = 1;
    for (const LinearOperator& op : list) {
      rows *= op.range_dimension();
      columns *= op.domain_dimension();
    }
    return matrix_shape(batch_of_all(list), rows, columns);
  }
  Operators list_;
};

// Rows of blocks; those to the right of the last one of a row are zero.
class BlockLowerTriangular final : public OperatorImpl {
 public:
  BlockLowerTriangular(std::vector<Operators> rows_of_blocks, const OperatorHints& hints)
      : OperatorImpl(rows_of_blocks[0][0].dtype(), shape_of(rows_of_blocks), hints),
        blocks_(std::move(rows_of_blocks)) {}
  Tensor dense() const override {
    const std::vector<std::int64_t> batch = batch_of(shape(), 2);
    std::vector<Tensor> all;
    for (const Operators& row : blocks_) {
      std::vector<Tensor> parts;
      for (const LinearOperator& op : row) parts.push_back(with_batch(op.to_dense(), batch));
      const std::int64_t height = row[0].range_dimension();
      std::int64_t width = 0;
      for (const LinearOperator& op : row) width += op.domain_dimension();
      if (width < columns())
        parts.push_back(zeros(dims_of(matrix_shape(batch, height, columns() - width)), dtype()));
      all.push_back(parts.size() == 1 ? parts[0] : concat(parts, -1));
    }
    return all.size() == 1 ? all[0] : concat(all, -2);
  }

 private:
  static PartialShape shape_of(const std::vector<Operators>& rows_of_blocks) {
    std::vector<std::int64_t> batch;
    std::int64_t height = 0, width = 0;
    for (const Operators& row : rows_of_blocks) {
      batch = common_batch(batch, batch_of_all(row));
      height += row[0].range_dimension();
    }
    for (const LinearOperator& op : rows_of_blocks.back()) width += op.domain_dimension();
    return matrix_shape(batch, height, width);
  }
  std::vector<Operators> blocks_;
};

class BlockDiag final : public OperatorImpl {
 public:
  BlockDiag(Operators list, const OperatorHints& hints)
      : OperatorImpl(list[0].dtype(), shape_of(list), hints), list_(std::move(list)) {}
  Tensor dense() const override {
    const std::vector<std::int64_t> batch = batch_of(shape(), 2);
    std::vector<Tensor> all;
    std::int64_t before = 0;
    for (const LinearOperator& op : list_) {
      const std::int64_t height = op.range_dimension(), width = op.domain_dimension();
      std::vector<Tensor> parts;
      if (before > 0) parts.push_back(zeros(dims_of(matrix_shape(batch, height, before)), dtype()));
      parts.push_back(with_batch(op.to_dense(), batch));
      before += width;
      if (before < columns()) {
        parts.push_back(zeros(dims_of(matrix_shape(batch, height, columns() - before)), dtype()));
      }
      all.push_back(parts.size() == 1 ? parts[0] : concat(parts, -1));
    }
    return all.size() == 1 ? all[0] : concat(all, -2);
  }
  Tensor apply(const Tensor& x, bool adjoint) const override {
    return by_block(
        x, [&](const OperatorImpl& op, const Tensor& part) { return op.apply(part, adjoint); },
        adjoint);
  }
  Tensor solve(const Tensor& rhs, bool adjoint) const override {
    return by_block(
        rhs, [&](const OperatorImpl& op, const Tensor& part) { return op.solve(part, adjoint); },
        !adjoint);
  }
  Tensor determinant() const override {
    Tensor product = list_[0].determinant();
    for (std::size_t i = 1; i < list_.size(); ++i) product = product * list_[i].determinant();
    return product;
  }
  Tensor log_abs_determinant() const override {
    Tensor sum = list_[0].log_abs_determinant();
    for (std::size_t i = 1; i < list_.size(); ++i) sum = sum + list_[i].log_abs_determinant();
    return sum;
  }

 private:
  static PartialShape shape_of(const Operators& list) {
    std::int64_t rows = 0, columns = 0;
    for (const LinearOperator& op : list) {
      rows += op.range_dimension();
      columns += op.domain_dimension();
    }
    return matrix_shape(batch_of_all(list), rows, columns);
  }
  // `by_rows`: x is cut by the blocks' rows instead of their columns.
  template <class F>
  Tensor by_block(const Tensor& x, const F& f, bool by_rows) const {
    const auto batch = common_batch(batch_of(shape(), 2), batch_of(x.partial_shape(), 2));
    std::vector<Tensor> parts;
    std::int64_t at = 0;
    for (const LinearOperator& op : list_) {
      const std::int64_t size = by_rows ? op.range_dimension() : op.domain_dimension();
      const Tensor part = x[{ellipsis, Slice(at, at + size), Slice()}];
      parts.push_back(with_batch(f(impl_of(op), part), batch));
      at += size;
    }
    return parts.size() == 1 ? parts[0] : concat(parts, -2);
  }
  Operators list_;
};

class LowRankUpdate final : public OperatorImpl {
 public:
  LowRankUpdate(LinearOperator base, Tensor u, Tensor d, Tensor v, const OperatorHints& hints)
      : OperatorImpl(base.dtype(), shape_of(base, u), hints),
        base_(std::move(base)),
        u_(std::move(u)),
        d_(std::move(d)),
        v_(std::move(v)) {}
  Tensor dense() const override {
    return base_.to_dense() + matmul(scaled(u_), v_, {.adjoint_b = true});
  }
  Tensor apply(const Tensor& x, bool adjoint) const override {
    const Tensor& first = adjoint ? u_ : v_;
    const Tensor inner = matmul(first, x, {.adjoint_a = true});
    const Tensor weighted = d_.defined() ? column(conj_if(adjoint, d_)) * inner : inner;
    return impl_of(base_).apply(x, adjoint) + matmul(adjoint ? v_ : u_, weighted);
  }

 private:
  static PartialShape shape_of(const LinearOperator& base, const Tensor& u) {
    return matrix_shape(common_batch(batch_of(base.shape(), 2), batch_of(u.partial_shape(), 2)),
                        base.range_dimension(), base.domain_dimension());
  }
  Tensor scaled(const Tensor& u) const { return d_.defined() ? u * expand_dims(d_, -2) : u; }
  LinearOperator base_;
  Tensor u_, d_, v_;
};

}  // namespace

LinearOperatorAdjoint::LinearOperatorAdjoint(LinearOperator op)
    : LinearOperator(std::make_shared<Adjoint>(std::move(op))) {}
LinearOperatorInversion::LinearOperatorInversion(LinearOperator op)
    : LinearOperator(std::make_shared<Inversion>(std::move(op))) {}

LinearOperatorComposition::LinearOperatorComposition(std::vector<LinearOperator> operators,
                                                     const OperatorHints& hints)
    : LinearOperator([&] {
        check_list(operators, "LinearOperatorComposition");
        for (std::size_t i = 1; i < operators.size(); ++i) {
          if (operators[i - 1].domain_dimension() == operators[i].range_dimension()) continue;
          throw InvalidArgumentError(cat("LinearOperatorComposition: operators of shapes ",
                                         operators[i - 1].shape(), " and ", operators[i].shape(),
                                         " cannot be multiplied."));
        }
        OperatorHints own = hints;
        own.is_non_singular = hints_of(operators, hints).is_non_singular;
        return std::make_shared<Composition>(operators, own);
      }()) {}

LinearOperatorKronecker::LinearOperatorKronecker(std::vector<LinearOperator> operators,
                                                 const OperatorHints& hints)
    : LinearOperator([&] {
        check_list(operators, "LinearOperatorKronecker");
        return std::make_shared<Kronecker>(operators, hints_of(operators, hints));
      }()) {}

LinearOperatorBlockDiag::LinearOperatorBlockDiag(std::vector<LinearOperator> operators,
                                                 const OperatorHints& hints)
    : LinearOperator([&] {
        check_list(operators, "LinearOperatorBlockDiag");
        return std::make_shared<BlockDiag>(operators, hints_of(operators, hints));
      }()) {}

LinearOperatorBlockLowerTriangular::LinearOperatorBlockLowerTriangular(
    std::vector<std::vector<LinearOperator>> operators, const OperatorHints& hints)
    : LinearOperator([&] {
        std::vector<LinearOperator> all;
        for (std::size_t i = 0; i < operators.size(); ++i) {
          if (operators[i].size() != i + 1) {
            throw InvalidArgumentError(cat("LinearOperatorBlockLowerTriangular: row ", i, " has ",
                                           operators[i].size(), " operators, but needs ", i + 1,
                                           "."));
          }
          all.insert(all.end(), operators[i].begin(), operators[i].end());
        }
        check_list(all, "LinearOperatorBlockLowerTriangular");
        return std::make_shared<BlockLowerTriangular>(operators, hints);
      }()) {}

LinearOperatorLowRankUpdate::LinearOperatorLowRankUpdate(LinearOperator base_operator, Tensor u,
                                                         Tensor diag_update, Tensor v,
                                                         const OperatorHints& hints)
    : LinearOperator([&] {
        require_known(u, 2, "LinearOperatorLowRankUpdate");
        const Tensor right = v.defined() ? v : u;
        require_known(right, 2, "LinearOperatorLowRankUpdate");
        if (u.dim(-1) != right.dim(-1) || u.dim(-2) != base_operator.range_dimension() ||
            right.dim(-2) != base_operator.domain_dimension()) {
          throw InvalidArgumentError(cat("LinearOperatorLowRankUpdate: the base has shape ",
                                         base_operator.shape(), ", U ", u.partial_shape(),
                                         " and V ", right.partial_shape(), ", which do not fit."));
        }
        OperatorHints own = hints;
        if (!own.is_self_adjoint && !v.defined() && !is_complex(u.dtype()))
          own.is_self_adjoint = base_operator.is_self_adjoint();
        return std::make_shared<LowRankUpdate>(base_operator, u, diag_update, right, own);
      }()) {}

}  // namespace tandem::linalg
