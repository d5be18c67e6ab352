#pragma once

#include <cstdint>
#include <type_traits>

#include "tandem/core/array.h"

namespace tandem::cpu {

/// Writes n numbers from element `begin` on of an array of int16, int32 or int64.
inline void put_indices(Array& out, std::int64_t begin, const std::int64_t* values,
                        std::int64_t n) {
  const auto put = [&](auto* to) {
    for (std::int64_t i = 0; i < n; ++i) {
      to[begin + i] = static_cast<std::remove_pointer_t<decltype(to)>>(values[i]);
    }
  };
  switch (out.dtype()) {
    case DType::kInt16: return put(out.data<std::int16_t>());
    case DType::kInt32: return put(out.data<std::int32_t>());
    default: return put(out.data<std::int64_t>());
  }
}

}  // namespace tandem::cpu
