#include "tandem/kernels/cpu/lapack/lapack.h"

// What LAPACKE's header is to call complex numbers.
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/lapack/blas.h"
#include "tandem/kernels/cpu/lapack/transposed_copy.h"

namespace tandem::cpu::lapack {
namespace {

using C = std::complex<float>;
using Z = std::complex<double>;
constexpr int kRows = LAPACK_ROW_MAJOR;
// The library's own order: nothing is turned around on the way.
constexpr int kColumns = LAPACK_COL_MAJOR;

lapack_int size(std::int64_t n) {
  if (n > std::numeric_limits<lapack_int>::max()) {
    throw InvalidArgumentError(
        cat("A matrix with ", n, " rows or columns is too large: LAPACK counts in 32 bits."));
  }
  return static_cast<lapack_int>(n);
}
// The distance between rows, which must not be 0 even where there is nothing.
lapack_int stride(std::int64_t n) { return std::max(size(n), lapack_int{1}); }

// One overload of a LAPACKE function a type, under one name.
#define TANDEM_LAPACK_REAL(NAME, FUNCTION) \
  template <class... Args>                 \
  lapack_int NAME(float, Args... args) {   \
    const blas::Entry entry;               \
    return LAPACKE_s##FUNCTION(args...);   \
  }                                        \
  template <class... Args>                 \
  lapack_int NAME(double, Args... args) {  \
    const blas::Entry entry;               \
    return LAPACKE_d##FUNCTION(args...);   \
  }
#define TANDEM_LAPACK_COMPLEX(NAME, FUNCTION) \
  template <class... Args>                    \
  lapack_int NAME(C, Args... args) {          \
    const blas::Entry entry;                  \
    return LAPACKE_c##FUNCTION(args...);      \
  }                                           \
  template <class... Args>                    \
  lapack_int NAME(Z, Args... args) {          \
    const blas::Entry entry;                  \
    return LAPACKE_z##FUNCTION(args...);      \
  }
#define TANDEM_LAPACK(NAME, FUNCTION) \
  TANDEM_LAPACK_REAL(NAME, FUNCTION)  \
  TANDEM_LAPACK_COMPLEX(NAME, FUNCTION)

TANDEM_LAPACK(potrf, potrf)
TANDEM_LAPACK(getrf, getrf)
TANDEM_LAPACK(getrs, getrs)
TANDEM_LAPACK(getri, getri)
TANDEM_LAPACK(geqrf, geqrf)
TANDEM_LAPACK_REAL(ungqr, orgqr)
TANDEM_LAPACK_COMPLEX(ungqr, ungqr)
TANDEM_LAPACK(gesdd_work, gesdd_work)
TANDEM_LAPACK_REAL(heevd, syevd)
TANDEM_LAPACK_COMPLEX(heevd, heevd)
TANDEM_LAPACK_REAL(real_geev, geev)
TANDEM_LAPACK_COMPLEX(geev, geev)
TANDEM_LAPACK(gelsd, gelsd)
TANDEM_LAPACK(gtsv, gtsv)
#undef TANDEM_LAPACK
#undef TANDEM_LAPACK_COMPLEX
#undef TANDEM_LAPACK_REAL

template <class T>
constexpr bool is_complex = !std::is_same_v<T, Real<T>>;

// Column-major. To ask for the length of the working memory takes as long as a small decomposition
// itself, so each thread remembers the last answer: a batch's matrices have one size.
template <class T>
int gesdd(char job, lapack_int m, lapack_int n, T* a, Real<T>* s, T* u, lapack_int u_stride, T* vh,
          lapack_int vh_stride) {
  struct Known {
    char job = 0;
    lapack_int m = 0, n = 0, length = 0;
  };
  thread_local Known known;
  const auto more = static_cast<std::size_t>(std::max(m, n));
  const auto less = static_cast<std::size_t>(std::min(m, n));
  if (std::any_of(a, a + more * less, [](T v) { return v != v; })) return -1;
  std::vector<lapack_int> integers(8 * less);
  std::vector<Real<T>> reals(is_complex<T> ? less * std::max(5 * less + 7, 2 * (more + less) + 1)
                                           : 0);
  const auto call = [&](T* work, lapack_int length) -> int {
    if constexpr (is_complex<T>) {
      return gesdd_work(T(), kColumns, job, m, n, a, m, s, u, u_stride, vh, vh_stride, work, length,
                        reals.data(), integers.data());
    } else {
      return gesdd_work(T(), kColumns, job, m, n, a, m, s, u, u_stride, vh, vh_stride, work, length,
                        integers.data());
    }
  };
  if (known.job != job || known.m != m || known.n != n) {
    T best(0);
    if (const int info = call(&best, -1); info != 0) return info;
    known = {job, m, n, static_cast<lapack_int>(std::real(best))};
  }
  std::vector<T> work(static_cast<std::size_t>(known.length));
  return call(work.data(), known.length);
}

}  // namespace

void check_size(std::int64_t rows, std::int64_t columns) {
  // The largest working memory, that of the singular values, has about 4 n² + 7 n elements.
  constexpr std::int64_t kLargest = 23'000;
  if (std::min(rows, columns) > kLargest) {
    throw InvalidArgumentError(cat("A ", rows, " x ", columns,
                                   " matrix is too large: LAPACK counts its working memory in 32 "
                                   "bits, which suffices for ",
                                   kLargest, " rows or columns."));
  }
  size(std::max(rows, columns));
}

template <class T>
int cholesky(std::int64_t n, T* a) {
  // Row by row A is the transpose of what the library sees, and U of that Lᵀ.
  return potrf(T(), kColumns, 'U', size(n), a, stride(n));
}

template <class T>
int lu(std::int64_t rows, std::int64_t columns, T* a, std::int32_t* pivots) {
  return getrf(T(), kColumns, size(rows), size(columns), a, stride(rows), pivots);
}

template <class T>
int lu_solve(bool adjoint, std::int64_t n, std::int64_t columns, const T* lu,
             const std::int32_t* pivots, T* b) {
  return getrs(T(), kColumns, adjoint ? 'C' : 'N', size(n), size(columns), lu, stride(n), pivots, b,
               stride(n));
}

template <class T>
int lu_inverse(std::int64_t n, T* lu, const std::int32_t* pivots) {
  return getri(T(), kColumns, size(n), lu, stride(n), pivots);
}

template <class T>
int qr(std::int64_t rows, std::int64_t columns, T* a, T* tau) {
  return geqrf(T(), kRows, size(rows), size(columns), a, stride(columns), tau);
}

template <class T>
int qr_basis(std::int64_t rows, std::int64_t columns, std::int64_t reflectors, T* a, const T* tau) {
  return ungqr(T(), kRows, size(rows), size(columns), size(reflectors), a, stride(columns), tau);
}

template <class T>
int svd(bool full, std::int64_t rows, std::int64_t columns, T* a, Real<T>* s, T* u, T* vh) {
  check_size(rows, columns);
  const char job = u ? (full ? 'A' : 'S') : 'N';
  if (rows <= columns) {
    // Row by row A is Aᵀ = (Vᴴ)ᵀ diag(s) Uᵀ to the library, whose two bases so change places.
    return gesdd(job, size(columns), size(rows), a, s, vh, stride(columns), u, stride(rows));
  }
  // A tall matrix stays one: the library takes longer for its transpose.
  const std::int64_t width = full ? rows : columns;
  std::vector<T> work(static_cast<std::size_t>(rows * columns));
  std::vector<T> left(u ? static_cast<std::size_t>(rows * width) : 0);
  std::vector<T> right(u ? static_cast<std::size_t>(columns * columns) : 0);
  transposed_copy(a, rows, columns, work.data());
  const int info = gesdd(job, size(rows), size(columns), work.data(), s, left.data(), stride(rows),
                         right.data(), stride(columns));
  if (u) {
    transposed_copy(left.data(), width, rows, u);
    transposed_copy(right.data(), columns, columns, vh);
  }
  return info;
}

template <class T>
int self_adjoint_eig(bool vectors, std::int64_t n, T* a, Real<T>* e) {
  check_size(n, n);
  return heevd(T(), kRows, vectors ? 'V' : 'N', 'L', size(n), a, stride(n), e);
}

template <class T>
int eig(std::int64_t n, T* a, std::complex<Real<T>>* e, std::complex<Real<T>>* v) {
  check_size(n, n);
  const char job = v ? 'V' : 'N';
  T* none = nullptr;
  if constexpr (is_complex<T>) {
    return geev(T(), kRows, 'N', job, size(n), a, stride(n), e, none, stride(n), v, stride(n));
  } else {
    const auto count = static_cast<std::size_t>(n);
    std::vector<T> real(count), imag(count), vectors(v ? count * count : 0);
    const int info = real_geev(T(), kRows, 'N', job, size(n), a, stride(n), real.data(),
                               imag.data(), none, stride(n), vectors.data(), stride(n));
    for (std::size_t i = 0; i < count; ++i) e[i] = {real[i], imag[i]};
    // For a pair of conjugate eigenvalues the columns hold real and imaginary part.
    for (std::size_t j = 0; v && j < count; ++j) {
      const bool pair = imag[j] != 0 && j + 1 < count;
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = i * count + j;
        if (pair) {
          v[at] = {vectors[at], vectors[at + 1]};
          v[at + 1] = {vectors[at], -vectors[at + 1]};
        } else {
          v[at] = vectors[at];
        }
      }
      if (pair) ++j;
    }
    return info;
  }
}

