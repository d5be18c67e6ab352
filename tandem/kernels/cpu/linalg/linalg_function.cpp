// Functions of matrices through their Schur form, and tridiagonal matrices.

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/linalg/linalg.h"

namespace tandem::cpu {
namespace {

using Z = std::complex<double>;
using Matrix = std::vector<Z>;

// The square root of an upper triangle, from the diagonal outwards.
Matrix triangle_sqrt(const Matrix& t, std::int64_t n) {
  Matrix r(t.size(), Z(0));
  const auto at = [n](std::int64_t i, std::int64_t j) {
    return static_cast<std::size_t>(i * n + j);
  };
  for (std::int64_t j = 0; j < n; ++j) {
    r[at(j, j)] = std::sqrt(t[at(j, j)]);
    for (std::int64_t i = j - 1; i >= 0; --i) {
      Z rest = t[at(i, j)];
      for (std::int64_t k = i + 1; k < j; ++k) rest -= r[at(i, k)] * r[at(k, j)];
      r[at(i, j)] = rest == Z(0) ? Z(0) : rest / (r[at(i, i)] + r[at(j, j)]);
    }
  }
  return r;
}

Matrix product(const Matrix& a, const Matrix& b, std::int64_t n) {
  Matrix out(a.size(), Z(0));
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t k = 0; k < n; ++k) {
      const Z factor = a[static_cast<std::size_t>(i * n + k)];
      for (std::int64_t j = 0; j < n; ++j) {
        out[static_cast<std::size_t>(i * n + j)] += factor * b[static_cast<std::size_t>(k * n + j)];
      }
    }
  }
  return out;
}

double distance_from_one(const Matrix& m, std::int64_t n) {
  double most = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      sum += std::abs(m[static_cast<std::size_t>(i * n + j)] - Z(i == j ? 1 : 0));
    }
    most = std::max(most, sum);
  }
  return most;
}

// Square roots move the triangle close to 1; there the logarithm is 2 artanh of
// Y = (R - 1) / (R + 1), whose series ends soon.
Matrix triangle_log(Matrix r, std::int64_t n) {
  double scale = 2;
  for (int roots = 0; roots < 64 && distance_from_one(r, n) > 0.1; ++roots) {
    r = triangle_sqrt(r, n);
    scale *= 2;
  }
  Matrix above = r;
  for (std::int64_t i = 0; i < n; ++i) {
    r[static_cast<std::size_t>(i * n + i)] -= 1.0;
    above[static_cast<std::size_t>(i * n + i)] += 1.0;
  }
  solve_triangle(false, false, n, n, above.data(), r.data());
  const Matrix square = product(r, r, n);
  Matrix power = r;
  for (int k = 3; k <= 15; k += 2) {
    power = product(power, square, n);
    for (std::size_t i = 0; i < r.size(); ++i) r[i] += power[i] / static_cast<double>(k);
  }
  for (Z& value : r) value *= scale;
  return r;
}

template <class T, Matrix (*kOfTriangle)(Matrix, std::int64_t)>
void matrix_function(KernelContext& c) {
  const Array& x = c.input(0);
  const MatrixBatch m(x, "input");
  require_square(m, x);
  Array& out = c.allocate_output(0, x.shape());
  if (x.num_elements() == 0) return;
  const std::int64_t n = m.rows;
  for_each_matrix(c, m, [&](std::int64_t b) {
    const T* from = x.data<T>() + b * m.size();
    T* to = out.data<T>() + b * m.size();
    Matrix t(from, from + m.size()), z(t.size());
    if (lapack::schur(n, t.data(), z.data()) != 0) return fill_nan(to, m.size());
    for (std::int64_t i = 0; i < n; ++i) {
      std::fill(t.begin() + i * n, t.begin() + i * n + i, Z(0));
    }
    Matrix turned(z.size());
    adjoint_copy(z.data(), n, n, turned.data());
    const Matrix result = product(product(z, kOfTriangle(std::move(t), n), n), turned, n);
    for (std::size_t i = 0; i < result.size(); ++i) {
      if constexpr (std::is_floating_point_v<T>) {
        to[i] = static_cast<T>(result[i].real());
      } else {
        to[i] = T(result[i]);
      }
    }
  });
}

Matrix sqrt_of(Matrix t, std::int64_t n) { return triangle_sqrt(t, n); }

// ---- Tridiagonal matrices ----

