#pragma once

#include <cstdint>
#include <functional>

#include "tandem/kernels/cuda/linalg/epilogue.h"
#include "tandem/kernels/cuda/support/kernel_call.h"

namespace tandem::cuda {

/// y = activation(a b + addend + bias) for a batch of row-major matrices without gaps: a is [rows,
/// depth] or, transposed, [depth, rows], b [depth, columns] or [columns, depth], y [rows, columns].
struct Product {
  Type type = Type::kFloat;         ///< of a and b
  Type result_type = Type::kFloat;  ///< of y, the addend and the bias
  std::int64_t rows = 0, columns = 0, depth = 0;
  bool transpose_a = false, transpose_b = false;
  std::int64_t batch = 1;
  std::int64_t a_step = 0, b_step = 0;  ///< elements from matrix to matrix; 0: one for all
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
  const void* bias = nullptr;    ///< [columns]
  const void* addend = nullptr;  ///< as y, and perhaps y itself
  Activation activation = Activation::kNone;
};

/// Whether cuBLASLt's own epilogues have what follows a product.
bool is_epilogue_of_cublaslt(Activation activation);

/// Has cuBLASLt compute it in the running kernel's stream, behind what `prepare` launches, if it is
/// not empty. False, and `prepare` is not called, if the library is not there or has no algorithm
/// for it. Throws Failure.
bool multiply_by_cublaslt(const KernelCall& call, const Product& product,
                          const std::function<void()>& prepare = {});

}  // namespace tandem::cuda
