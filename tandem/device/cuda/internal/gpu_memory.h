#pragma once

#include <cstddef>

#include "tandem/device/cuda/internal/gpu.h"

// Device memory: in blocks of the driver's, or put into reserved ranges of addresses. Functions
// throw Failure; those that free do not.

namespace tandem::cuda {

/// Whether TANDEM_CUDA_MANAGED_MEMORY asks for memory that the driver moves between the GPU and the
/// host.
bool wants_managed_memory();

/// By cuMemAlloc, or cuMemAllocManaged where that is asked for.
void* allocate_memory(Gpu& gpu, std::size_t bytes);
void free_memory(Gpu& gpu, void* address);

/// The granularity of memory in reserved ranges; 0 where the driver or the GPU has none, and for
/// managed memory.
std::size_t memory_granularity(Gpu& gpu);
void* reserve_addresses(Gpu& gpu, std::size_t bytes);
void free_addresses(Gpu& gpu, void* address, std::size_t bytes);
/// Puts memory into a part of a range, where all GPUs that can reach this one may use it.
void commit_memory(Gpu& gpu, void* address, std::size_t bytes);
/// Takes the memory of one commit out again.
void decommit_memory(Gpu& gpu, void* address, std::size_t bytes);

}  // namespace tandem::cuda
