#include "tandem/core/memory_listener.h"

namespace tandem {

std::atomic<MemoryListener> g_memory_listener{nullptr};

void set_memory_listener(MemoryListener listener) noexcept { g_memory_listener.store(listener); }

}  // namespace tandem
