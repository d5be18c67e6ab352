#pragma once

#include <atomic>
#include <cstddef>
#include <string_view>

#include "tandem/core/export.h"

namespace tandem {

/// A block of memory that was just taken, or is about to be released.
struct MemoryChange {
  std::string_view device = {};  ///< its name; empty for the host's memory
  const void* block = nullptr;
  std::size_t bytes = 0;
  bool released = false;
  std::size_t in_use = 0;  ///< afterwards
  std::size_t limit = 0;   ///< 0: as much as the system gives
};

/// Called for each change while it is set, on the thread that makes it, perhaps with an allocator's
/// lock: it must not allocate from them. For the profiler, which sets it while it records memory.
using MemoryListener = void (*)(const MemoryChange&) noexcept;
/// Null for none.
TANDEM_EXPORT void set_memory_listener(MemoryListener listener) noexcept;
TANDEM_EXPORT extern std::atomic<MemoryListener> g_memory_listener;

/// For allocators. One relaxed load where none listens.
inline void report_memory(const MemoryChange& change) noexcept {
  if (const MemoryListener listener = g_memory_listener.load(std::memory_order_relaxed))
    listener(change);
}

}  // namespace tandem
