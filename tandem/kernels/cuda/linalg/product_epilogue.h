#pragma once

#include "tandem/kernels/cuda/cublaslt/product.h"
#include "tandem/kernels/cuda/linalg/epilogue.h"

namespace tandem::cuda {

/// A product by cuBLASLt and what follows it: by the library's own epilogues where it has them,
/// else by one more kernel. The product's bias, addend and activation are those of the epilogue,
/// which has an addend for each row or one for all. False, and nothing is done, if the library does
/// not serve.
bool multiply_with_epilogue(const KernelCall& call, Product product, const Epilogue& epilogue);

/// Applies what follows to rows of `columns` that lie in memory, in float or in the type of `y`,
/// which may be the same memory. What is added is float or of type `added`.
void apply_epilogue(const void* product, Type product_type, void* y, Type type, Type added,
                    std::int64_t rows, std::int64_t columns, const Epilogue& epilogue);

}  // namespace tandem::cuda
