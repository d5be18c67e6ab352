#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/shape.h"
#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// c[i] = turn(a[i]) turn(b[i]) for a batch of matrices of one size and dtype, row-major, without
/// gaps. turn() transposes where asked for and conjugates where asked for (which matters to complex
/// numbers alone). `c` does not overlap the operands.
struct MatrixProduct {
  DType dtype = DType::kFloat;
  std::int64_t m = 0;  ///< rows of c
  std::int64_t n = 0;  ///< columns of c
  std::int64_t k = 0;  ///< length of the sums
  bool transpose_a = false;
  bool transpose_b = false;
  bool conjugate_a = false;
  bool conjugate_b = false;
  std::int64_t batch = 1;
  /// Which matrix of a (b) belongs to c's i-th; empty: the i-th, or always the first if *_once.
  std::span<const std::int64_t> a_index;
  std::span<const std::int64_t> b_index;
  bool a_once = false;
  bool b_once = false;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;

  std::int64_t a_matrix(std::int64_t i) const {
    return a_once ? 0 : a_index.empty() ? i : a_index[static_cast<std::size_t>(i)];
  }
  std::int64_t b_matrix(std::int64_t i) const {
    return b_once ? 0 : b_index.empty() ? i : b_index[static_cast<std::size_t>(i)];
  }
};

/// For MatrixProduct::a_index: the matrices' numbers in an operand of batch shape `from` that is
/// repeated to fill `to`.
std::vector<std::int64_t> matrix_numbers(const Shape& from, const Shape& to);

/// The fastest way there is for the case.
void multiply_matrices(KernelContext& context, const MatrixProduct& product);

/// float, half and bfloat16, the fastest way that was measured. No size is 0.
void multiply_matrices_float(KernelContext& context, const MatrixProduct& product);

/// Through BLAS: double and complex numbers. False, and nothing of use done, if it does not take
/// the case or plain loops are faster. No size but k is 0.
bool multiply_matrices_blas(KernelContext& context, const MatrixProduct& product);

/// Integers of 32 and 64 bits in vectors; as above.
bool multiply_matrices_integer(KernelContext& context, const MatrixProduct& product);

/// Plain loops for every dtype; half and bfloat16 sum in float. The oracle of the others.
void multiply_matrices_reference(KernelContext& context, const MatrixProduct& product);

}  // namespace tandem::cpu
