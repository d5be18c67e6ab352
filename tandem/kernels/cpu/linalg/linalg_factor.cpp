// Factorisations of matrices: Cholesky, Lu, Qr, Svd, SelfAdjointEigV2, Eig.

#include <algorithm>
#include <complex>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/linalg/linalg.h"

namespace tandem::cpu {
namespace {

// Vectors that are not wanted are a scalar zero: TensorFlow gives a scalar too.
template <class T>
void set_unwanted(Array& vectors) {
  vectors.data<T>()[0] = T(0);
}

template <class T>
void clear_above(T* a, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t i = 0; i < rows; ++i) {
    if (i + 1 < columns) std::fill(a + i * columns + i + 1, a + (i + 1) * columns, T(0));
  }
}
template <class T>
void clear_below(T* a, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t i = 1; i < rows; ++i) {
    std::fill(a + i * columns, a + i * columns + std::min(i, columns), T(0));
  }
}

template <class T>
void cholesky(KernelContext& c) {
  const Array& x = c.input(0);
  const MatrixBatch m(x, "input");
  require_square(m, x);
  Array& out = c.allocate_output(0, x.shape());
  if (x.num_elements() == 0) return;
  for_each_matrix(c, m, [&](std::int64_t i) {
    T* a = out.data<T>() + i * m.size();
    const T* from = x.data<T>() + i * m.size();
    std::copy(from, from + m.size(), a);
    // The factor of a matrix that is not positive definite is all NaN, as in TensorFlow.
    if (lapack::cholesky(m.rows, a) != 0) fill_nan(a, m.size());
    clear_above(a, m.rows, m.rows);
  });
}

// The gradient of the factor, as the reverse of the factorisation: with P the lower triangle of
// Lᴴ Ḡ, its diagonal halved, the symmetric part of L⁻ᴴ P L⁻¹.
template <class T>
void cholesky_grad(KernelContext& c) {
  const Array& l = c.input(0);
  const Array& g = c.input(1);
  const MatrixBatch m(l, "l");
  require_square(m, l);
  if (!(l.shape() == g.shape())) {
    throw InvalidArgumentError(
        cat("Inputs to CholeskyGrad must be of one shape, got ", l.shape(), " and ", g.shape()));
  }
  Array& out = c.allocate_output(0, l.shape());
  if (l.num_elements() == 0) return;
  const std::int64_t n = m.rows;
  for_each_matrix(c, m, [&](std::int64_t b) {
    const T* factor = l.data<T>() + b * m.size();
    const T* grad = g.data<T>() + b * m.size();
    std::vector<T> p(static_cast<std::size_t>(n * n)), lower(p.size()), turned(p.size());
    std::copy(factor, factor + n * n, lower.begin());
    clear_above(lower.data(), n, n);
    std::copy(grad, grad + n * n, turned.begin());
    clear_above(turned.data(), n, n);
    multiply<T>({.turn_a = blas::Turn::kAdjoint,
                 .m = n,
                 .n = n,
                 .k = n,
                 .a = lower.data(),
                 .b = turned.data(),
                 .c = p.data()});
    clear_above(p.data(), n, n);
    for (std::int64_t i = 0; i < n; ++i) p[static_cast<std::size_t>(i * n + i)] /= T(2);
    solve_triangle(true, true, n, n, factor, p.data());
    adjoint_copy(p.data(), n, n, turned.data());
    solve_triangle(true, true, n, n, factor, turned.data());
    T* to = out.data<T>() + b * m.size();
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        to[i * n + j] = (turned[static_cast<std::size_t>(i * n + j)] +
                         turned[static_cast<std::size_t>(j * n + i)]) /
                        T(2);
      }
    }
  });
}

// Like lapack::lu of a square matrix, but the pivots are the greatest by modulus; LAPACK compares
// the sums of both parts' magnitudes.
template <class R>
int lu_by_modulus(std::int64_t n, std::complex<R>* a, std::int32_t* pivots) {
  if (std::any_of(a, a + n * n, [](std::complex<R> x) { return !(x == x); })) return -1;
  for (std::int64_t k = 0; k < n; ++k) {
    std::complex<R>* const column = a + k * n;
    const auto greatest = std::max_element(
        column + k, column + n,
        [](std::complex<R> x, std::complex<R> y) { return std::abs(x) < std::abs(y); });
    const std::int64_t pivot = greatest - column;
    pivots[k] = static_cast<std::int32_t>(pivot + 1);
    if (*greatest == R(0)) continue;
    if (pivot != k) {
      for (std::int64_t j = 0; j < n; ++j) std::swap(a[j * n + k], a[j * n + pivot]);
    }
    for (std::int64_t i = k + 1; i < n; ++i) column[i] /= column[k];
    for (std::int64_t j = k + 1; j < n; ++j) {
      std::complex<R>* const other = a + j * n;
      for (std::int64_t i = k + 1; i < n; ++i) other[i] -= column[i] * other[k];
    }
  }
  return 0;
}

