#pragma once

#include <cstddef>

#include "tandem/core/host_memory.h"

namespace tandem {

/// Base of classes whose objects take their memory from `host_allocate`: for those that come and go
/// with every call, perhaps on another thread than the one that made them.
struct CachedObject {
  static void* operator new(std::size_t bytes) { return host_allocate(bytes); }
  static void operator delete(void* block, std::size_t bytes) { host_free(block, bytes); }
};

}  // namespace tandem
