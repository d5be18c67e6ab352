#pragma once

// The memory of the stand-in's GPUs, which is memory of the host.

#include <cstddef>
#include <map>
#include <mutex>

#include "tandem/device/cuda/internal/driver_api.h"

namespace stand_in {

constexpr int kCount = 6;

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

/// Whether a block of a GPU's memory, pinned memory or mapped memory holds all of these bytes.
bool known(CUdeviceptr address, std::size_t bytes);
/// Whether memory that was put into reserved ranges, and may be used, holds all of these bytes.
bool is_mapped(CUdeviceptr address, std::size_t bytes);
long long reserved_ranges();

}  // namespace stand_in
