#pragma once

#include <cstddef>

namespace tandem::cpu {

/// Begins to bring what is read next from memory, for kernels that work block by block: what a
/// processor fetches by itself ends with a page, or with a row. Need not be valid memory.
inline void fetch_ahead(const void* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const char* const at = static_cast<const char*>(from);
  for (std::size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(at + i, 0, 2);
}

}  // namespace tandem::cpu
