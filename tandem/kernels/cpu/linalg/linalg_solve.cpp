// Systems of linear equations, inverses and determinants.

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/linalg/linalg.h"

namespace tandem::cpu {
namespace {

constexpr const char* kSingular = "Input matrix is not invertible.";

// L and U, column-major.
template <class T>
struct Factored {
  std::vector<T> lu;
  std::vector<std::int32_t> pivots;
  std::int64_t rows = 0;
  bool invalid;  // of values that are not numbers

  Factored(const T* a, std::int64_t n, bool adjoint)
      : lu(static_cast<std::size_t>(n * n)), pivots(static_cast<std::size_t>(n)) {
    if (adjoint) {
      std::transform(a, a + n * n, lu.data(), conjugate<T>);
    } else {
      transposed_copy(a, n, n, lu.data());
    }
    invalid = lapack::lu(n, n, lu.data(), pivots.data()) < 0;
    rows = n;
  }

  // Values that are not numbers leave `lu` as it was.
  bool singular() const {
    return invalid ? first_is_nan(lu.data()) : has_zero_on_diagonal(lu.data(), rows);
  }
};

template <class T, class Stored = T>
void inverse(KernelContext& c) {
  const Array& x = c.input(0);
  const MatrixBatch m(x, "input");
  require_square(m, x);
  const bool adjoint = c.attr<bool>("adjoint");
  Array& out = c.allocate_output(0, x.shape());
  if (x.num_elements() == 0) return;
  for_each_matrix(c, m, [&](std::int64_t i) {
    const Stored* from = x.data<Stored>() + i * m.size();
    std::vector<T> wide(from, from + m.size());
    Factored<T> f(wide.data(), m.rows, adjoint);
    std::vector<T>& result = wide;
    if (f.singular()) throw InvalidArgumentError("Input is not invertible.");
    if (f.invalid) {
      fill_nan(f.lu.data(), m.size());
    } else {
      lapack::lu_inverse(m.rows, f.lu.data(), f.pivots.data());
    }
    transposed_copy(f.lu.data(), m.rows, m.rows, result.data());
    std::transform(result.begin(), result.end(), out.data<Stored>() + i * m.size(),
                   [](T v) { return static_cast<Stored>(v); });
  });
}

// The right sides of a system, whose batch must be that of the matrices.
MatrixBatch right_sides(const Array& a, const Array& b, std::int64_t rows) {
  const MatrixBatch right(b, "rhs");
  if (!(batch_shape(a, {}) == batch_shape(b, {}))) {
    throw InvalidArgumentError(cat("All input tensors must have the same outer dimensions, got ",
                                   a.shape(), " and ", b.shape()));
  }
  if (right.rows != rows) {
    throw InvalidArgumentError(
        cat("Input matrix and rhs are incompatible: ", a.shape(), " and ", b.shape()));
  }
  return right;
}

template <class T>
void solve(KernelContext& c) {
  const Array& x = c.input(0);
  const Array& rhs = c.input(1);
  const MatrixBatch m(x, "matrix");
  require_square(m, x);
  const MatrixBatch right = right_sides(x, rhs, m.rows);
  const bool adjoint = c.attr<bool>("adjoint");
  Array& out = c.allocate_output(0, rhs.shape());
  if (rhs.num_elements() == 0) return;
  for_each_matrix(c, m, [&](std::int64_t i) {
    const Factored<T> f(x.data<T>() + i * m.size(), m.rows, false);
    const T* b = rhs.data<T>() + i * right.size();
    T* to = out.data<T>() + i * right.size();
    if (f.singular()) throw InvalidArgumentError(kSingular);
    std::vector<T> work(static_cast<std::size_t>(right.size()));
    transposed_copy(b, right.rows, right.columns, work.data());
    if (f.invalid || lapack::lu_solve(adjoint, m.rows, right.columns, f.lu.data(), f.pivots.data(),
                                      work.data()) != 0) {
      fill_nan(to, right.size());
    } else {
      transposed_copy(work.data(), right.columns, right.rows, to);
    }
  });
}

// Shapes before the matrices broadcast; f(matrix, right side, result) for each of the result's.
template <class F>
void for_each_broadcast(KernelContext& c, const Shape& a, const Shape& b, const Shape& out,
                        const MatrixBatch& m, F f) {
  const int rank = out.rank();
  c.intra_op().parallel_for(
      out.num_elements(), m.cost(), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          std::int64_t place[2] = {0, 0};
          const Shape* shapes[2] = {&a, &b};
          for (int k = 0; k < 2; ++k) {
            std::int64_t rest = i, step = 1;
            for (int axis = 1; axis <= rank; ++axis) {
              const std::int64_t at = rest % out[rank - axis];
              rest /= out[rank - axis];
              if (axis > shapes[k]->rank()) continue;
              const std::int64_t size = (*shapes[k])[shapes[k]->rank() - axis];
              if (size != 1) place[k] += at * step;
              step *= size;
            }
          }
          f(place[0], place[1], i);
        }
      });
}

