#pragma once

#include <span>

#include "tandem/device/plugin.h"

namespace tandem::cuda {

/// The library's kernels for the plug-in interface. They live as long as the process.
std::span<const TandemKernel* const> kernel_table();

}  // namespace tandem::cuda
