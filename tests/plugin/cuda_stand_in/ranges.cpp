// The stand-in's reserved ranges of addresses, and the memory that is put into them.

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "tests/plugin/cuda_stand_in/calls.h"
#include "tests/plugin/cuda_stand_in/memory.h"

namespace stand_in {
namespace {

// With CUDA_STAND_IN_GUARDS, for builds in which Tandem lays guards between its blocks, each piece
// has an eighth more, which does not count: all else is then as without guards.
constexpr std::size_t kCounted = std::size_t{2} << 20;
std::size_t granularity() {
  static const std::size_t bytes =
      std::getenv("CUDA_STAND_IN_GUARDS") ? kCounted + kCounted / 8 : kCounted;
  return bytes;
}
std::size_t counted(std::size_t bytes) { return bytes / granularity() * kCounted; }

// Memory of a GPU. As with a driver it stays while its handle or a mapping does.
class Physical {
 public:
  static std::shared_ptr<Physical> make(std::size_t gpu, std::size_t bytes) {
    Memory& m = memory(gpu);
    std::lock_guard lock(m.mutex);
    if (counted(bytes) > free_bytes(m)) return nullptr;
    m.used += counted(bytes);
    return std::make_shared<Physical>(gpu, bytes);
  }
  Physical(std::size_t gpu, std::size_t bytes) : bytes_(bytes), gpu_(gpu) {}
  Physical(const Physical&) = delete;
  Physical& operator=(const Physical&) = delete;
  ~Physical() {
    Memory& m = memory(gpu_);
    std::lock_guard lock(m.mutex);
    m.used -= counted(bytes_);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  const std::size_t bytes_, gpu_;
};

struct Mapping {
  std::shared_ptr<Physical> memory;
  bool accessible = false;
};

struct Ranges {
  std::mutex mutex;
  std::map<CUdeviceptr, std::size_t> reserved;
  std::map<CUmemGenericAllocationHandle, std::shared_ptr<Physical>> created;
  std::map<CUdeviceptr, Mapping> mapped;
  CUmemGenericAllocationHandle next = 1;
};
Ranges& ranges() {
  static auto* all = new Ranges;  // streams' threads may outlive static objects
  return *all;
}

// Addresses that fault.
void* inaccessible(void* at, std::size_t bytes, int flags = 0) {
  return mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

}  // namespace

bool is_mapped(CUdeviceptr address, std::size_t bytes) {
  Ranges& r = ranges();
  std::lock_guard lock(r.mutex);
  auto part = r.mapped.upper_bound(address);
  if (part == r.mapped.begin()) return false;
  --part;
  const CUdeviceptr end = address + bytes;
  CUdeviceptr covered = address;
  for (; part != r.mapped.end() && part->first <= covered && part->second.accessible; ++part) {
    covered = std::max<CUdeviceptr>(covered, part->first + part->second.memory->bytes());
    if (covered >= end && covered > address) return true;
  }
  return false;
}

long long reserved_ranges() {
  Ranges& r = ranges();
  std::lock_guard lock(r.mutex);
  return static_cast<long long>(r.reserved.size());
}

}  // namespace stand_in

using namespace stand_in;

extern "C" {

STAND_IN cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *bytes = granularity();
  return CUDA_SUCCESS;
}
STAND_IN cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes, std::size_t, CUdeviceptr,
                             unsigned long long) {
  ENTER();
  if (bytes == 0 || bytes % granularity() != 0) return CUDA_ERROR_INVALID_VALUE;
  void* const range = inaccessible(nullptr, bytes);
  if (range == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(range);
  Ranges& r = ranges();
  std::lock_guard lock(r.mutex);
  r.reserved[*address] = bytes;
  return CUDA_SUCCESS;
}
STAND_IN cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  Ranges& r = ranges();
  std::lock_guard lock(r.mutex);
  const auto found = r.reserved.find(address);
  if (found == r.reserved.end() || found->second != bytes) return CUDA_ERROR_INVALID_VALUE;
  const auto inside = r.mapped.lower_bound(address);
  if (inside != r.mapped.end() && inside->first < address + bytes) return CUDA_ERROR_INVALID_VALUE;
  munmap(host(address), bytes);
  r.reserved.erase(found);
  return enter(__func__);
}
STAND_IN cuMemCreate(CUmemGenericAllocationHandle* made, std::size_t bytes,
                     const CUmemAllocationProp* of, unsigned long long) {
  ENTER();
  if (bytes == 0 || bytes % granularity() != 0) return CUDA_ERROR_INVALID_VALUE;
  auto memory = Physical::make(static_cast<std::size_t>(of->location.id), bytes);
  if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
  Ranges& r = ranges();
  std::lock_guard lock(r.mutex);
  *made = r.next++;
  r.created[*made] = std::move(memory);
  return CUDA_SUCCESS;
}
STAND_IN cuMemRelease(CUmemGenericAllocationHandle released) {
  Ranges& r = ranges();
  std::lock_guard lock(r.mutex);
  if (r.created.erase(released) == 0) return CUDA_ERROR_INVALID_VALUE;
  return enter(__func__);
}
STAND_IN cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t,
                  CUmemGenericAllocationHandle from, unsigned long long) {
  ENTER();
  Ranges& r = ranges();
  std::lock_guard lock(r.mutex);
  const auto found = r.created.find(from);
  auto range = r.reserved.upper_bound(address);
  if (found == r.created.end() || found->second->bytes() != bytes || range == r.reserved.begin())
    return CUDA_ERROR_INVALID_VALUE;
  --range;
  if (address + bytes > range->first + range->second || r.mapped.contains(address))
    return CUDA_ERROR_INVALID_VALUE;
  r.mapped[address] = {found->second};
  return CUDA_SUCCESS;
}
STAND_IN cuMemSetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc*,
                        std::size_t count) {
  ENTER();
  Ranges& r = ranges();
  std::lock_guard lock(r.mutex);
  const auto found = r.mapped.find(address);
  if (found == r.mapped.end() || found->second.memory->bytes() != bytes || count == 0)
    return CUDA_ERROR_INVALID_VALUE;
  mprotect(host(address), bytes, PROT_READ | PROT_WRITE);
  found->second.accessible = true;
  return CUDA_SUCCESS;
}
// Memory that is gone faults, as on a GPU.
STAND_IN cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  Ranges& r = ranges();
  std::lock_guard lock(r.mutex);
  const auto found = r.mapped.find(address);
  if (found == r.mapped.end() || found->second.memory->bytes() != bytes)
    return CUDA_ERROR_INVALID_VALUE;
  inaccessible(host(address), bytes, MAP_FIXED);
  r.mapped.erase(found);
  return enter(__func__);
}
}
