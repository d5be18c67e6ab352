#pragma once

#include <cstdint>

#include "tandem/kernels/cuda/support/kernel_call.h"

namespace tandem::cuda {

/// Pairs of a key and a number in device memory, to be sorted. `size` is a power of two.
struct SortPairs {
  std::uint64_t* keys = nullptr;
  std::int64_t* values = nullptr;
  std::int64_t size = 0;
};

/// Bytes that hold the pairs of n elements, and the pairs that lie there.
std::size_t sort_bytes(std::int64_t n);
SortPairs sort_pairs_at(void* memory, std::int64_t n);

/// Sorts by key, equal keys by value, so that the order is the same in every run. Pairs beyond the
/// n that count must have the largest key and values above all others.
void sort(const SortPairs& pairs);

/// The key of pairs that are left out.
constexpr std::uint64_t kLastKey = ~std::uint64_t{0};

}  // namespace tandem::cuda