template <class T>
int factor(std::int64_t n, T* a, std::int32_t* pivots) {
  if constexpr (std::is_same_v<T, lapack::Real<T>>)
    return lapack::lu(n, n, a, pivots);
  else
    return lu_by_modulus(n, a, pivots);
}

template <class T, class Index>
void lu(KernelContext& c) {
  const Array& x = c.input(0);
  const MatrixBatch m(x, "input");
  require_square(m, x);
  Array& out = c.allocate_output(0, x.shape());
  Array& p = c.allocate_output(1, batch_shape(x, {m.rows}));
  if (x.num_elements() == 0) return;
  for_each_matrix(c, m, [&](std::int64_t i) {
    std::vector<T> columns(static_cast<std::size_t>(m.size()));
    transposed_copy(x.data<T>() + i * m.size(), m.rows, m.columns, columns.data());
    std::vector<std::int32_t> pivots(static_cast<std::size_t>(m.rows));
    if (factor(m.rows, columns.data(), pivots.data()) < 0) {
      if (first_is_nan(columns.data())) throw InvalidArgumentError("Input is not invertible.");
      for (std::int64_t k = 0; k < m.rows; ++k) pivots[static_cast<std::size_t>(k)] = 1;
      fill_nan(columns.data(), m.size());
    }
    if (has_zero_on_diagonal(columns.data(), m.rows)) {
      throw InvalidArgumentError("Input is not invertible.");
    }
    transposed_copy(columns.data(), m.columns, m.rows, out.data<T>() + i * m.size());
    Index* order = p.data<Index>() + i * m.rows;
    for (std::int64_t k = 0; k < m.rows; ++k) order[k] = static_cast<Index>(k);
    for (std::int64_t k = 0; k < m.rows; ++k) {
      std::swap(order[k], order[pivots[static_cast<std::size_t>(k)] - 1]);
    }
  });
}

// half goes through float, in copies.
template <class T, class Stored = T>
void qr(KernelContext& c) {
  const Array& x = c.input(0);
  const MatrixBatch m(x, "input");
  const bool full = c.attr<bool>("full_matrices");
  const std::int64_t k = std::min(m.rows, m.columns);
  const std::int64_t width = full ? m.rows : k;
  Array& q = c.allocate_output(0, batch_shape(x, {m.rows, width}));
  Array& r = c.allocate_output(1, batch_shape(x, {width, m.columns}));
  if (q.num_elements() + r.num_elements() == 0) return;
  for_each_matrix(c, m, [&](std::int64_t i) {
    const Stored* from = x.data<Stored>() + i * m.size();
    std::vector<T> a(static_cast<std::size_t>(m.size())), tau(static_cast<std::size_t>(k) + 1);
    std::transform(from, from + m.size(), a.begin(), [](Stored v) { return static_cast<T>(v); });
    std::vector<T> basis(static_cast<std::size_t>(m.rows * width), T(0));
    int info = 0;
    if (k > 0) {
      info = lapack::qr(m.rows, m.columns, a.data(), tau.data());
      for (std::int64_t row = 0; row < m.rows; ++row) {
        const T* reflectors = a.data() + row * m.columns;
        std::copy(reflectors, reflectors + k, basis.data() + row * width);
      }
      info += lapack::qr_basis(m.rows, width, k, basis.data(), tau.data());
    } else {
      for (std::int64_t d = 0; d < width; ++d) basis[static_cast<std::size_t>(d * width + d)] = 1;
    }
    if (info != 0) {
      fill_nan(basis.data(), m.rows * width);
      fill_nan(a.data(), m.size());
    }
    clear_below(a.data(), m.rows, m.columns);
    std::transform(basis.begin(), basis.end(), q.data<Stored>() + i * m.rows * width,
                   [](T v) { return static_cast<Stored>(v); });
    std::transform(a.begin(), a.begin() + width * m.columns,
                   r.data<Stored>() + i * width * m.columns,
                   [](T v) { return static_cast<Stored>(v); });
  });
}

