#include "tandem/runtime/execute/memory_plan.h"

#include <algorithm>

namespace tandem {

std::size_t plan_memory(const std::vector<std::size_t>& bytes,
                        const std::function<bool(std::size_t, std::size_t)>& conflict,
                        std::vector<std::size_t>& offsets) {
  constexpr std::size_t kAlignment = 64;
  const auto padded = [](std::size_t size) {
    return std::max<std::size_t>(1, (size + kAlignment - 1) / kAlignment) * kAlignment;
  };
  // Small values each get a place of their own: reuse would save next to nothing.
  constexpr std::size_t kSmall = 1024;
  offsets.assign(bytes.size(), 0);
  std::size_t small_size = 0;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] <= kSmall) {
      offsets[i] = small_size;
      small_size += padded(bytes[i]);
    } else {
      order.push_back(i);
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
  std::vector<std::size_t> placed;  // by offset
  std::size_t arena = small_size;
  for (std::size_t i : order) {
    std::size_t offset = small_size;
    for (std::size_t p : placed) {
      if (!conflict(i, p)) continue;
      if (offset + padded(bytes[i]) <= offsets[p]) break;
      offset = std::max(offset, offsets[p] + padded(bytes[p]));
    }
    offsets[i] = offset;
    arena = std::max(arena, offset + padded(bytes[i]));
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), i,
                         [&](std::size_t a, std::size_t b) { return offsets[a] < offsets[b]; }),
        i);
  }
  return arena;
}

}  // namespace tandem
