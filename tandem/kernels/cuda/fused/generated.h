#pragma once

#include "tandem/kernels/cuda/elementwise/functions.h"
#include "tandem/kernels/cuda/support/device_code.h"
#include "tandem/kernels/cuda/support/parts.h"

// What the source of a generated kernel begins with (fused/source.h).

#if defined(__CUDACC__)

#define TANDEM_GENERATED_KERNEL extern "C" __global__ void
#define TANDEM_GENERATED(NAME)

#else

#include "tandem/kernels/cuda/support/launch.h"

#define TANDEM_GENERATED_KERNEL static void
/// On the host a generated kernel is a shared object; this is the function by which the stand-in
/// for the driver finds it.
#define TANDEM_GENERATED(NAME)                                      \
  extern "C" __attribute__((visibility("default")))                 \
  const ::tandem::cuda::HostFunction* NAME##_function() {           \
    static const ::tandem::cuda::HostFunction function =            \
        ::tandem::cuda::host_function(#NAME, ::tandem::cuda::NAME); \
    return &function;                                               \
  }

#endif