template <class T>
void svd(KernelContext& c) {
  const Array& x = c.input(0);
  const MatrixBatch m(x, "input");
  const bool full = c.attr<bool>("full_matrices");
  const bool vectors = c.attr<bool>("compute_uv");
  const std::int64_t k = std::min(m.rows, m.columns);
  const std::int64_t nu = full ? m.rows : k, nv = full ? m.columns : k;
  Array& s = c.allocate_output(0, batch_shape(x, {k}));
  Array& u = c.allocate_output(1, vectors ? batch_shape(x, {m.rows, nu}) : Shape{});
  Array& v = c.allocate_output(2, vectors ? batch_shape(x, {m.columns, nv}) : Shape{});
  if (!vectors) {
    set_unwanted<T>(u);
    set_unwanted<T>(v);
  }
  if (x.num_elements() == 0) {
    // Any basis will do for a matrix without elements: the unit vectors.
    for (Array* basis : {&u, &v}) {
      if (!vectors || basis->num_elements() == 0) continue;
      const std::int64_t n = basis->shape()[basis->rank() - 1];
      T* to = basis->data<T>();
      for (std::int64_t i = 0; i < basis->num_elements(); ++i) to[i] = T(i / n % n == i % n);
    }
    return;
  }
  for_each_matrix(c, m, [&](std::int64_t i) {
    std::vector<T> a = matrix_copy(x.data<T>() + i * m.size(), m.rows, m.columns, false);
    std::vector<lapack::Real<T>> values(static_cast<std::size_t>(k));
    std::vector<T> vh(vectors ? static_cast<std::size_t>(nv * m.columns) : 0);
    T* to_u = vectors ? u.data<T>() + i * m.rows * nu : nullptr;
    const int info = lapack::svd(full, m.rows, m.columns, a.data(), values.data(), to_u,
                                 vectors ? vh.data() : nullptr);
    T* to_s = s.data<T>() + i * k;
    for (std::int64_t j = 0; j < k; ++j) to_s[j] = T(values[static_cast<std::size_t>(j)]);
    if (info != 0) fill_nan(to_s, k);
    if (!vectors) return;
    if (info != 0) {
      fill_nan(to_u, m.rows * nu);
      fill_nan(vh.data(), nv * m.columns);
    }
    adjoint_copy(vh.data(), nv, m.columns, v.data<T>() + i * m.columns * nv);
  });
}

template <class T>
void self_adjoint_eig(KernelContext& c) {
  const Array& x = c.input(0);
  const MatrixBatch m(x, "input");
  require_square(m, x);
  const bool vectors = c.attr<bool>("compute_v");
  Array& e = c.allocate_output(0, batch_shape(x, {m.rows}));
  Array& v = c.allocate_output(1, vectors ? x.shape() : Shape{});
  if (!vectors) set_unwanted<T>(v);
  if (x.num_elements() == 0) return;
  for_each_matrix(c, m, [&](std::int64_t i) {
    std::vector<T> a = matrix_copy(x.data<T>() + i * m.size(), m.rows, m.rows, false);
    std::vector<lapack::Real<T>> values(static_cast<std::size_t>(m.rows));
    if (lapack::self_adjoint_eig(vectors, m.rows, a.data(), values.data()) != 0) {
      throw InvalidArgumentError(
          "Self-adjoint eigen decomposition was not successful. The input might not be valid.");
    }
    T* to = e.data<T>() + i * m.rows;
    for (const auto value : values) *to++ = T(value);
    if (vectors) std::copy(a.begin(), a.end(), v.data<T>() + i * m.size());
  });
}

// Complex matrices have their eigenvalues in the order of their moduli, as in TensorFlow.
template <class T>
void sort_by_modulus(std::int64_t n, T* e, T* v) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T* least =
        std::min_element(e + i, e + n, [](T a, T b) { return std::abs(a) < std::abs(b); });
    const std::int64_t j = least - e;
    if (j == i) continue;
    std::swap(e[i], e[j]);
    for (std::int64_t row = 0; v != nullptr && row < n; ++row) {
      std::swap(v[row * n + i], v[row * n + j]);
    }
  }
}

