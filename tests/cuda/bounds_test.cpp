// Kernels and copies that reach beyond what Tandem's allocator has handed out to them, on the host:
// AddressSanitizer ends the process, and the report names kernel, block and thread, or the copy.
// This program is compiled with AddressSanitizer in every build; the kernels here are wrong on
// purpose.

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sanitizer/asan_interface.h>

#include "tandem/device/block_allocator.h"
#include "tandem/device/cuda/internal/driver_api.h"
#include "tandem/device/cuda/internal/host_function.h"
#include "tandem/device/plugin/internal/guarded_memory.h"
#include "tandem/kernels/cuda/support/device_code.h"

// What a plugin exports whose memory is the host's (guarded_memory.h); here the program is it.
extern "C" __attribute__((visibility("default"))) void tandem_plugin_memory_is_host();
void tandem_plugin_memory_is_host() {}

namespace tandem::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Memory of the stand-in's first GPU.
class StandInMemory final : public RegionSource {
 public:
  std::optional<MemoryRegion> grow(std::size_t, std::size_t wanted) override {
    CUdeviceptr address = 0;
    if (cuMemAlloc(&address, wanted) != CUDA_SUCCESS) return std::nullopt;
    return MemoryRegion{.begin = reinterpret_cast<std::byte*>(address), .bytes = wanted};
  }
  void release(const MemoryRegion& region) noexcept override {
    cuMemFree(reinterpret_cast<CUdeviceptr>(region.begin));
  }
};

TANDEM_KERNEL copy_floats(const float* from, float* to, int n) {
  for (int i = first_index<int>(); i < n; i += index_step<int>()) to[i] = from[i];
}
// As if n was the last index.
TANDEM_KERNEL copy_one_more(const float* from, float* to, int n) {
  for (int i = first_index<int>(); i <= n; i += index_step<int>()) to[i < n ? i : 0] = from[i];
}
TANDEM_KERNEL copy_one_before(const float* from, float* to, int n) {
  for (int i = first_index<int>(); i < n; i += index_step<int>()) to[i] = from[i - 1];
}
TANDEM_KERNEL write_one_more(const float* from, float* to, int n) {
  for (int i = first_index<int>(); i <= n; i += index_step<int>()) to[i] = from[i < n ? i : 0];
}

using Kernel = void (*)(const float*, float*, int);

void run_kernel(const HostFunction& function, const unsigned* grid, const unsigned* block,
                unsigned shared_bytes, void** parameters) {
  host::run_grid(function.name, {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]},
                 shared_bytes, [&] {
                   reinterpret_cast<Kernel>(function.kernel)(
                       *static_cast<const float**>(parameters[0]),
                       *static_cast<float**>(parameters[1]), *static_cast<int*>(parameters[2]));
                 });
}

HostFunction function_of(const char* name, Kernel kernel) {
  static constexpr std::size_t kSizes[] = {sizeof(float*), sizeof(float*), sizeof(int)};
  return {.name = name,
          .parameter_sizes = kSizes,
          .num_parameters = 3,
          .kernel = reinterpret_cast<void (*)()>(kernel),
          .run = run_kernel};
}

// A stream of the stand-in's first GPU, whose context is the thread's.
class GpuStream {
 public:
  GpuStream() {
    CUcontext context = nullptr;
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    cuStreamCreate(&stream_, 0);
  }
  ~GpuStream() { cuStreamDestroy(stream_); }
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;
  CUstream get() const { return stream_; }

 private:
  CUstream stream_ = nullptr;
};

class Bounds : public testing::Test {
 protected:
  Bounds() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  static BlockAllocator allocator(std::size_t limit) {
    return {guarded(std::make_shared<StandInMemory>(), PluginLibrary{}, 0, Guards::kBetweenBlocks),
            BlockAllocatorOptions{.device = "GPU:0", .limit = limit}};
  }

  // Two blocks of 32 threads on `n` floats.
  void launch(const char* name, Kernel kernel, const Buffer& from, const Buffer& to, int n = 40) {
    functions_.push_back(function_of(name, kernel));
    const void* in = from.data();
    void* out = to.data();
    void* parameters[] = {&in, &out, &n};
    cuLaunchKernel(reinterpret_cast<CUfunction>(&functions_.back()), 2, 1, 1, 32, 1, 1, 0, stream_,
                   parameters, nullptr);
    cuStreamSynchronize(stream_);
  }

  // That of the process that `body` ends.
  static testing::Matcher<const std::string&> reports(const std::string& what) {
    return AllOf(HasSubstr("AddressSanitizer: use-after-poison"), HasSubstr(what));
  }

  const GpuStream gpu_;
  const CUstream stream_ = gpu_.get();
  std::deque<HostFunction> functions_;  // of launches, which name them
  BlockAllocator memory_ = allocator(std::size_t{1} << 20);
  // 256 bytes and a multiple of that leave nothing behind themselves but guards.
  const Ref<Buffer> from_ = memory_.allocate(40 * sizeof(float)), to_ = memory_.allocate(1024);
};

