#pragma once

#include <cstddef>
#include <vector>

#include "tandem/device/cuda/internal/driver_api.h"

namespace stand_in {

/// Contexts are numbers from 1, as pointers.
std::size_t gpu_of(CUcontext context);
/// The calling thread's; the last one is current.
std::vector<CUcontext>& contexts();

}  // namespace stand_in