template <class T>
void tridiagonal_solve(KernelContext& c) {
  const Array& diagonals = c.input(0);
  const Array& rhs = c.input(1);
  const MatrixBatch m(diagonals, "diagonals");
  const MatrixBatch right(rhs, "rhs");
  if (m.rows != 3) {
    throw InvalidArgumentError(cat("Expected 3 diagonals, got shape ", diagonals.shape()));
  }
  if (right.rows != m.columns || !(batch_shape(diagonals, {}) == batch_shape(rhs, {}))) {
    throw InvalidArgumentError(
        cat("The length of diagonals must be equal to the rows of rhs, and "
            "their batches the same: got ",
            diagonals.shape(), " and ", rhs.shape()));
  }
  if (c.attr<bool>("perturb_singular")) {
    throw UnimplementedError("perturb_singular is not there on a CPU.");
  }
  const bool pivoting = c.attr<bool>("partial_pivoting");
  const std::int64_t n = m.columns, columns = right.columns;
  Array& out = c.allocate_output(0, rhs.shape());
  if (rhs.num_elements() == 0) return;
  for (std::int64_t b = 0; b < m.count; ++b) {
    const T* from = diagonals.data<T>() + b * m.size();
    std::vector<T> above(from, from + n), main(from + n, from + 2 * n);
    std::vector<T> below(from + 2 * n, from + 3 * n);
    const T* side = rhs.data<T>() + b * right.size();
    T* x = out.data<T>() + b * right.size();
    std::copy(side, side + right.size(), x);
    if (pivoting) {
      const int info =
          lapack::tridiagonal_solve(n, columns, below.data() + 1, main.data(), above.data(), x);
      if (info != 0) fill_nan(x, right.size());  // singular, as in TensorFlow
      continue;
    }
    bool singular = main[0] == T(0);
    for (std::int64_t i = 1; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const T factor = below[at] / main[at - 1];
      main[at] -= factor * above[at - 1];
      singular |= main[at] == T(0);
      for (std::int64_t j = 0; j < columns; ++j) {
        x[i * columns + j] -= factor * x[(i - 1) * columns + j];
      }
    }
    for (std::int64_t i = n - 1; i >= 0; --i) {
      const auto at = static_cast<std::size_t>(i);
      for (std::int64_t j = 0; j < columns; ++j) {
        T& value = x[i * columns + j];
        if (i + 1 < n) value -= above[at] * x[(i + 1) * columns + j];
        value /= main[at];
      }
    }
    if (singular) fill_nan(x, right.size());
  }
}

template <class T>
void tridiagonal_product(KernelContext& c) {
  const Array& rhs = c.input(3);
  const MatrixBatch right(rhs, "rhs");
  const std::int64_t n = right.rows, columns = right.columns;
  for (int i = 0; i < 3; ++i) {
    if (!(c.input(i).shape() == batch_shape(rhs, {1, n}))) {
      throw InvalidArgumentError(cat("Each diagonal must have shape ", batch_shape(rhs, {1, n}),
                                     ", got ", c.input(i).shape()));
    }
  }
  Array& out = c.allocate_output(0, rhs.shape());
  for (std::int64_t row = 0; row < right.count * n; ++row) {
    const std::int64_t i = row % n;
    const T above = c.input(0).data<T>()[row], main = c.input(1).data<T>()[row];
    const T below = c.input(2).data<T>()[row];
    const T* x = rhs.data<T>() + row * columns;
    for (std::int64_t j = 0; j < columns; ++j) {
      T sum = main * x[j];
      if (i + 1 < n) sum += above * x[columns + j];
      if (i > 0) sum += below * x[j - columns];
      out.data<T>()[row * columns + j] = sum;
    }
  }
}

template <class T>
void matrix_sqrt(KernelContext& c) {
  matrix_function<T, sqrt_of>(c);
}
template <class T>
void matrix_log(KernelContext& c) {
  matrix_function<T, triangle_log>(c);
}

using C = std::complex<float>;
constexpr TypeConstraint of(DType dtype) { return {"T", {dtype}}; }

#define TANDEM_TWO_COMPLEX(OP, RUN)                                                \
  KernelRegistration({.op = OP, .types = {of(DType::kComplex64)}, .run = RUN<C>}), \
      KernelRegistration({.op = OP, .types = {of(DType::kComplex128)}, .run = RUN<Z>})
#define TANDEM_FOUR_TYPES(OP, RUN)                                                       \
  KernelRegistration({.op = OP, .types = {of(DType::kFloat)}, .run = RUN<float>}),       \
      KernelRegistration({.op = OP, .types = {of(DType::kDouble)}, .run = RUN<double>}), \
      TANDEM_TWO_COMPLEX(OP, RUN)

const KernelRegistration kKernels[] = {
    TANDEM_FOUR_TYPES("MatrixSquareRoot", matrix_sqrt),
    TANDEM_TWO_COMPLEX("MatrixLogarithm", matrix_log),
    TANDEM_FOUR_TYPES("TridiagonalSolve", tridiagonal_solve),
    TANDEM_FOUR_TYPES("TridiagonalMatMul", tridiagonal_product),
};
#undef TANDEM_FOUR_TYPES
#undef TANDEM_TWO_COMPLEX

}  // namespace
}  // namespace tandem::cpu
