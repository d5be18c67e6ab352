#pragma once

#include <cstdint>
#include <type_traits>

#include "tandem/kernels/cpu/array/transpose_block.h"

namespace tandem::cpu {

/// to[columns, rows] = from[rows, columns]ᵀ: from row-major to column-major, or back with the sizes
/// exchanged.
template <class T>
void transposed_copy(const T* from, std::int64_t rows, std::int64_t columns, T* to) {
  if constexpr (sizeof(T) <= sizeof(std::uint64_t)) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    transpose_block(reinterpret_cast<Bits*>(to), rows, reinterpret_cast<const Bits*>(from), columns,
                    columns, rows);
  } else {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
    }
  }
}

}  // namespace tandem::cpu
