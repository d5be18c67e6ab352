#pragma once

#include "tandem/kernels/cuda/support/device_code.h"

#if !defined(__CUDACC__)
#include <cstring>
#endif

namespace tandem::cuda {

constexpr unsigned kFullWarp = 0xffffffffu;

#if defined(__CUDACC__)

template <class T>
TANDEM_DEVICE T warp_shuffle_down(T value, unsigned distance) {
  return __shfl_down_sync(kFullWarp, value, distance);
}
template <class T>
TANDEM_DEVICE T warp_shuffle_xor(T value, unsigned lanes) {
  return __shfl_xor_sync(kFullWarp, value, lanes);
}
template <class T>
TANDEM_DEVICE T warp_shuffle_up(T value, unsigned distance) {
  return __shfl_up_sync(kFullWarp, value, distance);
}
template <class T>
TANDEM_DEVICE T warp_shuffle(T value, unsigned lane) {
  return __shfl_sync(kFullWarp, value, lane);
}
TANDEM_DEVICE unsigned warp_ballot(bool vote) { return __ballot_sync(kFullWarp, vote); }
template <class T>
TANDEM_DEVICE T atomic_add(T* address, T value) {
  return atomicAdd(address, value);
}
TANDEM_DEVICE std::int64_t atomic_add(std::int64_t* address, std::int64_t value) {
  return static_cast<std::int64_t>(atomicAdd(reinterpret_cast<unsigned long long*>(address),
                                             static_cast<unsigned long long>(value)));
}
/// `*address = max(*address, value)` for non-negative numbers and any others.
template <class T>
TANDEM_DEVICE void atomic_max(T* address, T value) {
  atomicMax(address, value);
}

#else

/// Every lane of the warp calls it; lanes beyond the block's last thread are left out of the mask.
inline unsigned lanes_here() {
  const auto& p = host::place();
  const auto last = static_cast<unsigned>(p.block_size.count());
  const unsigned first = p.linear / 32 * 32;
  const unsigned lanes = last - first < 32 ? last - first : 32;
  return lanes == 32 ? kFullWarp : (1u << lanes) - 1;
}
template <class T>
T warp_read(T value, unsigned from, bool within) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  const std::uint64_t* all = host::warp_exchange(lanes_here(), bits);
  if (!within || ((lanes_here() >> from) & 1) == 0) return value;
  T result;
  std::memcpy(&result, &all[from], sizeof(T));
  return result;
}
template <class T>
T warp_shuffle_down(T value, unsigned distance) {
  const unsigned from = host::place().linear % 32 + distance;
  return warp_read(value, from % 32, from < 32);
}
template <class T>
T warp_shuffle_up(T value, unsigned distance) {
  const unsigned lane = host::place().linear % 32;
  return warp_read(value, (lane - distance) % 32, lane >= distance);
}
template <class T>
T warp_shuffle_xor(T value, unsigned lanes) {
  return warp_read(value, (host::place().linear % 32) ^ lanes, true);
}
template <class T>
T warp_shuffle(T value, unsigned lane) {
  return warp_read(value, lane % 32, true);
}
inline unsigned warp_ballot(bool vote) {
  const std::uint64_t* all = host::warp_exchange(lanes_here(), vote ? 1 : 0);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane) votes |= static_cast<unsigned>(all[lane]) << lane;
  return votes & lanes_here();
}
template <class T>
T atomic_add(T* address, T value) {
  const T before = *address;
  *address = before + value;
  return before;
}
template <class T>
void atomic_max(T* address, T value) {
  if (*address < value) *address = value;
}

#endif

/// Reduces the values of a block's threads; thread 0 has the result. `join` is associative and
/// commutative, `none` changes nothing. The block has a whole number of warps, at most 32. A second
/// call needs a barrier between.
template <class T, class Join>
TANDEM_DEVICE T block_reduce(T value, T none, Join join) {
  TANDEM_SHARED(T, partial, 32);
  for (unsigned d = 16; d > 0; d /= 2) value = join(value, warp_shuffle_down(value, d));
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = lane < blockDim.x / 32 ? static_cast<T>(partial[lane]) : none;
    for (unsigned d = 16; d > 0; d /= 2) value = join(value, warp_shuffle_down(value, d));
  }
  return value;
}

/// block_reduce whose result all threads have.
template <class T, class Join>
TANDEM_DEVICE T block_reduce_all(T value, T none, Join join) {
  TANDEM_SHARED(T, result, 1);
  value = block_reduce(value, none, join);
  if (threadIdx.x == 0) result[0] = value;
  __syncthreads();
  value = result[0];
  __syncthreads();
  return value;
}

}  // namespace tandem::cuda
