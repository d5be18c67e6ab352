#pragma once

// What a kernel source includes first. With nvcc, and with NVRTC for generated kernels, the words
// below are CUDA's own; with any other compiler they are those of the execution model on the host
// (support/host_model.h), so that the same source makes both.
//
// Differences from plain CUDA, kept few:
// - Launches are written `launch(stream, kernel<T>, grid, block, shared_bytes, arguments...)`.
// - Shared memory is declared by TANDEM_SHARED(type, name, count) or, where its size is given at
//   launch, TANDEM_DYNAMIC_SHARED(type, name); on the host each access to it is checked for races.
// - Warp operations are warp_shuffle_down, warp_shuffle_xor, warp_shuffle, warp_ballot of
//   support/warp.h.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__CUDACC__)

// NVRTC knows CUDA's words without a header.
#if !defined(__CUDACC_RTC__)
#include <cuda_runtime.h>
#endif

#define TANDEM_DEVICE __device__ __forceinline__
#define TANDEM_HOST_DEVICE __host__ __device__ __forceinline__
#define TANDEM_KERNEL __global__ void
#define TANDEM_SHARED(TYPE, NAME, COUNT) __shared__ TYPE NAME[COUNT]
#define TANDEM_DYNAMIC_SHARED(TYPE, NAME)                       \
  extern __shared__ __align__(16) unsigned char NAME##_bytes[]; \
  TYPE* NAME = reinterpret_cast<TYPE*>(NAME##_bytes)

#else

#include "tandem/kernels/cuda/support/host_words.h"

#define TANDEM_DEVICE inline
#define TANDEM_HOST_DEVICE inline
#define TANDEM_KERNEL void
#define TANDEM_SHARED(TYPE, NAME, COUNT)                                                  \
  static thread_local ::tandem::cuda::host::SharedArray<TYPE, COUNT> NAME##_array{#NAME}; \
  auto& NAME = NAME##_array
#define TANDEM_DYNAMIC_SHARED(TYPE, NAME)                                            \
  static thread_local ::tandem::cuda::host::DynamicShared<TYPE> NAME##_array{#NAME}; \
  auto& NAME = NAME##_array

#endif

namespace tandem::cuda {

constexpr int kWarpSize = 32;

/// The running thread's first element of `n`, and how far its next one is, in a grid of one
/// dimension: `for (Index i = first_index<Index>(); i < n; i += index_step<Index>())`.
template <class Index>
TANDEM_DEVICE Index first_index() {
  return static_cast<Index>(blockIdx.x) * static_cast<Index>(blockDim.x) +
         static_cast<Index>(threadIdx.x);
}
template <class Index>
TANDEM_DEVICE Index index_step() {
  return static_cast<Index>(blockDim.x) * static_cast<Index>(gridDim.x);
}

}  // namespace tandem::cuda
