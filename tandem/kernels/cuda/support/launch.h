#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "tandem/device/cuda/internal/failure.h"
#include "tandem/device/cuda/internal/host_function.h"
#include "tandem/device/cuda/internal/memory_use.h"
#include "tandem/device/cuda/internal/room.h"
#include "tandem/kernels/cuda/support/device_code.h"

#if !defined(__CUDACC__)
#include <functional>
#endif

struct CUfunc_st;  // the driver's

namespace tandem::cuda {

/// Blocks and threads of a launch.
struct Shape {
  dim3 grid;
  dim3 block;
};

/// Threads of a block for work that needs no shared memory; TANDEM_TEST_CUDA_BLOCK overrides it, in
/// tests.
unsigned default_block();

/// A grid of one dimension for `n` elements. Kernels loop with the grid's stride (first_index,
/// index_step), so any number of blocks will do.
inline Shape shape_for(std::int64_t n, std::int64_t per_thread = 1) {
  const unsigned block = default_block();
  const std::int64_t each = static_cast<std::int64_t>(block) * per_thread;
  const std::int64_t blocks = std::clamp<std::int64_t>((n + each - 1) / each, 1, 1 << 16);
  Shape shape;
  shape.grid.x = static_cast<unsigned>(blocks);
  shape.block.x = block;
  return shape;
}

/// One block of `threads` threads for each of `n` rows, up to 65,536: kernels loop over the rest.
inline Shape rows_shape(std::int64_t n, unsigned threads) {
  Shape shape;
  shape.grid.x = static_cast<unsigned>(std::clamp<std::int64_t>(n, 1, 1 << 16));
  shape.block.x = threads;
  return shape;
}

/// What the driver launches for a kernel.
using Function = ::CUfunc_st*;

/// The function of a kernel on the calling thread's GPU, once it has been found; null before.
Function known_function(const void* kernel);
Function remember_function(const void* kernel, Function function);
/// With a function that lives as long as the process.
Function remember_function(const void* kernel, const HostFunction& function);
/// Has a function run in the calling kernel's stream.
void add_launch(const char* name, Function function, const Shape& shape, std::size_t shared_bytes,
                const void* const* parameters, const std::size_t* sizes, std::size_t count);

/// The last launch in the calling kernel's stream, while nothing follows it and it is not issued: a
/// kernel that does more of the same can add its work to it.
class LastLaunch {
 public:
  LastLaunch();
  /// False if there is none.
  explicit operator bool() const { return function_ != nullptr; }
  bool is(Function function) const { return function_ == function; }
  void* parameter(std::size_t i) const;
  unsigned blocks() const;  ///< of a grid of one dimension
  void set_blocks(unsigned blocks) const;
  void remove() const;
  /// All that it reads and writes, if that is known.
  std::span<const MemoryUse> uses() const;
  void add_uses(std::span<const MemoryUse> uses) const;

 private:
  Function function_ = nullptr;
};

#if defined(__CUDACC__)

template <class... Parameters>
Function function_of(const char* name, void (*kernel)(Parameters...)) {
  const void* const symbol = reinterpret_cast<const void*>(kernel);
  if (Function known = known_function(symbol)) return known;
  cudaFunction_t found = nullptr;
  with_room([&] {
    const cudaError_t result = cudaGetFuncBySymbol(&found, symbol);
    if (result == cudaSuccess) return;
    throw Failure(result == cudaErrorMemoryAllocation ? TANDEM_RESOURCE_EXHAUSTED : TANDEM_INTERNAL,
                  std::string(name) + " cannot be loaded: " + cudaGetErrorName(result) + " (" +
                      cudaGetErrorString(result) + ")");
  });
  return remember_function(symbol, found);
}

#else

/// Runs a grid on the calling thread; reports faults of the kernel.
TANDEM_HOST_MODEL void run_on_host(const HostFunction& function, const unsigned* grid,
                                   const unsigned* block, unsigned shared_bytes,
                                   const std::function<void()>& body);

template <class... Parameters>
struct HostKernel {
  static constexpr std::size_t kSizes[] = {sizeof(Parameters)...};

  static void run(const HostFunction& function, const unsigned* grid, const unsigned* block,
                  unsigned shared_bytes, void** parameters) {
    run(function, grid, block, shared_bytes, parameters, std::index_sequence_for<Parameters...>());
  }
  template <std::size_t... kAt>
  static void run(const HostFunction& function, const unsigned* grid, const unsigned* block,
                  unsigned shared_bytes, void** parameters, std::index_sequence<kAt...>) {
    const auto kernel = reinterpret_cast<void (*)(Parameters...)>(function.kernel);
    run_on_host(function, grid, block, shared_bytes,
                [&] { kernel(*static_cast<Parameters*>(parameters[kAt])...); });
  }
};

template <class... Parameters>
HostFunction host_function(const char* name, void (*kernel)(Parameters...)) {
  using Kernel = HostKernel<Parameters...>;
  return {.name = name,
          .parameter_sizes = Kernel::kSizes,
          .num_parameters = sizeof...(Parameters),
          .kernel = reinterpret_cast<void (*)()>(kernel),
          .run = Kernel::run};
}

template <class... Parameters>
Function function_of(const char* name, void (*kernel)(Parameters...)) {
  const void* const symbol = reinterpret_cast<const void*>(kernel);
  if (Function known = known_function(symbol)) return known;
  return remember_function(symbol, host_function(name, kernel));
}

#endif

// A parameter with its padding cleared, so that equal parameters have equal bytes.
template <class T>
struct KernelParameter {
  explicit KernelParameter(T given) : value(given) {
    static_assert(std::is_trivially_copyable_v<T>, "GPUs get parameters as bytes");
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&value);
#endif
#endif
  }
  T value;
};

/// Launches `kernel` into the calling kernel's stream. Throws Failure if it cannot be launched.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const Shape& shape,
            std::size_t shared_bytes, Arguments&&... arguments) {
  const Function function = function_of(name, kernel);
  const auto add = [&](const KernelParameter<Parameters>&... values) {
    const void* const pointers[] = {&values.value...};
    constexpr std::size_t kSizes[] = {sizeof(Parameters)...};
    add_launch(name, function, shape, shared_bytes, pointers, kSizes, sizeof...(Parameters));
  };
  add(KernelParameter<Parameters>(static_cast<Parameters>(arguments))...);
}

/// `launch` under the kernel's own name.
#define TANDEM_LAUNCH(KERNEL, ...) ::tandem::cuda::launch(#KERNEL, KERNEL, __VA_ARGS__)

}  // namespace tandem::cuda
