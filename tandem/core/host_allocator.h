#pragma once

#include <cstddef>

#include "tandem/core/host_memory.h"

namespace tandem {

/// Makes containers and shared objects of the standard library take their memory from
/// `host_allocate`, whose lists make what comes and goes with every call cheap.
template <class T>
struct HostAllocator {
  using value_type = T;

  HostAllocator() = default;
  template <class U>
  HostAllocator(const HostAllocator<U>&) noexcept {}  // NOLINT: implicit, as containers want it

  T* allocate(std::size_t count) { return static_cast<T*>(host_allocate(count * sizeof(T))); }
  void deallocate(T* block, std::size_t count) noexcept { host_free(block, count * sizeof(T)); }
  bool operator==(const HostAllocator&) const = default;
};

}  // namespace tandem
