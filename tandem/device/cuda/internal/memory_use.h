#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem::cuda {

/// Memory that a command reads, or writes.
struct MemoryUse {
  const std::byte* begin = nullptr;
  std::int64_t bytes = 0;
  bool writes = false;
};

}  // namespace tandem::cuda
