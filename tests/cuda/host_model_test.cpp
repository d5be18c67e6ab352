// The execution model of blocks and threads on the host: that it computes what a GPU would, and
// that it finds the mistakes that a GPU hides.

#include "tandem/kernels/cuda/support/host_model.h"

#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/kernels/cuda/support/device_code.h"
#include "tandem/kernels/cuda/support/warp.h"

namespace tandem::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

template <class Body>
void run(unsigned blocks, unsigned threads, Body body) {
  host::run_grid("test_kernel", {blocks, 1, 1}, {threads, 1, 1}, 0, body);
}

template <class Body>
std::string fault(unsigned threads, Body body) {
  try {
    run(2, threads, body);
  } catch (const host::KernelFault& error) {
    return error.what();
  }
  return "no fault";
}

TEST(HostModel, EveryThreadOfEveryBlockRunsOnce) {
  std::vector<int> runs(5 * 96);
  run(5, 96, [&] { ++runs[first_index<std::size_t>()]; });
  EXPECT_EQ(runs, std::vector<int>(5 * 96, 1));
}

TEST(HostModel, CoordinatesOfThreeDimensions) {
  int sum = 0;
  host::run_grid("test_kernel", {2, 3, 4}, {4, 2, 2}, 0, [&] {
    EXPECT_EQ(blockDim.y, 2u);
    EXPECT_EQ(gridDim.z, 4u);
    sum += static_cast<int>(threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z);
  });
  EXPECT_EQ(sum, 2 * 3 * 4 * (4 * (0 + 1 + 2 + 3) + 8 * 10 + 8 * 100));
}

TEST(HostModel, ABarrierShowsWhatOthersWrote) {
  std::vector<int> reversed(256);
  run(1, 256, [&] {
    TANDEM_SHARED(int, values, 256);
    values[threadIdx.x] = static_cast<int>(threadIdx.x);
    __syncthreads();
    reversed[threadIdx.x] = values[255 - threadIdx.x];
  });
  for (int i = 0; i < 256; ++i) EXPECT_EQ(reversed[static_cast<std::size_t>(i)], 255 - i);
}

TEST(HostModel, LanesOfAWarpExchange) {
  std::vector<int> down(64), swapped(64);
  std::vector<unsigned> votes(64);
  run(1, 64, [&] {
    const int me = static_cast<int>(threadIdx.x);
    down[threadIdx.x] = warp_shuffle_down(me, 16);
    swapped[threadIdx.x] = warp_shuffle_xor(me, 1);
    votes[threadIdx.x] = warp_ballot(me % 2 == 1);
  });
  EXPECT_EQ(down[0], 16);
  EXPECT_EQ(down[40], 56);
  EXPECT_EQ(down[20], 20);  // beyond the warp: the lane's own
  EXPECT_EQ(swapped[33], 32);
  EXPECT_EQ(votes[5], 0xaaaaaaaau);
}

TEST(HostModel, BlocksReduce) {
  for (const unsigned threads : {32u, 64u, 256u, 1024u}) {
    std::vector<double> sums(3);
    run(3, threads, [&] {
      const double sum = block_reduce_all(static_cast<double>(threadIdx.x), 0.0,
                                          [](double a, double b) { return a + b; });
      if (threadIdx.x == threads - 1) sums[blockIdx.x] = sum;
    });
    EXPECT_EQ(sums, std::vector<double>(3, threads * (threads - 1) / 2.0));
  }
}

TEST(HostModel, ABarrierThatSomeThreadsMissIsAFault) {
  EXPECT_THAT(fault(64,
                    [] {
                      if (threadIdx.x < 40) __syncthreads();
                    }),
              AllOf(HasSubstr("reached by 40 of 64 threads only"), HasSubstr("test_kernel"),
                    HasSubstr("block (0, 0, 0), thread (0, 0, 0)")));
}

TEST(HostModel, AShuffleThatSomeLanesMissIsAFault) {
  EXPECT_THAT(fault(32,
                    [] {
                      if (threadIdx.x != 7) warp_shuffle_down(1, 1);
                    }),
              HasSubstr("reached by some lanes of its mask only"));
}

TEST(HostModel, ReadingWhatAnotherThreadWritesIsARace) {
  EXPECT_THAT(fault(64,
                    [] {
                      TANDEM_SHARED(int, values, 64);
                      values[threadIdx.x] = 1;
                      (void)static_cast<int>(values[63 - threadIdx.x]);
                    }),
              AllOf(HasSubstr("Shared memory values["), HasSubstr("without a barrier between"),
                    HasSubstr("test_kernel")));
}

TEST(HostModel, TwoThreadsThatWriteOnePlaceAreARace) {
  EXPECT_THAT(fault(64,
                    [] {
                      TANDEM_SHARED(int, flag, 1);
                      if (threadIdx.x == 3 || threadIdx.x == 40) flag[0] = 1;
                    }),
              HasSubstr("Shared memory flag[0] is written by"));
}

TEST(HostModel, AnIndexBeyondSharedMemoryIsAFault) {
  EXPECT_THAT(fault(32,
                    [] {
                      TANDEM_SHARED(int, values, 16);
                      values[threadIdx.x] = 1;
                    }),
              HasSubstr("Index 16 of shared memory values, which has 16 elements"));
}

TEST(HostModel, LaunchesThatNoGpuTakesAreFaults) {
  EXPECT_THROW(run(1, 2048, [] {}), host::KernelFault);
  EXPECT_THROW(host::run_grid("test_kernel", {1, 70000, 1}, {32, 1, 1}, 0, [] {}),
               host::KernelFault);
}

TEST(HostModel, AfterAFaultTheNextGridRuns) {
  EXPECT_THAT(fault(64,
                    [] {
                      if (threadIdx.x == 0) __syncthreads();
                    }),
              HasSubstr("1 of 64"));
  int count = 0;
  run(1, 64, [&] { ++count; });
  EXPECT_EQ(count, 64);
}

}  // namespace
}  // namespace tandem::cuda
