#include "tandem/device/cuda/internal/room.h"

#include <atomic>

#include "tandem/device/cuda/internal/stream.h"

namespace tandem::cuda {
namespace {

std::atomic<MemoryRelease>& memory_release() {
  static std::atomic<MemoryRelease> release{nullptr};
  return release;
}

}  // namespace

void set_memory_release(MemoryRelease release) { memory_release() = release; }

bool release_unused_memory() {
  TandemDevice* const device = StreamState::device_of_thread();
  const MemoryRelease release = memory_release();
  if (!device || !release) return false;
  release(device);
  return true;
}

bool release_unused_memory(TandemDevice* device) {
  const MemoryRelease release = memory_release();
  return release && release(device) != 0;
}

}  // namespace tandem::cuda
