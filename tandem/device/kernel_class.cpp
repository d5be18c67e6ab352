#include "tandem/device/kernel_class.h"

namespace tandem {
namespace {

constexpr std::string_view kHostClass = "cpu", kEmulatedPrefix = "emulated-";

}  // namespace

bool runs_host_kernels(std::string_view kernel_class) {
  return kernel_class == kHostClass || kernel_class.starts_with(kEmulatedPrefix);
}

bool serves(std::string_view of, std::string_view kernel_class) {
  return of == kernel_class || of == kEveryKernelClass ||
         (of == kHostClass && runs_host_kernels(kernel_class));
}

std::string emulated_kernel_class(std::string_view name) {
  return std::string(name.empty() ? kHostClass : kEmulatedPrefix) += name;
}

}  // namespace tandem
