#include "tandem/kernels/cpu/lapack/blas.h"

#include <cblas.h>
#include <dlfcn.h>

#include <algorithm>
#include <complex>
#include <initializer_list>
#include <limits>
#include <mutex>

namespace tandem::cpu::blas {
namespace {

using C = std::complex<float>;
using Z = std::complex<double>;

CBLAS_TRANSPOSE cblas(Turn turn) {
  switch (turn) {
    case Turn::kNone: return CblasNoTrans;
    case Turn::kTranspose: return CblasTrans;
    case Turn::kAdjoint: return CblasConjTrans;
  }
  return CblasNoTrans;
}

bool one_at_a_time() {
  static const bool kSerial = [] {
    using SetThreads = void (*)(int);
    using GetParallel = int (*)();
    if (void* found = dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))
      reinterpret_cast<SetThreads>(found)(1);
    void* const parallel = dlsym(RTLD_DEFAULT, "openblas_get_parallel");
    return parallel != nullptr && reinterpret_cast<GetParallel>(parallel)() == 0;
  }();
  return kSerial;
}

std::mutex& entered() {
  static std::mutex mutex;
  return mutex;
}

// One overload of a CBLAS function a type, under one name; real ones take factors as values,
// complex ones by address.
#define TANDEM_BLAS(T, LETTER, ONE)                                                                \
  void gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const T* a, int lda,      \
            const T* b, int ldb, T* c, int ldc) {                                                  \
    const Entry entry;                                                                             \
    const T one(1), zero(0);                                                                       \
    cblas_##LETTER##gemm(CblasRowMajor, ta, tb, m, n, k, ONE one, a, lda, b, ldb, ONE zero, c,     \
                         ldc);                                                                     \
  }                                                                                                \
  void gemv(CBLAS_TRANSPOSE t, int rows, int columns, const T* a, int lda, const T* x, int dx,     \
            T* y, int dy) {                                                                        \
    const Entry entry;                                                                             \
    const T one(1);                                                                                \
    cblas_##LETTER##gemv(CblasRowMajor, t, rows, columns, ONE one, a, lda, x, dx, ONE one, y, dy); \
  }                                                                                                \
  void trsm(CBLAS_UPLO uplo, CBLAS_TRANSPOSE t, int n, int columns, const T* a, T* b) {            \
    const Entry entry;                                                                             \
    const T one(1);                                                                                \
    cblas_##LETTER##trsm(CblasRowMajor, CblasLeft, uplo, t, CblasNonUnit, n, columns, ONE one, a,  \
                         n, b, columns);                                                           \
  }
TANDEM_BLAS(float, s, )
TANDEM_BLAS(double, d, )
TANDEM_BLAS(C, c, &)
TANDEM_BLAS(Z, z, &)
#undef TANDEM_BLAS

bool fits(std::initializer_list<std::int64_t> sizes) {
  return std::max(sizes) <= std::numeric_limits<int>::max();
}

// y = turn(a) x, of which a is rows x columns as it lies.
template <class T>
void times_vector(Turn turn, std::int64_t rows, std::int64_t columns, const T* a,
                  std::int64_t stride, const T* x, std::int64_t dx, T* y, std::int64_t dy) {
  // Cleared here: whether a factor of zero leaves a NaN that was there is up to the library.
  const std::int64_t count = turn == Turn::kNone ? rows : columns;
  for (std::int64_t i = 0; i < count; ++i) y[i * dy] = T(0);
  gemv(cblas(turn), static_cast<int>(rows), static_cast<int>(columns), a, static_cast<int>(stride),
       x, static_cast<int>(dx), y, static_cast<int>(dy));
}

}  // namespace

std::string library_name() {
  using GetText = char* (*)();
  std::string name;
  for (const char* function : {"openblas_get_config", "openblas_get_corename"}) {
    if (void* found = dlsym(RTLD_DEFAULT, function)) {
      if (!name.empty()) name += ' ';
      name += reinterpret_cast<GetText>(found)();
    }
  }
  return name.empty() ? "BLAS" : name;
}

Entry::Entry() {
  noticed_.emplace();
  if (!noticed_->allowed()) {
    noticed_.reset();
    if (!program_ends_here()) stop_at_program_end();
  }
  if (one_at_a_time()) entered().lock();
}
Entry::~Entry() {
  if (one_at_a_time()) entered().unlock();
}

template <class T>
bool multiply(const Product<T>& p) {
  if (!fits({p.m, p.n, p.k, p.a_stride, p.b_stride, p.c_stride})) return false;
  const bool turned_a = p.turn_a != Turn::kNone, turned_b = p.turn_b != Turn::kNone;
  if (p.n == 1 && p.turn_b != Turn::kAdjoint) {
    times_vector(p.turn_a, turned_a ? p.k : p.m, turned_a ? p.m : p.k, p.a, p.a_stride, p.b,
                 turned_b ? 1 : p.b_stride, p.c, p.c_stride);
  } else if (p.m == 1 && p.turn_a != Turn::kAdjoint && p.turn_b != Turn::kAdjoint) {
    times_vector(turned_b ? Turn::kNone : Turn::kTranspose, turned_b ? p.n : p.k,
                 turned_b ? p.k : p.n, p.b, p.b_stride, p.a, turned_a ? p.a_stride : 1, p.c, 1);
  } else {
    gemm(cblas(p.turn_a), cblas(p.turn_b), static_cast<int>(p.m), static_cast<int>(p.n),
         static_cast<int>(p.k), p.a, static_cast<int>(p.a_stride), p.b,
         static_cast<int>(p.b_stride), p.c, static_cast<int>(p.c_stride));
  }
  return true;
}

template <class T>
bool solve_triangle(bool lower, Turn turn, std::int64_t n, std::int64_t columns, const T* a, T* b) {
  if (!fits({n, columns})) return false;
  trsm(lower ? CblasLower : CblasUpper, cblas(turn), static_cast<int>(n), static_cast<int>(columns),
       a, b);
  return true;
}

#define TANDEM_BLAS_INSTANCES(T)             \
  template bool multiply(const Product<T>&); \
  template bool solve_triangle(bool, Turn, std::int64_t, std::int64_t, const T*, T*);
TANDEM_BLAS_INSTANCES(float)
TANDEM_BLAS_INSTANCES(double)
TANDEM_BLAS_INSTANCES(C)
TANDEM_BLAS_INSTANCES(Z)
#undef TANDEM_BLAS_INSTANCES

}  // namespace tandem::cpu::blas
