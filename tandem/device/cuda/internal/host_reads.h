#pragma once

#include <cstddef>

#include "tandem/device/cuda/internal/gpu.h"

namespace tandem::cuda {

/// How many bytes of pinned host memory the GPU's kernels read in the time that a copy takes to
/// begin: TANDEM_CUDA_HOST_READ_LIMIT, else measured when a process first asks. 0 where kernels
/// cannot read pinned memory at the host's address, and where nothing may be measured.
std::size_t host_read_limit(Gpu& gpu);

}  // namespace tandem::cuda