TEST_F(Bounds, KernelsThatKeepToThemRun) {
  auto* const from = static_cast<float*>(from_->data());
  for (int i = 0; i < 40; ++i) from[i] = static_cast<float>(i);
  launch("copy_floats", copy_floats, *from_, *to_);
  EXPECT_EQ(static_cast<const float*>(to_->data())[39], 39);
}

TEST_F(Bounds, AReadBehindABlockNamesTheThread) {
  EXPECT_EXIT(launch("copy_one_more", copy_one_more, *from_, *to_), testing::ExitedWithCode(1),
              reports("kernel copy_one_more, block (1, 0, 0), thread (8, 0, 0)"));
}

TEST_F(Bounds, AReadBeforeABlockNamesTheThread) {
  EXPECT_EXIT(launch("copy_one_before", copy_one_before, *to_, *from_), testing::ExitedWithCode(1),
              reports("kernel copy_one_before, block (0, 0, 0), thread (0, 0, 0)"));
}

TEST_F(Bounds, AWriteBehindABlockThatRoundingLeavesNothingBehindNamesTheThread) {
  EXPECT_EXIT(launch("write_one_more", write_one_more, *to_, *memory_.allocate(256), 64),
              testing::ExitedWithCode(1),
              reports("kernel write_one_more, block (0, 0, 0), thread (0, 0, 0)"));
}

TEST_F(Bounds, AGraphThatIsLaunchedWhenItsMemoryIsFreeIsReported) {
  CUgraph graph = nullptr;
  CUgraphExec made = nullptr;
  Ref<Buffer> short_lived = memory_.allocate(1024);
  cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  launch("copy_floats", copy_floats, *short_lived, *to_);
  cuStreamEndCapture(stream_, &graph);
  cuGraphInstantiateWithFlags(&made, graph, 0);
  const auto replay = [&] {
    cuGraphLaunch(made, stream_);
    cuStreamSynchronize(stream_);
  };
  replay();
  short_lived = {};
  EXPECT_EXIT(replay(), testing::ExitedWithCode(1), reports("kernel copy_floats, block (0, 0, 0)"));
  cuGraphExecDestroy(made);
  cuGraphDestroy(graph);
}

TEST_F(Bounds, CopiesAreNamed) {
  std::vector<float> host(100);
  EXPECT_EXIT(
      {
        cuMemcpyDtoHAsync(host.data(), reinterpret_cast<CUdeviceptr>(from_->data()), 164, stream_);
        cuStreamSynchronize(stream_);
      },
      testing::ExitedWithCode(1),
      reports("A copy to the host of 164 bytes reads beyond its memory: at offset 160."));
  EXPECT_EXIT(
      {
        cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(from_->data()), 0, 161, stream_);
        cuStreamSynchronize(stream_);
      },
      testing::ExitedWithCode(1),
      reports("A memset on the GPU of 161 bytes writes beyond its memory: at offset 160."));
}

// Guards take nothing of what counts, and what was a guard may become part of a block.
TEST_F(Bounds, LimitsAreWhatTheyAreWithout) {
  constexpr std::size_t kLimit = std::size_t{64} << 10;
  BlockAllocator memory = allocator(kLimit);
  for (int round = 0; round < 2; ++round) {
    std::vector<Ref<Buffer>> blocks;
    for (int i = 0; i < 16; ++i) blocks.push_back(memory.allocate(4096));
    EXPECT_THROW(memory.allocate(1), NoRoomError);
    EXPECT_EQ(memory.stats().reserved, kLimit);
    for (const Ref<Buffer>& block : blocks) {
      EXPECT_FALSE(__asan_region_is_poisoned(block->data(), 4096));
      EXPECT_TRUE(__asan_address_is_poisoned(static_cast<std::byte*>(block->data()) + 4096));
    }
  }
  const Ref<Buffer> all = memory.allocate(kLimit);
  EXPECT_FALSE(__asan_region_is_poisoned(all->data(), kLimit));
}

// Other memory of the process may come to lie at a region's addresses.
TEST_F(Bounds, MemoryGoesBackAsItCame) {
  CUdeviceptr address = 0;
  {
    BlockAllocator memory = allocator(std::size_t{64} << 10);
    address = reinterpret_cast<CUdeviceptr>(memory.allocate(100)->data());
    EXPECT_TRUE(__asan_address_is_poisoned(reinterpret_cast<void*>(address)));
  }
  CUdeviceptr again = 0;
  ASSERT_EQ(cuMemAlloc(&again, 72 << 10), CUDA_SUCCESS);
  EXPECT_FALSE(__asan_region_is_poisoned(reinterpret_cast<void*>(again), 72 << 10));
  cuMemFree(again);
}

}  // namespace
}  // namespace tandem::cuda
