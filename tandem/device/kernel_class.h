#pragma once

#include <string>
#include <string_view>

#include "tandem/core/export.h"

namespace tandem {

/// The kernel class of kernels that serve every device: they only hand values on, or look at shapes
/// and handles (Identity, Reshape, ReadVariableOp), and never at elements in a device's memory.
inline constexpr std::string_view kEveryKernelClass = "*";

/// True if a kernel registered for `of` runs on devices of `kernel_class`: for a class its own
/// kernels, and those of every class. Classes named `emulated-NAME` stand for foreign hardware in
/// tests, and have the kernels of "cpu".
TANDEM_EXPORT bool serves(std::string_view of, std::string_view kernel_class);

/// True if kernels of the class read and write memory that the host reaches
/// (docs/adding-a-device.md).
TANDEM_EXPORT bool runs_host_kernels(std::string_view kernel_class);

/// The kernel class of emulated devices whose SPEC says `class=name`.
TANDEM_EXPORT std::string emulated_kernel_class(std::string_view name);

}  // namespace tandem
