#pragma once

#include "tandem/kernels/cuda/fused/source.h"
#include "tandem/kernels/cuda/support/launch.h"

namespace tandem::cuda {

/// The kernel compiled for the calling thread's GPU: compiled once in a process, and once for all
/// processes that share the cache on disk. Throws Failure.
Function generated_function(const GeneratedKernel& kernel);

}  // namespace tandem::cuda
