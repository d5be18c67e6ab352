#pragma once

#include "tandem/device/cuda/internal/gpu.h"

namespace tandem::cuda {

/// What one of NVIDIA's libraries does as one command of a stream: a product of matrices, say, with
/// everything decided but the addresses. Lists of commands share it; it does not change.
class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  /// Has the library issue its work to the stream, which may be capturing: so without waiting and
  /// without allocating memory of the GPU. `values` point to the command's parameters. Throws
  /// Failure. Called by several threads at a time.
  virtual void issue(CUstream stream, void* const* values) const = 0;
};

}  // namespace tandem::cuda
