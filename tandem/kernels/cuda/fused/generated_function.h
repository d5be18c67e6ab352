#pragma once

#include "tandem/kernels/cuda/fused/source.h"
#include "tandem/kernels/cuda/support/launch.h"

namespace tandem::cuda {

struct GeneratedFunctions {
  Function kernel = nullptr;
  Function of_parts = nullptr;  ///< null for sums
};

/// The kernel compiled for the calling thread's GPU: compiled once in a process, and once for all
/// processes that share the cache on disk. Throws Failure.
GeneratedFunctions generated_functions(const GeneratedKernel& kernel);

}  // namespace tandem::cuda
