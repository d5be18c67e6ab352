// Sums of what is in front of each element, for kernels that put together what they keep.

#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/prefix_sum.h"
#include "tandem/kernels/cuda/support/warp.h"

namespace tandem::cuda {
namespace {

constexpr unsigned kThreads = 256;

// One block goes over all elements, a piece of kThreads at a time.
TANDEM_KERNEL prefix_sum_kernel(std::int64_t* numbers, std::int64_t n) {
  TANDEM_SHARED(std::int64_t, sums, 32);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  std::int64_t before = 0;
  for (std::int64_t first = 0; first < n; first += kThreads) {
    const std::int64_t i = first + threadIdx.x;
    const std::int64_t own = i < n ? numbers[i] : 0;
    std::int64_t sum = own;
    for (unsigned d = 1; d < 32; d *= 2) {
      const std::int64_t other = warp_shuffle_up(sum, d);
      if (lane >= d) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    std::int64_t piece = 0;
    for (unsigned w = 0; w < kThreads / 32; ++w) {
      const std::int64_t of_warp = sums[w];
      if (w < warp) sum += of_warp;
      piece += of_warp;
    }
    if (i < n) numbers[i] = before + sum - own;
    before += piece;
    __syncthreads();
  }
  if (threadIdx.x == 0) numbers[n] = before;
}

}  // namespace

void prefix_sum(std::int64_t* numbers, std::int64_t n) {
  Shape shape;
  shape.block.x = kThreads;
  TANDEM_LAUNCH(prefix_sum_kernel, shape, 0, numbers, n);
}

}  // namespace tandem::cuda