template <class T>
void triangular_solve(KernelContext& c) {
  const Array& x = c.input(0);
  const Array& rhs = c.input(1);
  const MatrixBatch m(x, "matrix");
  const MatrixBatch right(rhs, "rhs");
  if (m.rows != m.columns) {
    throw InvalidArgumentError(cat("In[0] matrices in the last two dimensions must be square (",
                                   m.rows, " =/= ", m.columns, ")"));
  }
  if (right.rows != m.rows) {
    throw InvalidArgumentError(cat("In[0] mismatch In[1] shape: ", m.columns, " vs. ", right.rows,
                                   ": ", x.shape(), " ", rhs.shape()));
  }
  const Shape outer = broadcast(batch_shape(x, {}), batch_shape(rhs, {}));
  Shape shape = outer;
  shape.add_dim(m.rows);
  shape.add_dim(right.columns);
  const bool lower = c.attr<bool>("lower"), adjoint = c.attr<bool>("adjoint");
  Array& out = c.allocate_output(0, shape);
  if (out.num_elements() == 0) return;
  for_each_broadcast(c, batch_shape(x, {}), batch_shape(rhs, {}), outer, m,
                     [&](std::int64_t i, std::int64_t j, std::int64_t k) {
                       const T* a = x.data<T>() + i * m.size();
                       const T* b = rhs.data<T>() + j * right.size();
                       T* to = out.data<T>() + k * right.size();
                       std::copy(b, b + right.size(), to);
                       solve_triangle(lower, adjoint, m.rows, right.columns, a, to);
                     });
}

template <class T>
void positive_solve(std::vector<T>& gram, std::int64_t n, std::int64_t columns, double l2, T* b) {
  for (std::int64_t i = 0; i < n; ++i) {
    gram[static_cast<std::size_t>(i * n + i)] += static_cast<lapack::Real<T>>(l2);
  }
  if (lapack::cholesky(n, gram.data()) != 0) {
    throw InvalidArgumentError(
        "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a "
        "larger l2_regularizer > 0.");
  }
  solve_triangle(true, false, n, columns, gram.data(), b);
  solve_triangle(true, true, n, columns, gram.data(), b);
}

// Through the normal equations.
template <class T>
void least_squares_fast(const MatrixBatch& m, std::int64_t right, double l2, const T* a, const T* b,
                        T* x) {
  const std::int64_t r = m.rows, q = m.columns;
  constexpr blas::Turn kAdjoint = blas::Turn::kAdjoint;
  const std::int64_t least = std::min(r, q);
  std::vector<T> gram(static_cast<std::size_t>(least * least));
  if (r >= q) {
    multiply<T>({.turn_a = kAdjoint, .m = q, .n = q, .k = r, .a = a, .b = a, .c = gram.data()});
    multiply<T>({.turn_a = kAdjoint, .m = q, .n = right, .k = r, .a = a, .b = b, .c = x});
    positive_solve(gram, q, right, l2, x);
  } else {
    multiply<T>({.turn_b = kAdjoint, .m = r, .n = r, .k = q, .a = a, .b = a, .c = gram.data()});
    std::vector<T> z(b, b + r * right);
    positive_solve(gram, r, right, l2, z.data());
    multiply<T>({.turn_a = kAdjoint, .m = q, .n = right, .k = r, .a = a, .b = z.data(), .c = x});
  }
}

