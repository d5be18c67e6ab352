#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem {

/// One value that wants a place in a frame's arena: its size, and the steps (inclusive) during which it must keep it.
struct PlannedValue {
  std::size_t bytes = 0;
  int first = 0;
  int last = 0;
  std::size_t offset = 0;  ///< result
};

/// Gives every value an offset, 64-byte aligned, such that no two that live at the same step overlap; large values
/// first, each at the lowest place that fits. Returns the arena's size.
std::size_t plan_memory(std::vector<PlannedValue>& values);

}  // namespace tandem
