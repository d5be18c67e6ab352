#pragma once

#include <cstddef>
#include <cstdint>

// A choice between two rows, element by element, by the size of an element alone.

namespace tandem::cpu {

/// One row of a choice: out[i] = condition[i] ? then[i] : otherwise[i] for n elements; a source
/// that repeats is its first element all along. A condition is true unless its byte is 0. `out` may
/// be one of the sources if that does not repeat.
using ChooseRow = void (*)(const void* condition, const void* then, bool then_repeats,
                           const void* otherwise, bool otherwise_repeats, void* out,
                           std::int64_t n);

/// For elements of 1, 2, 4 or 8 bytes; null for others.
ChooseRow choose_row(std::size_t element_size);

}  // namespace tandem::cpu
