#pragma once

#include <cstddef>

namespace tandem::cpu {

/// Prefetches what is read next from memory, for kernels that work block by block: what a
/// processor fetches by itself ends with a page, or with a row. Need not be valid memory. Of long
/// blocks the beginning, which stays in the nearest caches until it is read.
inline void prefetch(const void* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64, kMax = std::size_t{1} << 15;
  const char* const at = static_cast<const char*>(from);
  const std::size_t end = bytes < kMax ? bytes : kMax;
  for (std::size_t i = 0; i < end; i += kLine) __builtin_prefetch(at + i, 0, 2);
}

}  // namespace tandem::cpu
