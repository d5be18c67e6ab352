// Another process takes memory of the GPU while this one uses it, on the stand-in for the driver:
// what this one holds and does not use serves before anything fails; what fails says why, and what
// would help; and it goes on once the other process has ended.

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/device.h"
#include <tandem/tandem.h>

#include "tests/cuda/stand_in_driver.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr long long kMiB = 1 << 20;
constexpr std::int64_t kFloatsOfMiB = kMiB / 4;

class NeighboursOfGpus : public testing::Test {
 protected:
  void TearDown() override { driver().leave_free(-1); }
};

Runtime::Options options(bool growth) {
  Runtime::Options options;
  options.devices.memory_growth = {{"GPU:0", growth}};
  return options;
}

Allocator& gpu_memory(Runtime& runtime) {
  for (const auto& device : runtime.devices()) {
    if (device->type() == "GPU") return device->allocator();
  }
  throw NotFoundError("there is no GPU");
}

// What a call fails with; empty if it does not.
template <class Call>
std::string exhausted(Call call) {
  try {
    call();
  } catch (const ResourceExhaustedError& error) {
    return error.what();
  }
  return {};
}

TEST_F(NeighboursOfGpus, LeaveWhatThisProcessKeepsForItsNextCalls) {
  Runtime runtime(options(/*growth=*/true));
  const RuntimeScope scope(runtime);
  const DeviceScope on("/GPU:0");
  const Tensor x = ones({kFloatsOfMiB});
  const auto total = [](const Tensor& a) { return a.item<float>(); };
  const auto first = function([](const Tensor& a) { return reduce_sum(concat({a, a, a, a}, 0)); });
  const auto second = function([](const Tensor& a) { return reduce_max(concat({a, a, a, a}, 0)); });
  EXPECT_EQ(total(first(x)), 4 * kFloatsOfMiB);
  // The first function keeps memory for its next call.
  ASSERT_GE(gpu_memory(runtime).stats().current, static_cast<std::size_t>(5 * kMiB));

  driver().leave_free(0);
  const long long held = driver().used().device_bytes;
  ASSERT_LT(held, 9 * kMiB) << "too much to need what the first function keeps";
  EXPECT_EQ(total(second(x)), 1);
  EXPECT_EQ(total(first(x)), 4 * kFloatsOfMiB);
  EXPECT_EQ(driver().used().device_bytes, held);
}

TEST_F(NeighboursOfGpus, AreNamedByTheErrorOfAnEagerCall) {
  Runtime runtime(options(/*growth=*/true));
  const RuntimeScope scope(runtime);
  const DeviceScope on("/GPU:0");
  const Tensor x = ones({kFloatsOfMiB});
  EXPECT_EQ(x.to_vector<float>().front(), 1);
  const auto twice = [&] { return concat({x, x, x, x}, 0).to_vector<float>(); };

  driver().leave_free(0);
  for (int i = 0; i < 2; ++i) {
    const std::string text = exhausted(twice);
    EXPECT_THAT(text, HasSubstr("Out of memory on /job:localhost/replica:0/task:0/device:GPU:0"));
    EXPECT_THAT(text, HasSubstr("4 MiB (4194304 bytes) were asked for"));
    EXPECT_THAT(text, HasSubstr("ConcatV2"));
    EXPECT_THAT(text, HasSubstr("The hardware has no more: cuMemCreate fails with "
                                "CUDA_ERROR_OUT_OF_MEMORY"));
    EXPECT_THAT(text, HasSubstr("of the GPU's 1024 MiB 0 MiB are free"));
    EXPECT_THAT(text, HasSubstr("other processes that use the same hardware ended"));
  }
  driver().leave_free(-1);
  EXPECT_EQ(twice(), std::vector<float>(4 * kFloatsOfMiB, 1));
}

TEST_F(NeighboursOfGpus, AreNotNamedWhereALimitIsInTheWay) {
  Runtime::Options limited;
  limited.devices.logical = {{"GPU:0", {{.memory_limit = 3}}}};
  Runtime runtime(limited);
  const RuntimeScope scope(runtime);
  const std::string text = exhausted([&] { gpu_memory(runtime).allocate(4 * kMiB); });
  EXPECT_THAT(text, HasSubstr("of the limit of 3 MiB"));
  EXPECT_THAT(text, testing::Not(HasSubstr("other processes")));
}

// The step that finds no memory changes nothing, and smaller ones go on.
TEST_F(NeighboursOfGpus, FailOneStepOfATraining) {
  const auto batch = [](std::int64_t size) {
    const DeviceScope on("/CPU:0");
    return reshape(range(Tensor(0.0f), Tensor(static_cast<float>(8 * size)), Tensor(1.0f)),
                   {size, 8}) /
           static_cast<float>(8 * size);
  };
  const auto train = [&](bool with_neighbour) {
    Runtime runtime(options(/*growth=*/true));
    const RuntimeScope scope(runtime);
    keras::Sequential model{
        keras::Input({8}),
        keras::Dense(
            4, {.activation = "relu", .kernel_initializer = keras::initializers::GlorotUniform(5)}),
        keras::Dense(8, {.kernel_initializer = keras::initializers::GlorotUniform(6)})};
    model.compile({.optimizer = "adam", .loss = "mse"});
    std::vector<double> losses;
    const auto step = [&](std::int64_t size) {
      const Tensor x = batch(size);
      losses.push_back(model.train_on_batch(x, x)["loss"]);
    };
    for (int i = 0; i < 3; ++i) step(16);
    if (with_neighbour) {
      driver().leave_free(0);
      const std::string text = exhausted([&] { step(1 << 17); });
      EXPECT_THAT(text, HasSubstr("device:GPU:0"));
      EXPECT_THAT(text, HasSubstr("were asked for"));
      EXPECT_THAT(text, HasSubstr("other processes"));
    }
    for (int i = 0; i < 3; ++i) step(16);
    driver().leave_free(-1);
    step(16);
    return losses;
  };
  EXPECT_EQ(train(/*with_neighbour=*/true), train(/*with_neighbour=*/false));
}

TEST_F(NeighboursOfGpus, LeaveTheRestToAProcessThatTakesAllAtOnce) {
  driver().leave_free(300 * kMiB);
  Runtime runtime(options(/*growth=*/false));
  const RuntimeScope scope(runtime);
  const DeviceScope on("/GPU:0");
  EXPECT_EQ(add(ones({3}), ones({3})).to_vector<float>(), (std::vector<float>{2, 2, 2}));
  EXPECT_GE(gpu_memory(runtime).stats().reserved, static_cast<std::size_t>(250 * kMiB));
  EXPECT_LE(driver().used().device_bytes, 300 * kMiB);
  const std::string text = exhausted([&] { gpu_memory(runtime).allocate(400 * kMiB); });
  EXPECT_THAT(text, HasSubstr("400 MiB (419430400 bytes) were asked for"));
  EXPECT_THAT(text, HasSubstr("other processes"));
}

}  // namespace
}  // namespace tandem
