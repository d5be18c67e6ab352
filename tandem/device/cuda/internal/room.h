#pragma once

#include "tandem/device/cuda/internal/failure.h"
#include "tandem/device/plugin.h"

namespace tandem::cuda {

/// How Tandem releases what it keeps of a device's memory for later (TandemHostApi).
using MemoryRelease = uint64_t (*)(TandemDevice* device);
void set_memory_release(MemoryRelease release);

/// Has Tandem release memory of the GPU that the calling thread launches work on. False on other
/// threads.
bool release_unused_memory();
/// Has Tandem release memory of the GPU behind a device; false if there was none to release.
bool release_unused_memory(TandemDevice* device);

/// Makes a call of the driver's or a library's that takes memory of the GPU beside Tandem's blocks:
/// for code, graphs, handles. Where there is none, Tandem releases what it keeps for later, and
/// the call is made once more.
template <class Call>
void with_room(const Call& call) {
  try {
    return call();
  } catch (const Failure& failure) {
    if (failure.code() != TANDEM_RESOURCE_EXHAUSTED || !release_unused_memory()) throw;
  }
  call();
}

}  // namespace tandem::cuda
