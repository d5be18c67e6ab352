#pragma once

#include "tandem/kernels/cuda/support/device_code.h"

// Work that comes in parts: a kernel on one part, and one on many of them, each with blocks of its
// own. A model has hundreds of variables, most of them small, and what is done to each of them
// costs less than its launch. The host's side is support/launch_part.h; generated kernels include
// this header too.

namespace tandem::cuda {

/// As many parts of a size as fit into what parameters may take on every GPU, 4 KiB, beside some
/// hundred bytes that the parts have in common.
constexpr int max_parts(std::size_t part_bytes) {
  constexpr std::size_t kBytes = 3864;
  const std::size_t most = (kBytes - 8) / (part_bytes + sizeof(std::int32_t));
  return most > 64 ? 64 : most < 1 ? 1 : static_cast<int>(most);
}
/// Where the first one lies.
constexpr std::size_t parts_offset(std::size_t part_bytes) {
  const std::size_t before =
      sizeof(std::int32_t) * (1 + static_cast<std::size_t>(max_parts(part_bytes)));
  return (before + 7) / 8 * 8;
}

/// A parameter of a kernel: parts, which consist of what is 8 bytes large or aligned so.
template <class Part>
struct Parts {
  static constexpr int kMax = max_parts(sizeof(Part));
  std::int32_t count = 0;
  std::int32_t first_block[kMax] = {};
  alignas(8) Part at[kMax];
};

/// The blocks that do a part, and which of them runs.
struct PartBlocks {
  unsigned block, count;

  TANDEM_DEVICE static PartBlocks whole_grid() { return {blockIdx.x, gridDim.x}; }
  /// As first_index and index_step are for a whole grid.
  template <class Index>
  TANDEM_DEVICE Index first() const {
    return static_cast<Index>(block) * static_cast<Index>(blockDim.x) +
           static_cast<Index>(threadIdx.x);
  }
  template <class Index>
  TANDEM_DEVICE Index step() const {
    return static_cast<Index>(blockDim.x) * static_cast<Index>(count);
  }
};

/// The part that the running block belongs to: the last whose first block is this one or before it.
/// Members of `parts` are read one by one, so that it stays where parameters lie.
template <class Part>
TANDEM_DEVICE int part_of_block(const Parts<Part>& parts) {
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  int one = 0;
  for (int after = parts.count; after - one > 1;) {
    const int middle = (one + after) / 2;
    if (parts.first_block[middle] <= block) {
      one = middle;
    } else {
      after = middle;
    }
  }
  return one;
}
template <class Part>
TANDEM_DEVICE PartBlocks blocks_of_part(const Parts<Part>& parts, int one) {
  const auto first = static_cast<unsigned>(parts.first_block[one]);
  const unsigned end = one + 1 < parts.count ? static_cast<unsigned>(parts.first_block[one + 1])
                                             : static_cast<unsigned>(gridDim.x);
  return {static_cast<unsigned>(blockIdx.x) - first, end - first};
}

}  // namespace tandem::cuda
