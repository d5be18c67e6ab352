#include "tandem/kernels/cuda/support/launch_part.h"

#include <cstring>

namespace tandem::cuda {
namespace {

bool overlap(const MemoryUse& a, const MemoryUse& b) {
  return a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
}

// Whether it matters which of two that use these comes first.
bool conflict(std::span<const MemoryUse> some, std::span<const MemoryUse> others) {
  for (const MemoryUse& a : some) {
    for (const MemoryUse& b : others) {
      if ((a.writes || b.writes) && overlap(a, b)) return true;
    }
  }
  return false;
}

// The bytes of Parts.
class PartsBytes {
 public:
  PartsBytes(std::byte* bytes, std::size_t part_bytes) : bytes_(bytes), part_bytes_(part_bytes) {}
  static std::size_t size(std::size_t part_bytes) {
    return parts_offset(part_bytes) + static_cast<std::size_t>(max_parts(part_bytes)) * part_bytes;
  }
  std::int32_t count() const {
    std::int32_t count = 0;
    std::memcpy(&count, bytes_, sizeof(count));
    return count;
  }
  void add(const void* part, unsigned first_block) {
    const std::int32_t at = count(), next = at + 1;
    const auto first = static_cast<std::int32_t>(first_block);
    std::memcpy(bytes_, &next, sizeof(next));
    std::memcpy(bytes_ + sizeof(std::int32_t) * static_cast<std::size_t>(next), &first,
                sizeof(first));
    std::memcpy(bytes_ + parts_offset(part_bytes_) + static_cast<std::size_t>(at) * part_bytes_,
                part, part_bytes_);
  }

 private:
  std::byte* bytes_;
  std::size_t part_bytes_;
};

bool join_last_launch(const PartLaunch& launch) {
  const LastLaunch last;
  if (!last || last.uses().empty() || max_parts(launch.part_bytes) < 2) return false;
  const bool is_alone = last.is(launch.alone);
  const Function together = launch.together(launch);
  if (!is_alone && !last.is(together)) return false;
  if (launch.common && std::memcmp(last.parameter(1), launch.common, launch.common_bytes) != 0)
    return false;
  if (conflict(launch.uses, last.uses())) return false;
  const unsigned before = last.blocks();
  if (!is_alone) {
    PartsBytes parts(static_cast<std::byte*>(last.parameter(0)), launch.part_bytes);
    if (parts.count() == max_parts(launch.part_bytes)) return false;
    parts.add(launch.part, before);
    last.set_blocks(before + launch.shape.grid.x);
    last.add_uses(launch.uses);
    return true;
  }
  std::vector<std::byte> bytes(PartsBytes::size(launch.part_bytes));
  PartsBytes parts(bytes.data(), launch.part_bytes);
  parts.add(last.parameter(0), 0);
  parts.add(launch.part, before);
  std::vector<MemoryUse> uses(last.uses().begin(), last.uses().end());
  uses.insert(uses.end(), launch.uses.begin(), launch.uses.end());
  Shape both = launch.shape;
  both.grid.x += before;
  last.remove();
  const void* const parameters[] = {bytes.data(), launch.common};
  const std::size_t sizes[] = {bytes.size(), launch.common_bytes};
  add_launch(launch.name, together, both, 0, parameters, sizes, launch.common ? 2 : 1);
  LastLaunch().add_uses(uses);
  return true;
}

}  // namespace

void launch_part(const PartLaunch& launch) {
  if (join_last_launch(launch)) return;
  const void* const parameters[] = {launch.part, launch.common};
  const std::size_t sizes[] = {launch.part_bytes, launch.common_bytes};
  add_launch(launch.name, launch.alone, launch.shape, 0, parameters, sizes, launch.common ? 2 : 1);
  LastLaunch().add_uses(launch.uses);
}

}  // namespace tandem::cuda