template <class T>
void least_squares(KernelContext& c) {
  const Array& x = c.input(0);
  const Array& rhs = c.input(1);
  const Array& l2 = c.input(2);
  const MatrixBatch m(x, "matrix");
  const MatrixBatch right = right_sides(x, rhs, m.rows);
  if (l2.rank() != 0) {
    throw InvalidArgumentError(cat("l2_regularizer must be scalar, got shape ", l2.shape()));
  }
  const double weight = l2.data<double>()[0];
  if (!(weight >= 0)) throw InvalidArgumentError("l2_regularizer must be >= 0.");
  const bool fast = c.attr<bool>("fast");
  Array& out = c.allocate_output(0, batch_shape(x, {m.columns, right.columns}));
  if (out.num_elements() == 0) return;
  if (m.rows == 0) {
    return std::fill(out.data<T>(), out.data<T>() + out.num_elements(), T(0));
  }
  for_each_matrix(c, m, [&](std::int64_t i) {
    const T* a = x.data<T>() + i * m.size();
    const T* b = rhs.data<T>() + i * right.size();
    T* to = out.data<T>() + i * m.columns * right.columns;
    if (fast) return least_squares_fast(m, right.columns, weight, a, b, to);
    std::vector<T> work(a, a + m.size());
    std::vector<T> both(static_cast<std::size_t>(std::max(m.rows, m.columns) * right.columns));
    std::copy(b, b + right.size(), both.begin());
    if (lapack::least_squares(m.rows, m.columns, right.columns, work.data(), both.data()) != 0) {
      fill_nan(both.data(), static_cast<std::int64_t>(both.size()));
    }
    std::copy(both.begin(), both.begin() + m.columns * right.columns, to);
  });
}

// The sign (of modulus 1, or 0) and the logarithm of the modulus of the determinant.
template <class T>
std::pair<T, lapack::Real<T>> log_determinant(const T* a, std::int64_t n) {
  using R = lapack::Real<T>;
  const Factored<T> f(a, n, false);
  T sign(1);
  R log(0);
  for (std::int64_t i = 0; i < n; ++i) {
    const T d = f.lu[static_cast<std::size_t>(i * n + i)];
    const R modulus = std::abs(d);
    if (modulus == 0) return {T(0), -std::numeric_limits<R>::infinity()};
    sign *= d / modulus;
    log += std::log(modulus);
    if (f.pivots[static_cast<std::size_t>(i)] != i + 1) sign = -sign;
  }
  if (f.invalid) return {T(std::nan("")), R(std::nan(""))};
  return {sign, log};
}

template <class T>
T determinant_of(const T* a, std::int64_t n) {
  const Factored<T> f(a, n, false);
  if (f.invalid) return T(std::nan(""));
  T product(1);
  for (std::int64_t i = 0; i < n; ++i) {
    product *= f.lu[static_cast<std::size_t>(i * n + i)];
    if (f.pivots[static_cast<std::size_t>(i)] != i + 1) product = -product;
  }
  return product;
}

template <class T>
void determinant(KernelContext& c) {
  const Array& x = c.input(0);
  const MatrixBatch m(x, "input");
  require_square(m, x);
  Array& out = c.allocate_output(0, batch_shape(x, {}));
  for_each_matrix(c, m, [&](std::int64_t i) {
    out.data<T>()[i] = determinant_of(x.data<T>() + i * m.size(), m.rows);
  });
}

template <class T>
void log_matrix_determinant(KernelContext& c) {
  const Array& x = c.input(0);
  const MatrixBatch m(x, "input");
  require_square(m, x);
  Array& sign = c.allocate_output(0, batch_shape(x, {}));
  Array& log = c.allocate_output(1, batch_shape(x, {}));
  for_each_matrix(c, m, [&](std::int64_t i) {
    const auto [s, l] = log_determinant(x.data<T>() + i * m.size(), m.rows);
    sign.data<T>()[i] = s;
    log.data<T>()[i] = T(l);
  });
}

using C = std::complex<float>;
using Z = std::complex<double>;
constexpr TypeConstraint of(DType dtype) { return {"T", {dtype}}; }

#define TANDEM_FOUR_TYPES(OP, RUN)                                                       \
  KernelRegistration({.op = OP, .types = {of(DType::kFloat)}, .run = RUN<float>}),       \
      KernelRegistration({.op = OP, .types = {of(DType::kDouble)}, .run = RUN<double>}), \
      KernelRegistration({.op = OP, .types = {of(DType::kComplex64)}, .run = RUN<C>}),   \
      KernelRegistration({.op = OP, .types = {of(DType::kComplex128)}, .run = RUN<Z>})

const KernelRegistration kKernels[] = {
    TANDEM_FOUR_TYPES("MatrixInverse", inverse),
    TANDEM_FOUR_TYPES("MatrixSolve", solve),
    TANDEM_FOUR_TYPES("MatrixTriangularSolve", triangular_solve),
    TANDEM_FOUR_TYPES("MatrixSolveLs", least_squares),
    TANDEM_FOUR_TYPES("MatrixDeterminant", determinant),
    TANDEM_FOUR_TYPES("LogMatrixDeterminant", log_matrix_determinant),
    KernelRegistration(
        {.op = "MatrixInverse", .types = {of(DType::kHalf)}, .run = inverse<float, Half>}),
};
#undef TANDEM_FOUR_TYPES

}  // namespace
}  // namespace tandem::cpu
