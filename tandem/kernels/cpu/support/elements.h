#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "tandem/core/dtype.h"
#include "tandem/core/error.h"
#include "tandem/core/resource_handle.h"
#include "tandem/core/variant.h"

// Kernels that only move elements care for their size, not for their dtype: one instantiation a
// size, and one for each kind of element that is an object.

namespace tandem::cpu {

struct Bytes16 {
  std::uint64_t low;
  std::uint64_t high;
};

/// Calls `f.template operator()<T>()` with a T of the size of an element; objects are themselves.
template <class F>
auto with_element(DType dtype, F&& f) {
  switch (base_dtype(dtype)) {
    case DType::kString: return f.template operator()<std::string>();
    case DType::kVariant: return f.template operator()<Variant>();
    case DType::kResource: return f.template operator()<ResourceHandle>();
    default: break;
  }
  switch (dtype_size(dtype)) {
    case 1: return f.template operator()<std::uint8_t>();
    case 2: return f.template operator()<std::uint16_t>();
    case 4: return f.template operator()<std::uint32_t>();
    case 8: return f.template operator()<std::uint64_t>();
    case 16: return f.template operator()<Bytes16>();
    default: throw InternalError(cat("elements of ", dtype, " have an unusual size"));
  }
}

/// Copies n elements; the ranges do not overlap.
template <class T>
inline void copy_elements(T* to, const T* from, std::int64_t n) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    if (n > 0) std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[i];
  }
}

/// Sets n elements to zero, or to what a default-constructed object is.
template <class T>
inline void clear_elements(T* to, std::int64_t n) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    if (n > 0) std::memset(static_cast<void*>(to), 0, static_cast<std::size_t>(n) * sizeof(T));
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = T();
  }
}

/// What moving one element costs in nanoseconds, roughly, when it lies beside the one before.
inline double move_cost(DType dtype) {
  return is_object(dtype) ? 20.0 : 0.1 * static_cast<double>(dtype_size(dtype));
}

}  // namespace tandem::cpu
