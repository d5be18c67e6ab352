#pragma once

#include <vector>

#include "tandem/device/cuda/internal/nvrtc.h"

namespace tandem::cuda {

/// All headers that the source of a generated kernel includes, one by the other.
const std::vector<Nvrtc::Header>& generated_headers();

}  // namespace tandem::cuda
