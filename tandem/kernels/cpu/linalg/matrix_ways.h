#pragma once

#include <span>

#include "tandem/kernels/cpu/linalg/matrix_product.h"
#include "tandem/kernels/cpu/support/problem_class.h"

// The implementations of products of float, half and bfloat16, among which the machine at hand
// decides (support/kernel_tuner.h).

namespace tandem::cpu {

/// How one thread multiplies matrices of float.
enum class FloatWay { kMatMul, kGemm, kBlas };
inline constexpr const char* kFloatWays[] = {"oneDNN matmul", "oneDNN gemm", "BLAS"};

/// How matrices of half or bfloat16 are multiplied: as they are, or as float, with conversions of
/// all operands first or of rows block by block.
enum class Float16Way { kMatMul, kThroughFloat, kInBlocks };
inline constexpr const char* kFloat16Ways[] = {"oneDNN matmul", "through float",
                                               "through float in blocks"};

/// How a product of half or bfloat16 goes where nothing is measured.
Float16Way assumed_float16_way(const MatrixProduct& p);
/// How one of floats does, cut for so many threads (0: by the sizes alone).
FloatWay assumed_float_way(const MatrixProduct& p, std::int64_t threads);

// Split among the pool's threads; no size is 0.

/// Floats. What a library refuses goes through plain loops.
void multiply_floats(KernelContext& context, const MatrixProduct& product, FloatWay way);
/// By oneDNN or BLAS: of float, and (FloatWay::kMatMul) of bfloat16. False if the library refuses.
bool multiply_in_library(KernelContext& context, const MatrixProduct& product, FloatWay way);
/// Half and bfloat16. False if it cannot go this way.
bool multiply_float16(KernelContext& context, const MatrixProduct& product, Float16Way way);

/// Floats the best way: what was measured, is measured now, or is assumed.
void multiply_floats_best(KernelContext& context, const MatrixProduct& product);

}  // namespace tandem::cpu
