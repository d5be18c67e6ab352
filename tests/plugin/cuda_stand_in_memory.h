#pragma once

// What the files of the stand-in for a CUDA driver share: how its calls begin, and the memory of
// its GPUs.

#include <cstddef>
#include <map>
#include <mutex>

#include "tandem/device/cuda/internal/driver_api.h"

namespace stand_in {

constexpr int kCount = 6;

/// What a call of the driver begins with: CUDA_SUCCESS, or what it fails with. The calls that
/// destroy an object do so in any case: what they return may be the error of earlier work.
CUresult enter(const char* name);

/// Bytes of a GPU: 32 MiB, or what CUDA_STAND_IN_MIB says.
std::size_t gpu_bytes();

struct Memory {
  std::mutex mutex;
  std::map<CUdeviceptr, std::size_t> blocks;
  std::size_t used = 0;    ///< by these, and by memory for reserved ranges
  std::size_t others = 0;  ///< that other processes hold
};
Memory& memory(std::size_t gpu);
/// With the memory's lock held.
std::size_t free_bytes(const Memory& memory);

inline void* host(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

/// Whether memory that was put into reserved ranges, and may be used, holds all of these bytes.
bool is_mapped(CUdeviceptr address, std::size_t bytes);
long long reserved_ranges();

}  // namespace stand_in

#define STAND_IN __attribute__((visibility("default"))) CUresult
#define ENTER() \
  if (const CUresult failed = stand_in::enter(__func__); failed != CUDA_SUCCESS) return failed
