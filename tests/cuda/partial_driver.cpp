// A CUDA driver that lacks functions: it has two of them.

#include "tandem/device/cuda/internal/driver_api.h"

extern "C" {

__attribute__((visibility("default"))) CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
__attribute__((visibility("default"))) CUresult cuDriverGetVersion(int* version) {
  *version = 12040;
  return CUDA_SUCCESS;
}
}
