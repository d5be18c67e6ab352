#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "tandem/device/cuda/internal/failure.h"
#include "tandem/kernels/cuda/support/device_code.h"

#if !defined(__CUDACC__)
#include <functional>
#endif

namespace tandem::cuda {

/// The stream of the calling kernel, as CUDA's cudaStream_t. Opaque.
void* current_stream();

/// Blocks and threads of a launch.
struct Shape {
  dim3 grid;
  dim3 block;
};

/// Threads of a block for work that needs no shared memory; TANDEM_TEST_CUDA_BLOCK overrides it, in
/// tests.
unsigned default_block();

/// A grid of one dimension for `n` elements; kernels go round it (first_index, index_step), so
/// that any number of blocks serves.
inline Shape shape_for(std::int64_t n, std::int64_t per_thread = 1) {
  const unsigned block = default_block();
  const std::int64_t each = static_cast<std::int64_t>(block) * per_thread;
  const std::int64_t blocks = std::clamp<std::int64_t>((n + each - 1) / each, 1, 1 << 16);
  Shape shape;
  shape.grid.x = static_cast<unsigned>(blocks);
  shape.block.x = block;
  return shape;
}

/// One block of `threads` for each of `n` rows, as far as a grid goes; kernels go round.
inline Shape rows_shape(std::int64_t n, unsigned threads) {
  Shape shape;
  shape.grid.x = static_cast<unsigned>(std::clamp<std::int64_t>(n, 1, 1 << 16));
  shape.block.x = threads;
  return shape;
}

#if defined(__CUDACC__)

/// Launches `kernel` into the calling kernel's stream. Throws Failure if it cannot be launched.
template <class... Parameters, class... Arguments>
void launch([[maybe_unused]] const char* name, void (*kernel)(Parameters...), const Shape& shape,
            std::size_t shared_bytes, Arguments&&... arguments) {
  kernel<<<shape.grid, shape.block, shared_bytes, static_cast<cudaStream_t>(current_stream())>>>(
      static_cast<Parameters>(arguments)...);
  const cudaError_t result = cudaGetLastError();
  if (result != cudaSuccess) {
    throw Failure(TANDEM_INTERNAL, std::string("a launch of ") + name + " fails with " +
                                       cudaGetErrorName(result) + " (" +
                                       cudaGetErrorString(result) + ")");
  }
}

#else

/// Has a grid run on the host in the calling kernel's stream.
void launch_on_host(const char* name, const Shape& shape, std::size_t shared_bytes,
                    std::function<void()> body);

template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const Shape& shape,
            std::size_t shared_bytes, Arguments&&... arguments) {
  launch_on_host(name, shape, shared_bytes,
                 [kernel, ... values = static_cast<Parameters>(arguments)] { kernel(values...); });
}

#endif

/// `launch` under the kernel's own name.
#define TANDEM_LAUNCH(KERNEL, ...) ::tandem::cuda::launch(#KERNEL, KERNEL, __VA_ARGS__)

}  // namespace tandem::cuda
