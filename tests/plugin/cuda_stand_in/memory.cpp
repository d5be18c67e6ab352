// Memory of the stand-in's GPUs in blocks of the driver's, and pinned memory of the host.

#include "tests/plugin/cuda_stand_in/memory.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "tests/plugin/cuda_stand_in/calls.h"
#include "tests/plugin/cuda_stand_in/contexts.h"

using namespace stand_in;

namespace {

bool holds(const std::map<CUdeviceptr, std::size_t>& blocks, CUdeviceptr address,
           std::size_t bytes) {
  auto next = blocks.upper_bound(address);
  if (next == blocks.begin()) return false;
  --next;
  return address + bytes <= next->first + next->second;
}

// Host memory that GPUs can reach, at the same address.
struct Pinned {
  std::mutex mutex;
  std::map<CUdeviceptr, std::size_t> blocks;
};
Pinned& pinned() {
  static auto* all = new Pinned;
  return *all;
}

}  // namespace

namespace stand_in {

std::size_t gpu_bytes() {
  static const std::size_t bytes = [] {
    const char* mib = std::getenv("CUDA_STAND_IN_MIB");
    return (mib ? std::strtoul(mib, nullptr, 10) : std::size_t{32}) << 20;
  }();
  return bytes;
}

Memory& memory(std::size_t gpu) {
  static auto* all = new std::vector<Memory>(kCount);
  return (*all)[gpu];
}

std::size_t free_bytes(const Memory& memory) {
  return gpu_bytes() - std::min(gpu_bytes(), memory.used + memory.others);
}

bool known(CUdeviceptr address, std::size_t bytes) {
  if (stand_in::is_mapped(address, bytes)) return true;
  {
    std::lock_guard lock(pinned().mutex);
    if (holds(pinned().blocks, address, bytes)) return true;
  }
  for (std::size_t gpu = 0; gpu < kCount; ++gpu) {
    Memory& m = memory(gpu);
    std::lock_guard lock(m.mutex);
    if (holds(m.blocks, address, bytes)) return true;
  }
  return false;
}

}  // namespace stand_in

extern "C" {

STAND_IN cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  ENTER();
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  Memory& m = memory(gpu_of(contexts().back()));
  std::lock_guard lock(m.mutex);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > free_bytes(m)) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  m.blocks[*address] = bytes;
  m.used += bytes;
  return CUDA_SUCCESS;
}
STAND_IN cuMemFree(CUdeviceptr address) {
  ENTER();
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  Memory& m = memory(gpu_of(contexts().back()));
  std::lock_guard lock(m.mutex);
  const auto found = m.blocks.find(address);
  if (found == m.blocks.end()) return CUDA_ERROR_INVALID_VALUE;
  m.used -= found->second;
  m.blocks.erase(found);
  std::free(host(address));
  return CUDA_SUCCESS;
}
STAND_IN cuMemGetInfo(std::size_t* free, std::size_t* total) {
  ENTER();
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  Memory& m = memory(gpu_of(contexts().back()));
  std::lock_guard lock(m.mutex);
  *free = free_bytes(m);
  *total = gpu_bytes();
  return CUDA_SUCCESS;
}
STAND_IN cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned) {
  ++counts.managed_blocks;
  return cuMemAlloc(address, bytes);
}
STAND_IN cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  ENTER();
  ++objects.host_blocks;
  *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  std::lock_guard lock(pinned().mutex);
  pinned().blocks[reinterpret_cast<CUdeviceptr>(*address)] = bytes;
  return CUDA_SUCCESS;
}
STAND_IN cuMemHostGetDevicePointer(CUdeviceptr* seen, void* address, unsigned) {
  ENTER();
  *seen = reinterpret_cast<CUdeviceptr>(address);
  std::lock_guard lock(pinned().mutex);
  return holds(pinned().blocks, *seen, 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
STAND_IN cuMemFreeHost(void* address) {
  --objects.host_blocks;
  {
    std::lock_guard lock(pinned().mutex);
    pinned().blocks.erase(reinterpret_cast<CUdeviceptr>(address));
  }
  std::free(address);
  return enter(__func__);
}
}
