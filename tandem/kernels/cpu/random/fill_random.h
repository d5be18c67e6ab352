#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "tandem/device/intra_op_pool.h"
#include "tandem/kernels/cpu/random/distributions.h"
#include "tandem/kernels/cpu/random/philox_blocks.h"

namespace tandem::cpu {

/// Groups [begin, end) of n values where each group comes from the block of its number.
template <class Distribution>
void fill_groups(Philox stream, const Distribution& distribution, typename Distribution::Value* out,
                 std::int64_t n, std::int64_t begin, std::int64_t end) {
  using T = typename Distribution::Value;
  constexpr std::int64_t kGroup = Distribution::kGroup;
  stream.skip(static_cast<std::uint64_t>(begin));
  const std::int64_t whole = std::min(end, n / kGroup);
  std::int64_t g = begin;
  if constexpr (std::is_same_v<Distribution, Uniform<float>>) {
    if (whole > g) {
      philox_unit_floats(stream, whole - g, out + g * kGroup);
      g = whole;
    }
  } else {
    constexpr std::int64_t kBatch = 64;
    std::uint32_t numbers[4 * kBatch];
    while (g < whole) {
      const std::int64_t count = std::min(kBatch, whole - g);
      philox_blocks(stream, count, numbers);
      for (std::int64_t k = 0; k < count; ++k)
        distribution(numbers + 4 * k, out + (g + k) * kGroup);
      g += count;
    }
  }
  if (g < end) {  // the last group, of which not all is wanted
    const Philox::Block x = stream();
    T values[kGroup];
    distribution(x.data(), values);
    std::copy(values, values + (n - g * kGroup), out + g * kGroup);
  }
}

/// Like fill_groups, where each group may use as many numbers as it likes of a part of the stream
/// that is its own.
template <class Distribution>
void fill_groups_with_rejection(const Philox& stream, const Distribution& distribution,
                                typename Distribution::Value* out, std::int64_t n,
                                std::int64_t begin, std::int64_t end) {
  using T = typename Distribution::Value;
  constexpr std::int64_t kGroup = Distribution::kGroup;
  for (std::int64_t g = begin; g < end; ++g) {
    Philox own = stream;
    own.skip(static_cast<std::uint64_t>(g) * Distribution::kBlocksPerGroup);
    PhiloxNumbers numbers(own);
    T values[kGroup];
    distribution(numbers, values);
    std::copy(values, values + std::min(kGroup, n - g * kGroup), out + g * kGroup);
  }
}

/// n values from the stream; each group has its own place in it, so the values do not depend on the
/// number of threads.
template <class Distribution>
void fill_random(IntraOpPool& pool, const Philox& stream, const Distribution& distribution,
                 typename Distribution::Value* out, std::int64_t n) {
  using T = typename Distribution::Value;
  constexpr std::int64_t kGroup = Distribution::kGroup;
  const std::int64_t groups = n / kGroup + (n % kGroup != 0);
  pool.parallel_for(groups, Distribution::kCost, [&](std::int64_t begin, std::int64_t end) {
    if constexpr (std::is_invocable_v<const Distribution&, const std::uint32_t*, T*>) {
      fill_groups(stream, distribution, out, n, begin, end);
    } else {
      fill_groups_with_rejection(stream, distribution, out, n, begin, end);
    }
  });
}

}  // namespace tandem::cpu
