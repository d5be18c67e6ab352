// Operators that are defined by a tensor.

#include <utility>

#include "tandem/core/error.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/diagonal_band_ops.h"
#include "tandem/ops/diagonal_ops.h"
#include "tandem/ops/fft_ops.h"
#include "tandem/ops/internal/operator_impl.h"
#include "tandem/ops/linalg_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/sort_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::linalg {
namespace {

using namespace operators;  // NOLINT: helpers of these files

OperatorHints known(OperatorHints hints, std::optional<bool> non_singular,
                    std::optional<bool> self_adjoint, std::optional<bool> positive) {
  if (!hints.is_non_singular) hints.is_non_singular = non_singular;
  if (!hints.is_self_adjoint) hints.is_self_adjoint = self_adjoint;
  if (!hints.is_positive_definite) hints.is_positive_definite = positive;
  return hints;
}

PartialShape square_shape(const Tensor& vector, std::size_t inner = 1) {
  const PartialShape shape = vector.partial_shape();
  const std::int64_t n = shape.dim(shape.rank() - 1);
  return matrix_shape(batch_of(shape, inner), n, n);
}

class Diag final : public OperatorImpl {
 public:
  Diag(const Tensor& diag, const OperatorHints& hints)
      : OperatorImpl(diag.dtype(), square_shape(diag), hints), diag_(diag) {}
  Tensor dense() const override { return diag(diag_); }
  Tensor apply(const Tensor& x, bool adjoint) const override {
    return column(conj_if(adjoint, diag_)) * x;
  }
  Tensor solve(const Tensor& rhs, bool adjoint) const override {
    return rhs / column(conj_if(adjoint, diag_));
  }
  Tensor diagonal() const override { return diag_; }
  Tensor determinant() const override { return reduce_prod(diag_, -1); }
  Tensor log_abs_determinant() const override {
    return cast(reduce_sum(math::log(abs(diag_)), -1), dtype());
  }

 private:
  Tensor diag_;
};

class Zeros final : public OperatorImpl {
 public:
  Zeros(DType dtype, PartialShape shape)
      : OperatorImpl(dtype, std::move(shape), {false, true, false}) {}
  Tensor dense() const override { return zeros(dims_of(shape()), dtype()); }
  Tensor determinant() const override { return zeros(batch_of(shape(), 2), dtype()); }
};

class LowerTriangular final : public OperatorImpl {
 public:
  LowerTriangular(const Tensor& tril, const OperatorHints& hints)
      : OperatorImpl(tril.dtype(), tril.partial_shape(), hints), tril_(band_part(tril, -1, 0)) {}
  Tensor dense() const override { return tril_; }
  Tensor solve(const Tensor& rhs, bool adjoint) const override {
    const auto [matrix, b] = same_batch(tril_, rhs);
    return triangular_solve(matrix, b, true, adjoint);
  }
  Tensor determinant() const override { return reduce_prod(diag_part(tril_), -1); }
  Tensor log_abs_determinant() const override {
    return cast(reduce_sum(math::log(abs(diag_part(tril_))), -1), dtype());
  }

 private:
  Tensor tril_;
};

class Tridiag final : public OperatorImpl {
 public:
  Tridiag(const Tensor& diagonals, const OperatorHints& hints)
      : OperatorImpl(diagonals.dtype(), square_shape(diagonals, 2), hints), diagonals_(diagonals) {}
  Tensor dense() const override {
    return diag(diagonals_, {.lower = -1, .upper = 1, .align = "LEFT_RIGHT"});
  }

 private:
  Tensor diagonals_;
};

class Toeplitz final : public OperatorImpl {
 public:
  Toeplitz(const Tensor& col, const Tensor& row, const OperatorHints& hints)
      : OperatorImpl(col.dtype(), square_shape(col), hints), col_(col), row_(row) {}
  Tensor dense() const override {
    // From the upper right corner to the lower left one; element (i, j) is number n - 1 + i - j.
    const std::int64_t n = rows();
    const Tensor upper = reverse(row_[{ellipsis, Slice(1, n)}], {-1});
    const Tensor all = concat({upper, col_}, -1);
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) numbers.push_back(n - 1 + i - j);
    }
    return gather(all, Tensor::from(numbers, {n, n}), -1);
  }

 private:
  Tensor col_, row_;
};

class Householder final : public OperatorImpl {
 public:
  Householder(const Tensor& axis, const OperatorHints& hints)
      : OperatorImpl(axis.dtype(), square_shape(axis), hints), unit_([&] {
          const Tensor squares = reduce_sum(conj_if(true, axis) * axis, -1, true);
          return axis / sqrt(squares);
        }()) {}
  Tensor dense() const override { return eye(rows(), {}, dtype()) - outer() * number(2, dtype()); }
  Tensor apply(const Tensor& x, bool) const override {
    const Tensor v = column(unit_);
    return x - v * (matmul(v, x, {.adjoint_a = true}) * number(2, dtype()));
  }
  Tensor solve(const Tensor& rhs, bool adjoint) const override { return apply(rhs, adjoint); }
  Tensor determinant() const override {
    return ones(batch_of(shape(), 2), dtype()) * number(-1, dtype());
  }
  Tensor log_abs_determinant() const override { return zeros(batch_of(shape(), 2), dtype()); }

