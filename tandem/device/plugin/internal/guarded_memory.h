#pragma once

#include <cstddef>
#include <memory>

#include "tandem/core/internal/sanitizers.h"
#include "tandem/device/block_allocator.h"
#include "tandem/device/plugin/internal/library.h"

// Accesses beyond blocks, found in builds with AddressSanitizer where a plugin's devices have
// memory of the host: what a BlockAllocator has not handed out is poisoned, so that kernels and
// copies which reach there end with a report. That is what is free, what rounding leaves behind a
// block, and guards between blocks. Limits and statistics are what they are without.
//
// A plugin says that its memory is the host's, and that the host's instrumented code works on it,
// by exporting a symbol `tandem_plugin_memory_is_host`. Addresses of hardware are never touched,
// and other builds have nothing of this.

namespace tandem {

enum class Guards { kNone, kBetweenBlocks };

#if TANDEM_ADDRESS_SANITIZER

/// A source that poisons what `memory` gives, `offset` bytes behind its addresses, until it is
/// handed out. `memory` as it is where it is not the host's.
std::shared_ptr<RegionSource> guarded(std::shared_ptr<RegionSource> memory,
                                      const PluginLibrary& library, std::ptrdiff_t offset,
                                      Guards guards);
/// What a source needs room for so that `bytes` count and guards lie between blocks.
std::size_t with_guards(std::size_t bytes, const PluginLibrary& library);

#else

inline std::shared_ptr<RegionSource> guarded(std::shared_ptr<RegionSource> memory,
                                             const PluginLibrary&, std::ptrdiff_t, Guards) {
  return memory;
}
inline std::size_t with_guards(std::size_t bytes, const PluginLibrary&) { return bytes; }

#endif

}  // namespace tandem
