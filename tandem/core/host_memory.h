#pragma once

#include <cstddef>

#include "tandem/core/export.h"

namespace tandem {

/// Blocks of host memory, 64-byte aligned, through caches that make small and recurring sizes
/// cheap.
///
/// Thread-safe. Sizes up to 1 KiB come from a list of the calling thread, which exchanges blocks
/// with other threads' lists by the batch; larger ones come from shared lists by size class that
/// keep at most 256 MiB of unused memory. Under sanitizers every block goes to the system
/// allocator, so that its checks see each use. Throws ResourceExhaustedError when the system has no
/// memory left.
TANDEM_EXPORT void* host_allocate(std::size_t bytes);
/// `bytes` is the size asked for.
TANDEM_EXPORT void host_free(void* block, std::size_t bytes) noexcept;

/// Gives unused cached memory back to the system.
TANDEM_EXPORT void host_trim() noexcept;

/// What HostMemoryStats::current counts for a block of so many bytes: its size class.
TANDEM_EXPORT std::size_t host_counted_bytes(std::size_t bytes) noexcept;

struct HostMemoryStats {
  std::size_t current = 0;  ///< bytes in blocks over 1 KiB that are in use now
  std::size_t peak = 0;     ///< the largest `current` since the start or host_reset_peak
  std::size_t cached = 0;   ///< unused bytes kept for later
};
TANDEM_EXPORT HostMemoryStats host_memory_stats() noexcept;
/// The peak becomes what is in use now.
TANDEM_EXPORT void host_reset_peak() noexcept;

}  // namespace tandem