 private:
  Tensor outer() const { return matmul(column(unit_), column(unit_), {.adjoint_b = true}); }
  Tensor unit_;
};

class Permutation final : public OperatorImpl {
 public:
  Permutation(const Tensor& perm, DType dtype, const OperatorHints& hints)
      : OperatorImpl(dtype, square_shape(perm), hints), perm_(perm) {}
  Tensor dense() const override { return one_hot(perm_, rows(), {.dtype = dtype()}); }
  Tensor solve(const Tensor& rhs, bool adjoint) const override { return apply(rhs, !adjoint); }
  Tensor log_abs_determinant() const override { return zeros(batch_of(shape(), 2), dtype()); }

 private:
  Tensor perm_;
};

// A convolution over `depth` axes: x is multiplied by the spectrum in between two transforms.
class Circulant final : public OperatorImpl {
 public:
  Circulant(const Tensor& spectrum, int depth, DType dtype, const OperatorHints& hints)
      : OperatorImpl(dtype, shape_of(spectrum, depth), hints), spectrum_(spectrum), depth_(depth) {}
  Tensor dense() const override {
    return with_batch(apply(eye(rows(), {}, dtype()), false), batch_of(shape(), 2));
  }
  Tensor apply(const Tensor& x, bool adjoint) const override {
    return transformed(x, conj_if(adjoint, complex_spectrum()), false);
  }
  Tensor solve(const Tensor& rhs, bool adjoint) const override {
    return transformed(rhs, conj_if(adjoint, complex_spectrum()), true);
  }
  Tensor diagonal() const override {
    const Tensor mean = reduce_mean(flat_spectrum(), -1, true);
    std::vector<std::int64_t> dims = batch_of(shape(), 2);
    dims.push_back(rows());
    return broadcast_to(cast_back(mean), dims);
  }
  Tensor determinant() const override { return cast_back(reduce_prod(flat_spectrum(), -1)); }
  Tensor log_abs_determinant() const override {
    return cast(reduce_sum(math::log(abs(flat_spectrum())), -1), dtype());
  }

 private:
  static PartialShape shape_of(const Tensor& spectrum, int depth) {
    const PartialShape shape = spectrum.partial_shape();
    std::int64_t n = 1;
    for (int i = shape.rank() - depth; i < shape.rank(); ++i) n *= shape.dim(i);
    return matrix_shape(batch_of(shape, static_cast<std::size_t>(depth)), n, n);
  }
  DType complex_dtype() const {
    return dtype() == complex128 || dtype() == float64 ? complex128 : complex64;
  }
  Tensor complex_spectrum() const { return cast(spectrum_, complex_dtype()); }
  Tensor flat_spectrum() const {
    std::vector<std::int64_t> dims = batch_of(shape(), 2);
    dims.push_back(rows());
    return reshape(complex_spectrum(), dims);
  }
  Tensor cast_back(const Tensor& x) const {
    return is_complex(dtype()) ? cast(x, dtype()) : cast(math::real(x), dtype());
  }
  Tensor forward(const Tensor& x) const {
    return depth_ == 1 ? signal::fft(x) : depth_ == 2 ? signal::fft2d(x) : signal::fft3d(x);
  }
  Tensor backward(const Tensor& x) const {
    return depth_ == 1 ? signal::ifft(x) : depth_ == 2 ? signal::ifft2d(x) : signal::ifft3d(x);
  }
  Tensor transformed(const Tensor& x, const Tensor& spectrum, bool divide) const {
    // [..., n, r] → [..., r, n0, n1, …]
    const Tensor rows_last = matrix_transpose(cast(x, complex_dtype()));
    std::vector<std::int64_t> blocks = batch_of(rows_last.partial_shape(), 1);
    std::vector<std::int64_t> around = batch_of(shape(), 2);
    around.push_back(1);
    const PartialShape whole = spectrum_.partial_shape();
    for (int i = whole.rank() - depth_; i < whole.rank(); ++i) {
      blocks.push_back(whole.dim(i));
      around.push_back(whole.dim(i));
    }
    const Tensor frequencies = forward(reshape(rows_last, blocks));
    const Tensor factor = reshape(spectrum, around);
    const Tensor result = backward(divide ? frequencies / factor : frequencies * factor);
    std::vector<std::int64_t> flat =
        batch_of(result.partial_shape(), static_cast<std::size_t>(depth_));
    flat.push_back(rows());
    return cast_back(matrix_transpose(reshape(result, flat)));
  }

  Tensor spectrum_;
  int depth_;
};

void require_vector(const Tensor& x, const char* what) { require_known(x, 1, what); }

