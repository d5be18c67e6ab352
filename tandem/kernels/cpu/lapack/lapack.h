#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

// LAPACK's factorisations for float, double and their complex types: the one door to the library.
// Matrices are dense and row-major, those of `lu` and what takes its results column-major; sizes
// beyond 32 bits throw InvalidArgumentError. Functions that may fail return LAPACK's number: 0 is
// success, above 0 the place where the method broke down, below 0 that a value is not a number.

namespace tandem::cpu::lapack {

template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<std::complex<R>> {
  using type = R;
};
template <class T>
using Real = typename RealOf<T>::type;

/// Throws unless LAPACK can count the elements of its working memory for matrices of this size.
void check_size(std::int64_t rows, std::int64_t columns);

/// The lower triangle becomes L with A = L Lᴴ; what lies above stays.
template <class T>
int cholesky(std::int64_t n, T* a);
/// A becomes L and U; row i was exchanged with row pivots[i] (counted from 1) in turn.
template <class T>
int lu(std::int64_t rows, std::int64_t columns, T* a, std::int32_t* pivots);
/// Solves A X = B, or Aᴴ X = B, in place with the results of `lu`.
template <class T>
int lu_solve(bool adjoint, std::int64_t n, std::int64_t columns, const T* lu,
             const std::int32_t* pivots, T* b);
template <class T>
int lu_inverse(std::int64_t n, T* lu, const std::int32_t* pivots);
/// A becomes R and the reflectors that `qr_basis` takes; tau: min(rows, columns) numbers.
template <class T>
int qr(std::int64_t rows, std::int64_t columns, T* a, T* tau);
/// The first `columns` columns of Q from `reflectors` of `qr`, in place.
template <class T>
int qr_basis(std::int64_t rows, std::int64_t columns, std::int64_t reflectors, T* a, const T* tau);
/// A = U diag(s) Vᴴ, with `vh` as it stands there. `full`: U and Vᴴ are square; else they have
/// min(rows, columns) columns and rows. u and vh may be null together. A is overwritten.
template <class T>
int svd(bool full, std::int64_t rows, std::int64_t columns, T* a, Real<T>* s, T* u, T* vh);
/// Ascending eigenvalues of the self-adjoint matrix in the lower triangle; A becomes the
/// eigenvectors, one a column, if they are wanted.
template <class T>
int self_adjoint_eig(bool vectors, std::int64_t n, T* a, Real<T>* e);
/// Eigenvalues, and right eigenvectors of length 1, one a column, unless v is null. A is
/// overwritten.
template <class T>
int eig(std::int64_t n, T* a, std::complex<Real<T>>* e, std::complex<Real<T>>* v);
/// A becomes T, upper triangular, with A = Z T Zᴴ.
int schur(std::int64_t n, std::complex<double>* a, std::complex<double>* z);
/// The least squares solution of least norm of A X = B; b has max(rows, columns) rows, of which the
/// first `columns` hold the solution. A is overwritten.
template <class T>
int least_squares(std::int64_t rows, std::int64_t columns, std::int64_t right, T* a, T* b);
/// Solves with a tridiagonal matrix and row exchanges, in place. The diagonals are overwritten.
template <class T>
int tridiagonal_solve(std::int64_t n, std::int64_t columns, T* below, T* diagonal, T* above, T* b);

}  // namespace tandem::cpu::lapack
