// Memory that the driver and NVIDIA's libraries take beside Tandem's blocks, for code, graphs and
// handles: where a GPU has none left, Tandem releases what it keeps for later, and they try once
// more. Stand-ins for the driver and the libraries refuse their calls on request.

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/cuda/internal/driver_api.h"
#include "tandem/device/device.h"
#include "tandem/device/library_report.h"
#include "tandem/runtime/runtime.h"
#include <tandem/tandem.h>

#include "tests/cuda/in_new_process.h"
#include "tests/cuda/stand_in_driver.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

constexpr long long kMiB = 1 << 20;

long long held() { return driver().used().device_bytes; }

Tensor two_by_two(float first) {
  const DeviceScope on("/CPU:0");
  const Tensor value = Tensor::from(Floats{first, 2, 3, 4}, {2, 2});
  const DeviceScope there("/GPU:0");
  return identity(value);
}

// The allocator keeps the memory of a large block that is gone, behind that of a small one. The
// libraries are open, for which they made handles and destroyed them.
Tensor keep_unused_memory() {
  config::set_memory_growth("GPU:0", true);
  Tensor small = two_by_two(1);
  const Runtime& runtime = Runtime::current();
  for (const auto& device : runtime.devices()) {
    if (device->type() == "GPU") device->allocator().allocate(400 * kMiB);
  }
  for (const auto& backend : runtime.backends()) libraries_of(*backend);
  EXPECT_GE(held(), 400 * kMiB);
  return small;
}

struct Call {
  const char* function;  // of the driver or the library
  std::function<Tensor()> work;
  Floats result;
  std::string name;  // what an error says of it
};

Call eager_launch() {
  return {
      "cuLaunchKernel", [] { return exp(two_by_two(0) - two_by_two(0)); }, {1, 1, 1, 1}, "[Op:"};
}

Call handle_of_cublaslt() {
  return {"cublasLtCreate",
          [] { return matmul(two_by_two(1), two_by_two(1)); },
          {7, 10, 15, 22},
          "[Op:MatMul]"};
}

Call handle_of_cudnn() {
  const auto convolve = [] {
    const Tensor x = reshape(two_by_two(1), {1, 2, 2, 1});
    const Tensor w = reshape(two_by_two(1), {2, 2, 1, 1});
    return nn::conv2d(x, w, {1, 1}, "VALID");
  };
  return {"cudnnCreate", convolve, {30}, "[Op:Conv2D]"};
}

void expect_right(const Call& call) {
  const DeviceScope on("/GPU:0");
  const Tensor result = call.work();
  EXPECT_EQ(result.to_vector<float>(), call.result) << call.function;
}

void expect_one_more_attempt(const Call& call) {
  const Tensor small = keep_unused_memory();
  driver().fail_function(call.function, 1, CUDA_ERROR_OUT_OF_MEMORY);
  expect_right(call);
  EXPECT_EQ(driver().function_pending(), 0) << call.function << " was not called";
  EXPECT_LT(held(), 400 * kMiB);
}

void expect_error_that_names_the_op(const Call& call) {
  const Tensor small = keep_unused_memory();
  driver().fail_function(call.function, 2, CUDA_ERROR_OUT_OF_MEMORY);
  try {
    expect_right(call);
    ADD_FAILURE() << "no memory for " << call.function << " is no error";
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(), HasSubstr(call.name));
  }
  EXPECT_EQ(driver().function_pending(), 0) << call.function << " was not called again";
  expect_right(call);
}

// Handles are made once in a process.
class RoomBesideBlocks : public testing::TestWithParam<Call (*)()> {};

TEST_P(RoomBesideBlocks, IsMadeOfUnusedMemory) {
  in_new_process([] { expect_one_more_attempt(GetParam()()); });
}
TEST_P(RoomBesideBlocks, IsAskedForTwice) {
  in_new_process([] { expect_error_that_names_the_op(GetParam()()); });
}

INSTANTIATE_TEST_SUITE_P(Calls, RoomBesideBlocks,
                         testing::Values(eager_launch, handle_of_cublaslt, handle_of_cudnn));

// A segment that can be no graph is launched kernel by kernel, so that it needs no memory for one.
TEST(RoomForGraphs, IsMadeOfUnusedMemory) {
  in_new_process([] {
    const auto twice = function([](Tensor x) { return matmul(x, x) + x; });
    const Tensor x = keep_unused_memory();
    const auto run = [&] {
      const DeviceScope on("/GPU:0");
      EXPECT_THAT(twice(x).to_vector<float>(), ElementsAre(8, 12, 18, 26));
    };
    driver().fail_function("cuGraphInstantiateWithFlags", 1, CUDA_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < 8; ++i) run();
    EXPECT_EQ(driver().function_pending(), 0);
    EXPECT_GT(driver().graph_launches(), 0);
    EXPECT_LT(held(), 400 * kMiB);
  });
}

// The node of the graph, not the function that it is part of.
TEST(RoomForKernels, ErrorsNameTheNode) {
  in_new_process([] {
    const auto step = function([](Tensor x) {
      const NameScope scope("layer");
      return matmul(x, x);
    });
    const Tensor x = keep_unused_memory();
    const DeviceScope on("/GPU:0");
    driver().fail_function("cublasLtCreate", 2, CUDA_ERROR_OUT_OF_MEMORY);
    try {
      step(x).synchronize();
      ADD_FAILURE() << "no memory for a handle is no error";
    } catch (const ResourceExhaustedError& error) {
      EXPECT_THAT(error.what(), HasSubstr("layer/MatMul"));
    }
    EXPECT_THAT(step(x).to_vector<float>(), ElementsAre(7, 10, 15, 22));
  });
}

}  // namespace
}  // namespace tandem
