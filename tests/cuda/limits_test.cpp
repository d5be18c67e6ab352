// Memory of a device GPU:0 that runs out, by a limit or by what the GPU has: an error that names
// what asked for it, after which work goes on. Needs no more than a GPU, real or stood in for.

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/device.h"
#include "tandem/runtime/runtime.h"
#include <tandem/tandem.h>

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::int64_t kFloatsOfMiB = static_cast<std::int64_t>(kMiB) / 4;

Runtime::Options limited_to(std::vector<std::int64_t> mebibytes) {
  Runtime::Options options;
  for (const std::int64_t each : mebibytes)
    options.devices.logical["GPU:0"].push_back({.memory_limit = each});
  return options;
}

Runtime::Options growing() {
  Runtime::Options options;
  options.devices.memory_growth = {{"GPU:0", true}};
  return options;
}

Device& gpu(const Runtime& runtime, int index = 0) {
  for (const auto& device : runtime.devices()) {
    if (device->type() == "GPU" && device->spec().index == index) return *device;
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

std::vector<float> sums_on_gpu() {
  const DeviceScope on("/GPU:0");
  return (ones({3}) + ones({3})).to_vector<float>();
}
const std::vector<float> kTwos{2, 2, 2};

TEST(LimitsOfGpus, StopAnEagerOpByAnErrorThatNamesIt) {
  Runtime runtime(limited_to({8}));
  const RuntimeScope scope(runtime);
  const DeviceScope on("/GPU:0");
  const Tensor x = ones({kFloatsOfMiB});
  for (int i = 0; i < 2; ++i) {
    const std::string text =
        exhausted([&] { concat(std::vector<Tensor>(16, x), 0).to_vector<float>(); });
    EXPECT_THAT(text, HasSubstr("device:GPU:0"));
    EXPECT_THAT(text, HasSubstr("16 MiB (16777216 bytes) were asked for"));
    EXPECT_THAT(text, HasSubstr("ConcatV2"));
    EXPECT_THAT(text, HasSubstr("of the limit of 8 MiB"));
  }
  EXPECT_EQ(reduce_sum(x).item<float>(), static_cast<float>(kFloatsOfMiB));
}

TEST(LimitsOfGpus, AreThoseOfEachLogicalDevice) {
  Runtime runtime(limited_to({4, 16}));
  EXPECT_THAT(exhausted([&] { gpu(runtime, 0).allocator().allocate(8 * kMiB); }),
              HasSubstr("of the limit of 4 MiB"));
  const Ref<Buffer> in_the_other = gpu(runtime, 1).allocator().allocate(8 * kMiB);
  EXPECT_EQ(gpu(runtime, 1).allocator().stats().current, 8 * kMiB);
  EXPECT_EQ(gpu(runtime, 0).allocator().stats().current, 0u);
}

// The step that finds no memory changes nothing, and smaller ones go on.
TEST(LimitsOfGpus, FailOneStepOfATraining) {
  const auto batch = [](std::int64_t size) {
    const DeviceScope on("/CPU:0");
    const Tensor values = range(Tensor(0.0f), Tensor(static_cast<float>(8 * size)), Tensor(1.0f));
    return reshape(values, {size, 8}) / static_cast<float>(8 * size);
  };
  const auto train = [&](bool with_large_batch) {
    Runtime runtime(limited_to({16}));
    const RuntimeScope scope(runtime);
    const auto weights = [](int seed) { return keras::initializers::GlorotUniform(seed); };
    const keras::Sequential model{
        keras::Input({8}),
        keras::Dense(64, {.activation = "relu", .kernel_initializer = weights(5)}),
        keras::Dense(8, {.kernel_initializer = weights(6)})};
    model.compile({.optimizer = "adam", .loss = "mse"});
    std::vector<double> losses;
    const auto step = [&](std::int64_t size) {
      const Tensor x = batch(size);
      losses.push_back(model.train_on_batch(x, x)["loss"]);
    };
    for (int i = 0; i < 3; ++i) step(16);
    if (with_large_batch) {
      const std::string text = exhausted([&] { step(1 << 17); });
      EXPECT_THAT(text, HasSubstr("device:GPU:0"));
      EXPECT_THAT(text, HasSubstr("were asked for"));
    }
    for (int i = 0; i < 3; ++i) step(16);
    return losses;
  };
  EXPECT_EQ(train(/*with_large_batch=*/true), train(/*with_large_batch=*/false));
}

TEST(MemoryOfTheWholeGpu, ThatIsNotThereIsRefused) {
  Runtime runtime(growing());
  const RuntimeScope scope(runtime);
  const std::size_t bytes = gpu(runtime).properties().memory_bytes;
  ASSERT_GT(bytes, 0u);
  EXPECT_THAT(exhausted([&] { gpu(runtime).allocator().allocate(2 * bytes); }),
              HasSubstr("were asked for"));
  EXPECT_EQ(sums_on_gpu(), kTwos);
}

TEST(MemoryOfTheWholeGpu, CanBeTakenAndReleased) {
  Runtime runtime(growing());
  const RuntimeScope scope(runtime);
  Allocator& memory = gpu(runtime).allocator();
  const std::size_t part = gpu(runtime).properties().memory_bytes / 16;
  std::vector<Ref<Buffer>> parts;
  const std::string text = exhausted([&] {
    for (int i = 0; i < 17; ++i) parts.push_back(memory.allocate(part));
  });
  EXPECT_THAT(text, HasSubstr("were asked for"));
  ASSERT_FALSE(parts.empty());
  // Some of it is enough for an op.
  parts.pop_back();
  EXPECT_EQ(sums_on_gpu(), kTwos);
  const std::size_t held = parts.size() * part;
  EXPECT_GE(memory.stats().current, held);
  parts.clear();
  EXPECT_LT(memory.stats().current, part);
  // In one piece again.
  EXPECT_EQ(memory.allocate(held)->size(), held);
}

}  // namespace
}  // namespace tandem
