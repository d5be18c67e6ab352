// Bitonic sorting of pairs: within a block for few, by passes over memory for many.

#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/sort.h"

namespace tandem::cuda {
namespace {

constexpr std::int64_t kInBlock = 512;

TANDEM_DEVICE bool is_after(std::uint64_t key, std::int64_t value, std::uint64_t other_key,
                            std::int64_t other_value) {
  return key != other_key ? key > other_key : value > other_value;
}

// One block, a thread for each pair.
TANDEM_KERNEL sort_block_kernel(std::uint64_t* keys, std::int64_t* values, std::int64_t n) {
  TANDEM_SHARED(std::uint64_t, key, kInBlock);
  TANDEM_SHARED(std::int64_t, value, kInBlock);
  const std::int64_t i = threadIdx.x;
  key[i] = keys[i];
  value[i] = values[i];
  __syncthreads();
  for (std::int64_t size = 2; size <= n; size *= 2) {
    for (std::int64_t stride = size / 2; stride > 0; stride /= 2) {
      const std::int64_t j = i ^ stride;
      if (j > i) {
        const std::uint64_t a = key[i], b = key[j];
        const std::int64_t x = value[i], y = value[j];
        if (is_after(a, x, b, y) == ((i & size) == 0)) {
          key[i] = b;
          key[j] = a;
          value[i] = y;
          value[j] = x;
        }
      }
      __syncthreads();
    }
  }
  keys[i] = key[i];
  values[i] = value[i];
}

TANDEM_KERNEL sort_pass_kernel(std::uint64_t* keys, std::int64_t* values, std::int64_t n,
                               std::int64_t size, std::int64_t stride) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t j = i ^ stride;
    if (j < i) continue;
    const std::uint64_t a = keys[i], b = keys[j];
    const std::int64_t x = values[i], y = values[j];
    if (is_after(a, x, b, y) == ((i & size) == 0)) {
      keys[i] = b;
      keys[j] = a;
      values[i] = y;
      values[j] = x;
    }
  }
}

std::int64_t padded(std::int64_t n) {
  std::int64_t size = 1;
  while (size < n) size *= 2;
  return size;
}

}  // namespace

std::size_t sort_bytes(std::int64_t n) { return static_cast<std::size_t>(padded(n)) * 16; }

SortPairs sort_pairs_at(void* memory, std::int64_t n) {
  SortPairs pairs;
  pairs.size = padded(n);
  pairs.keys = static_cast<std::uint64_t*>(memory);
  pairs.values = reinterpret_cast<std::int64_t*>(pairs.keys + pairs.size);
  return pairs;
}

void sort(const SortPairs& pairs) {
  if (pairs.size <= 1) return;
  if (pairs.size <= kInBlock) {
    Shape shape;
    shape.block.x = static_cast<unsigned>(pairs.size);
    TANDEM_LAUNCH(sort_block_kernel, shape, 0, pairs.keys, pairs.values, pairs.size);
    return;
  }
  for (std::int64_t size = 2; size <= pairs.size; size *= 2) {
    for (std::int64_t stride = size / 2; stride > 0; stride /= 2) {
      TANDEM_LAUNCH(sort_pass_kernel, shape_for(pairs.size), 0, pairs.keys, pairs.values,
                    pairs.size, size, stride);
    }
  }
}

}  // namespace tandem::cuda
