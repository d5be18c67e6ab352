#include "tandem/runtime/memory_plan.h"

#include <algorithm>

namespace tandem {

std::size_t plan_memory(std::vector<PlannedValue>& values) {
  constexpr std::size_t kAlignment = 64;
  const auto padded = [](std::size_t bytes) { return std::max<std::size_t>(1, (bytes + kAlignment - 1) / kAlignment) * kAlignment; };
  // Small values each get a place of their own: reuse would save next to nothing.
  constexpr std::size_t kSmall = 1024;
  std::size_t small_size = 0;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].bytes <= kSmall) {
      values[i].offset = small_size;
      small_size += padded(values[i].bytes);
    } else {
      order.push_back(i);
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a].bytes > values[b].bytes; });
  std::vector<std::size_t> placed;  // by offset
  std::size_t size = small_size;
  for (std::size_t i : order) {
    std::size_t offset = small_size;
    for (std::size_t p : placed) {
      const PlannedValue& other = values[p];
      if (other.last < values[i].first || values[i].last < other.first) continue;
      if (offset + padded(values[i].bytes) <= other.offset) break;
      offset = std::max(offset, other.offset + padded(other.bytes));
    }
    values[i].offset = offset;
    size = std::max(size, offset + padded(values[i].bytes));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](std::size_t a, std::size_t b) { return values[a].offset < values[b].offset; }),
                  i);
  }
  return size;
}

}  // namespace tandem