template <class T>
void eig(KernelContext& c) {
  using Out = std::complex<lapack::Real<T>>;
  const Array& x = c.input(0);
  const MatrixBatch m(x, "input");
  require_square(m, x);
  const bool vectors = c.attr<bool>("compute_v");
  Array& e = c.allocate_output(0, batch_shape(x, {m.rows}));
  Array& v = c.allocate_output(1, vectors ? x.shape() : Shape{});
  if (!vectors) set_unwanted<Out>(v);
  if (x.num_elements() == 0) return;
  for_each_matrix(c, m, [&](std::int64_t i) {
    std::vector<T> a = matrix_copy(x.data<T>() + i * m.size(), m.rows, m.rows, false);
    // LAPACK writes outside of its arrays for infinite ones.
    const auto finite = [](const T& value) { return std::isfinite(std::abs(value)); };
    if (!std::all_of(a.begin(), a.end(), finite)) {
      throw InvalidArgumentError(
          "Eigen decomposition was not successful. The input might not be valid.");
    }
    Out* to_v = vectors ? v.data<Out>() + i * m.size() : nullptr;
    Out* to_e = e.data<Out>() + i * m.rows;
    if (lapack::eig(m.rows, a.data(), to_e, to_v) != 0) {
      throw InvalidArgumentError(
          "Eigen decomposition was not successful. The input might not be valid.");
    }
    if constexpr (std::is_same_v<T, Out>) sort_by_modulus(m.rows, to_e, to_v);
  });
}

using C = std::complex<float>;
using Z = std::complex<double>;
constexpr TypeConstraint of(DType dtype, const char* attr = "T") { return {attr, {dtype}}; }

// An op for the four types of LAPACK.
#define TANDEM_FOUR_TYPES(OP, RUN)                                                       \
  KernelRegistration({.op = OP, .types = {of(DType::kFloat)}, .run = RUN<float>}),       \
      KernelRegistration({.op = OP, .types = {of(DType::kDouble)}, .run = RUN<double>}), \
      KernelRegistration({.op = OP, .types = {of(DType::kComplex64)}, .run = RUN<C>}),   \
      KernelRegistration({.op = OP, .types = {of(DType::kComplex128)}, .run = RUN<Z>})
#define TANDEM_LU(DTYPE, T)                                                           \
  KernelRegistration({.op = "Lu",                                                     \
                      .types = {of(DTYPE), of(DType::kInt32, "output_idx_type")},     \
                      .run = lu<T, std::int32_t>}),                                   \
      KernelRegistration({.op = "Lu",                                                 \
                          .types = {of(DTYPE), of(DType::kInt64, "output_idx_type")}, \
                          .run = lu<T, std::int64_t>})

const KernelRegistration kKernels[] = {
    TANDEM_FOUR_TYPES("Cholesky", cholesky),
    TANDEM_FOUR_TYPES("Qr", qr),
    TANDEM_FOUR_TYPES("Svd", svd),
    TANDEM_FOUR_TYPES("SelfAdjointEigV2", self_adjoint_eig),
    TANDEM_LU(DType::kFloat, float),
    TANDEM_LU(DType::kDouble, double),
    TANDEM_LU(DType::kComplex64, C),
    TANDEM_LU(DType::kComplex128, Z),
    KernelRegistration({.op = "Qr", .types = {of(DType::kHalf)}, .run = qr<float, Half>}),
    KernelRegistration(
        {.op = "CholeskyGrad", .types = {of(DType::kFloat)}, .run = cholesky_grad<float>}),
    KernelRegistration(
        {.op = "CholeskyGrad", .types = {of(DType::kDouble)}, .run = cholesky_grad<double>}),
    KernelRegistration({.op = "Eig",
                        .types = {of(DType::kFloat), of(DType::kComplex64, "Tout")},
                        .run = eig<float>}),
    KernelRegistration({.op = "Eig",
                        .types = {of(DType::kDouble), of(DType::kComplex128, "Tout")},
                        .run = eig<double>}),
    KernelRegistration({.op = "Eig",
                        .types = {of(DType::kComplex64), of(DType::kComplex64, "Tout")},
                        .run = eig<C>}),
    KernelRegistration({.op = "Eig",
                        .types = {of(DType::kComplex128), of(DType::kComplex128, "Tout")},
                        .run = eig<Z>}),
};
#undef TANDEM_LU
#undef TANDEM_FOUR_TYPES

}  // namespace
}  // namespace tandem::cpu
