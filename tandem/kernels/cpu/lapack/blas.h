#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tandem/core/program_end.h"

// BLAS' products of matrices for float, double and their complex types: the one door to the
// library. Matrices are row-major and may be parts of larger ones. Everything runs on the calling
// thread.

namespace tandem::cpu::blas {

enum class Turn { kNone, kTranspose, kAdjoint };

/// c = turn(a) turn(b). A stride is the number of elements from one row, as it lies in memory, to
/// the next.
template <class T>
struct Product {
  Turn turn_a = Turn::kNone;
  Turn turn_b = Turn::kNone;
  std::int64_t m = 0;  ///< rows of c
  std::int64_t n = 0;  ///< columns of c
  std::int64_t k = 0;  ///< length of the sums
  const T* a = nullptr;
  std::int64_t a_stride = 0;
  const T* b = nullptr;
  std::int64_t b_stride = 0;
  T* c = nullptr;
  std::int64_t c_stride = 0;
};

/// False, and nothing done, if the library cannot count so far. No size is 0.
template <class T>
bool multiply(const Product<T>& product);

/// Solves turn(A) X = B in place for the lower or upper triangle of A (n x n, dense, no zero on its
/// diagonal) and `columns` right sides. False as above.
template <class T>
bool solve_triangle(bool lower, Turn turn, std::int64_t n, std::int64_t columns, const T* a, T* b);

/// The library's version and the kind of processor that it takes this one for, as far as it says
/// so: "OpenBLAS 0.3.21 ... SkylakeX", or "BLAS".
std::string library_name();

/// To be held around each call of BLAS or LAPACK. Threads are the pool's business: an OpenBLAS with
/// threads of its own is limited to one. One that was built without threads has no locks
/// either, and gives wrong results if two threads are in it (Debian's libopenblas0-serial): there
/// calls wait for each other. While the program ends, which takes the library's memory away, other
/// threads than the one that ends it no longer come in (stop_at_program_end).
class Entry {
 public:
  Entry();
  ~Entry();
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  std::optional<MakingScope> noticed_;  ///< the program's end waits for it
};

}  // namespace tandem::cpu::blas