int schur(std::int64_t n, std::complex<double>* a, std::complex<double>* z) {
  check_size(n, n);
  std::vector<std::complex<double>> e(static_cast<std::size_t>(n));
  lapack_int selected = 0;
  const blas::Entry entry;
  return LAPACKE_zgees(kRows, 'V', 'N', nullptr, size(n), a, stride(n), &selected, e.data(), z,
                       stride(n));
}

template <class T>
int least_squares(std::int64_t rows, std::int64_t columns, std::int64_t right, T* a, T* b) {
  check_size(rows, columns);
  std::vector<Real<T>> s(static_cast<std::size_t>(std::min(rows, columns)));
  lapack_int rank = 0;
  return gelsd(T(), kRows, size(rows), size(columns), size(right), a, stride(columns), b,
               stride(right), s.data(), Real<T>(-1), &rank);
}

template <class T>
int tridiagonal_solve(std::int64_t n, std::int64_t columns, T* below, T* diagonal, T* above, T* b) {
  return gtsv(T(), kRows, size(n), size(columns), below, diagonal, above, b, stride(columns));
}

#define TANDEM_LAPACK_INSTANCES(T)                                                            \
  template int cholesky(std::int64_t, T*);                                                    \
  template int lu(std::int64_t, std::int64_t, T*, std::int32_t*);                             \
  template int lu_solve(bool, std::int64_t, std::int64_t, const T*, const std::int32_t*, T*); \
  template int lu_inverse(std::int64_t, T*, const std::int32_t*);                             \
  template int qr(std::int64_t, std::int64_t, T*, T*);                                        \
  template int qr_basis(std::int64_t, std::int64_t, std::int64_t, T*, const T*);              \
  template int svd(bool, std::int64_t, std::int64_t, T*, Real<T>*, T*, T*);                   \
  template int self_adjoint_eig(bool, std::int64_t, T*, Real<T>*);                            \
  template int eig(std::int64_t, T*, std::complex<Real<T>>*, std::complex<Real<T>>*);         \
  template int least_squares(std::int64_t, std::int64_t, std::int64_t, T*, T*);               \
  template int tridiagonal_solve(std::int64_t, std::int64_t, T*, T*, T*, T*);
TANDEM_LAPACK_INSTANCES(float)
TANDEM_LAPACK_INSTANCES(double)
TANDEM_LAPACK_INSTANCES(C)
TANDEM_LAPACK_INSTANCES(Z)
#undef TANDEM_LAPACK_INSTANCES

}  // namespace tandem::cpu::lapack
