#pragma once

#include <cstddef>

namespace tandem::cuda {

/// What a CUfunction is where kernels run on the host: the driver's stand-in copies the parameters
/// by their sizes when it is called, and has the kernel run when its stream comes to it.
struct HostFunction {
  const char* name = nullptr;
  const std::size_t* parameter_sizes = nullptr;
  std::size_t num_parameters = 0;
  void (*kernel)() = nullptr;  ///< of the type that `run` knows
  void (*run)(const HostFunction& function, const unsigned* grid, const unsigned* block,
              unsigned shared_bytes, void** parameters) = nullptr;
};

}  // namespace tandem::cuda
