#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace tandem {

/// Gives every value an offset, 64-byte aligned, such that no two that may be alive at the same
/// time overlap; large values first, each at the lowest place that fits. `conflict(i, j)` says
/// whether two values may be alive together. Fills `offsets` and returns the arena's size.
std::size_t plan_memory(const std::vector<std::size_t>& bytes,
                        const std::function<bool(std::size_t, std::size_t)>& conflict,
                        std::vector<std::size_t>& offsets);

/// From this many values on `plan_memory`, which compares each with all, takes longer than it
/// saves.
inline constexpr std::size_t kMaxComparedValues = 4096;

/// Plans very many values, each alive from step `first[i]` to step `last[i]`: in the order
/// of steps, each at the tightest place that is free. Takes n log n.
std::size_t plan_memory_by_steps(const std::vector<std::size_t>& bytes,
                                 const std::vector<int>& first, const std::vector<int>& last,
                                 std::vector<std::size_t>& offsets);

}  // namespace tandem
