#pragma once

// A kernel's launch on the stand-in.

#include <cstddef>
#include <vector>

#include "tandem/device/cuda/internal/driver_api.h"
#include "tandem/device/cuda/internal/host_function.h"

namespace stand_in {

/// A launch with copies of its parameters.
class Launch {
 public:
  Launch(CUfunction function, const unsigned* grid, const unsigned* block, unsigned shared_bytes,
         void** parameters);
  void operator()() const;

 private:
  const tandem::cuda::HostFunction* function_;
  unsigned grid_[3], block_[3], shared_bytes_;
  std::vector<std::vector<std::max_align_t>> values_;
};

}  // namespace stand_in
