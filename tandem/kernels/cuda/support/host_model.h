#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

// The execution model of a GPU on the host: blocks of threads with shared memory, barriers, warps
// of 32 lanes that exchange values, and atomics. The sources of tandem/kernels/cuda compile against
// it with an ordinary compiler (support/device_code.h), so that every kernel runs and is tested on
// machines without a GPU.
//
// Each GPU thread is a fiber; the blocks of a grid run one after the other on the calling thread.
// A GPU runs blocks and threads in any order: with TANDEM_TEST_CUDA_ORDER=reversed both take their
// turns from the last to the first, so that tests see what depends on the order.
// The model is stricter than hardware: it reports a barrier that only some threads of a block
// reach, a shuffle that only some lanes of its mask reach, and shared memory that two threads use
// between the same two barriers where one of them writes.

// What generated kernels, shared objects of their own, call.
#define TANDEM_HOST_MODEL __attribute__((visibility("default")))

namespace tandem::cuda::host {

/// Sizes or coordinates, as CUDA's dim3 and uint3.
struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
  std::size_t count() const { return static_cast<std::size_t>(x) * y * z; }
};

/// A rule of the execution model that a kernel broke. The message names kernel, block and thread.
class TANDEM_HOST_MODEL KernelFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Where the running GPU thread is.
struct ThreadPlace {
  Dim3 thread{0, 0, 0}, block{0, 0, 0}, block_size, grid_size;
  unsigned linear = 0;  ///< the thread's number within its block
};

/// The running GPU thread. Only within run_grid.
TANDEM_HOST_MODEL const ThreadPlace& place();

/// Runs `body` once for each thread of each block. Throws KernelFault, or what `body` throws.
/// `shared_bytes` of dynamic shared memory are zeroed for each block.
void run_grid(const char* kernel, Dim3 grid, Dim3 block, std::size_t shared_bytes,
              const std::function<void()>& body);

/// __syncthreads().
TANDEM_HOST_MODEL void block_barrier();
/// __syncwarp(mask): all lanes of `mask` must call it.
TANDEM_HOST_MODEL void warp_barrier(unsigned mask);
/// All lanes of `mask` contribute `bits`, and receive what each lane contributed (32 values, zero
/// for lanes outside of the mask).
TANDEM_HOST_MODEL const std::uint64_t* warp_exchange(unsigned mask, std::uint64_t bits);

/// The block's dynamic shared memory.
TANDEM_HOST_MODEL std::byte* dynamic_shared();

/// Notes an access to shared memory by the running thread, and throws KernelFault if it races with
/// another one since the last barrier.
class TANDEM_HOST_MODEL AccessLog {
 public:
  void read(const char* what, std::size_t index);
  void write(const char* what, std::size_t index);
  /// Atomic operations race with plain accesses only.
  void atomic(const char* what, std::size_t index);

 private:
  struct Entry {
    std::uint64_t grid = 0;  // whose block's accesses these are; others are of the past
    std::uint64_t block_epoch = 0, read_warp_epoch = 0, write_warp_epoch = 0;
    int reader = -1, writer = -1;  // -1: none, -2: several
    bool written_atomically = false;
  };
  Entry& entry(std::size_t index);
  void check(const Entry& e, int other, std::uint64_t warp_epoch, const char* doing,
             const char* what, std::size_t index);
  std::vector<Entry> entries_;
};

}  // namespace tandem::cuda::host