Impl circulant(const Tensor& spectrum, int depth, DType dtype, const OperatorHints& hints,
               const char* what) {
  require_known(spectrum, depth, what);
  return std::make_shared<Circulant>(spectrum, depth, dtype, hints);
}

}  // namespace

LinearOperatorDiag::LinearOperatorDiag(Tensor diag, const OperatorHints& hints)
    : LinearOperator([&] {
        require_vector(diag, "LinearOperatorDiag");
        const bool real = !is_complex(diag.dtype());
        return std::make_shared<Diag>(
            diag, known(hints, {}, real ? std::optional<bool>(true) : std::nullopt, {}));
      }()) {}

LinearOperatorIdentity::LinearOperatorIdentity(std::int64_t num_rows,
                                               const std::vector<std::int64_t>& batch_shape,
                                               DType dtype)
    : LinearOperator([&] {
        std::vector<std::int64_t> dims = batch_shape;
        dims.push_back(num_rows);
        return std::make_shared<Diag>(ones(dims, dtype), OperatorHints{true, true, true});
      }()) {}

LinearOperatorScaledIdentity::LinearOperatorScaledIdentity(std::int64_t num_rows, Tensor multiplier,
                                                           const OperatorHints& hints)
    : LinearOperator([&] {
        require_known(multiplier, 0, "LinearOperatorScaledIdentity");
        std::vector<std::int64_t> dims = dims_of(multiplier.partial_shape());
        dims.push_back(num_rows);
        const bool real = !is_complex(multiplier.dtype());
        return std::make_shared<Diag>(
            broadcast_to(column(multiplier), dims),
            known(hints, {}, real ? std::optional<bool>(true) : std::nullopt, {}));
      }()) {}

LinearOperatorZeros::LinearOperatorZeros(std::int64_t num_rows, std::int64_t num_columns,
                                         const std::vector<std::int64_t>& batch_shape, DType dtype)
    : LinearOperator(std::make_shared<Zeros>(
          dtype, matrix_shape(batch_shape, num_rows, num_columns < 0 ? num_rows : num_columns))) {}

LinearOperatorLowerTriangular::LinearOperatorLowerTriangular(Tensor tril,
                                                             const OperatorHints& hints)
    : LinearOperator([&] {
        require_known(tril, 2, "LinearOperatorLowerTriangular");
        return std::make_shared<LowerTriangular>(tril, hints);
      }()) {}

LinearOperatorTridiag::LinearOperatorTridiag(Tensor diagonals, const OperatorHints& hints)
    : LinearOperator([&] {
        require_known(diagonals, 2, "LinearOperatorTridiag");
        if (diagonals.dim(-2) != 3) {
          throw InvalidArgumentError(
              cat("LinearOperatorTridiag: diagonals have shape [..., 3, n], "
                  "got ",
                  diagonals.partial_shape(), "."));
        }
        return std::make_shared<Tridiag>(diagonals, hints);
      }()) {}

LinearOperatorToeplitz::LinearOperatorToeplitz(Tensor col, Tensor row, const OperatorHints& hints)
    : LinearOperator([&] {
        require_vector(col, "LinearOperatorToeplitz");
        require_vector(row, "LinearOperatorToeplitz");
        if (col.dtype() != row.dtype() || col.dim(-1) != row.dim(-1)) {
          throw InvalidArgumentError(cat("LinearOperatorToeplitz: the column is ", col.dtype(),
                                         col.partial_shape(), ", but the row ", row.dtype(),
                                         row.partial_shape(), "."));
        }
        return std::make_shared<Toeplitz>(col, row, hints);
      }()) {}

LinearOperatorHouseholder::LinearOperatorHouseholder(Tensor reflection_axis,
                                                     const OperatorHints& hints)
    : LinearOperator([&] {
        require_vector(reflection_axis, "LinearOperatorHouseholder");
        return std::make_shared<Householder>(reflection_axis, known(hints, true, true, false));
      }()) {}

LinearOperatorPermutation::LinearOperatorPermutation(Tensor perm, DType dtype,
                                                     const OperatorHints& hints)
    : LinearOperator([&] {
        require_vector(perm, "LinearOperatorPermutation");
        return std::make_shared<Permutation>(perm, dtype, known(hints, true, {}, {}));
      }()) {}

LinearOperatorCirculant::LinearOperatorCirculant(Tensor spectrum, DType dtype,
                                                 const OperatorHints& hints)
    : LinearOperator(circulant(spectrum, 1, dtype, hints, "LinearOperatorCirculant")) {}
LinearOperatorCirculant2D::LinearOperatorCirculant2D(Tensor spectrum, DType dtype,
                                                     const OperatorHints& hints)
    : LinearOperator(circulant(spectrum, 2, dtype, hints, "LinearOperatorCirculant2D")) {}
LinearOperatorCirculant3D::LinearOperatorCirculant3D(Tensor spectrum, DType dtype,
                                                     const OperatorHints& hints)
    : LinearOperator(circulant(spectrum, 3, dtype, hints, "LinearOperatorCirculant3D")) {}

}  // namespace tandem::linalg
