#include "tandem/device/cuda/internal/gpu_memory.h"

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::cuda {
namespace {

CUdeviceptr on_gpu(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

bool has_attribute(const Gpu& gpu, CUdevice_attribute which) {
  int value = 0;
  return driver().p_cuDeviceGetAttribute(&value, which, gpu.device()) == CUDA_SUCCESS && value != 0;
}

CUmemAllocationProp kind_of_memory(const Gpu& gpu) {
  CUmemAllocationProp kind = {};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu.device()};
  return kind;
}

std::vector<CUmemAccessDesc> access_to(const Gpu& gpu) {
  std::vector<CUmemAccessDesc> access;
  for (const auto& other : gpus()) {
    int can = other->device() == gpu.device() ? 1 : 0;
    if (can == 0 &&
        driver().p_cuDeviceCanAccessPeer(&can, other->device(), gpu.device()) != CUDA_SUCCESS)
      can = 0;
    if (can != 0) {
      access.push_back(
          {{CU_MEM_LOCATION_TYPE_DEVICE, other->device()}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
    }
  }
  return access;
}

// What of the GPU's memory is free, with the context current: other processes may hold the rest.
std::string free_text() {
  std::size_t free = 0, total = 0;
  if (!driver().p_cuMemGetInfo || driver().p_cuMemGetInfo(&free, &total) != CUDA_SUCCESS) return {};
  const auto mib = [](std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; };
  return "; of the GPU's " + mib(total) + ' ' + mib(free) + " are free";
}

// Gpu::check for a call that asks for memory.
void check_memory(Gpu& gpu, CUresult result, const char* call) {
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return gpu.check(result, call);
  throw Failure(code_of(result),
                std::string(call) + " fails with " + text_of(result) + free_text());
}

bool has_ranges() {
  const Driver& d = driver();
  return d.p_cuMemAddressReserve && d.p_cuMemAddressFree && d.p_cuMemGetAllocationGranularity &&
         d.p_cuMemCreate && d.p_cuMemRelease && d.p_cuMemMap && d.p_cuMemUnmap &&
         d.p_cuMemSetAccess;
}

}  // namespace

bool wants_managed_memory() {
  const char* const text = std::getenv("TANDEM_CUDA_MANAGED_MEMORY");
  return text && std::string_view(text) == "1";
}

void* allocate_memory(Gpu& gpu, std::size_t bytes) {
  const ContextScope context(gpu);
  const Driver& d = driver();
  CUdeviceptr address = 0;
  if (!wants_managed_memory()) {
    check_memory(gpu, d.p_cuMemAlloc(&address, bytes), "cuMemAlloc");
  } else if (d.p_cuMemAllocManaged && has_attribute(gpu, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)) {
    check_memory(gpu, d.p_cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL),
                 "cuMemAllocManaged");
  } else {
    throw Failure(TANDEM_UNIMPLEMENTED,
                  "this GPU has no managed memory: unset TANDEM_CUDA_MANAGED_MEMORY");
  }
  return reinterpret_cast<void*>(address);
}

void free_memory(Gpu& gpu, void* address) {
  TandemStatus ignored;
  guarded(&ignored, [&] {
    const ContextScope context(gpu);
    gpu.check(driver().p_cuMemFree(on_gpu(address)), "cuMemFree");
  });
}

std::size_t memory_granularity(Gpu& gpu) {
  if (wants_managed_memory() || !has_ranges() ||
      !has_attribute(gpu, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
    return 0;
  const CUmemAllocationProp kind = kind_of_memory(gpu);
  std::size_t bytes = 0;
  return driver().p_cuMemGetAllocationGranularity(
             &bytes, &kind, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) == CUDA_SUCCESS
             ? bytes
             : 0;
}

void* reserve_addresses(Gpu& gpu, std::size_t bytes) {
  const ContextScope context(gpu);
  CUdeviceptr address = 0;
  gpu.check(driver().p_cuMemAddressReserve(&address, bytes, 0, 0, 0), "cuMemAddressReserve");
  return reinterpret_cast<void*>(address);
}

void free_addresses(Gpu& gpu, void* address, std::size_t bytes) {
  TandemStatus ignored;
  guarded(&ignored, [&] {
    const ContextScope context(gpu);
    gpu.check(driver().p_cuMemAddressFree(on_gpu(address), bytes), "cuMemAddressFree");
  });
}

// The mapping keeps the memory, so that its handle is not needed any more.
void commit_memory(Gpu& gpu, void* address, std::size_t bytes) {
  const ContextScope context(gpu);
  const Driver& d = driver();
  const CUmemAllocationProp kind = kind_of_memory(gpu);
  CUmemGenericAllocationHandle memory = 0;
  check_memory(gpu, d.p_cuMemCreate(&memory, bytes, &kind, 0), "cuMemCreate");
  const CUresult mapped = d.p_cuMemMap(on_gpu(address), bytes, 0, memory, 0);
  d.p_cuMemRelease(memory);
  gpu.check(mapped, "cuMemMap");
  const std::vector<CUmemAccessDesc> access = access_to(gpu);
  const CUresult result = d.p_cuMemSetAccess(on_gpu(address), bytes, access.data(), access.size());
  if (result != CUDA_SUCCESS) d.p_cuMemUnmap(on_gpu(address), bytes);
  gpu.check(result, "cuMemSetAccess");
}

void decommit_memory(Gpu& gpu, void* address, std::size_t bytes) {
  TandemStatus ignored;
  guarded(&ignored, [&] {
    const ContextScope context(gpu);
    gpu.check(driver().p_cuMemUnmap(on_gpu(address), bytes), "cuMemUnmap");
  });
}

}  // namespace tandem::cuda
