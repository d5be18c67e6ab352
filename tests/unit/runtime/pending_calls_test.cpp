#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/device.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/runtime/device_config_util.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A copy that never ends keeps all behind it waiting: what is reported then did not wait.
TEST(PendingCalls, ReturnBeforeTheDeviceHasRunThem) {
  Tensor late, later;
  {
    Runtime runtime({.devices = {.emulate = {"GPU:1,fault=stall@1"}}});
    RuntimeScope scope(runtime);
    late = Tensor({1.0f, 2.0f, 3.0f}) * 2.0f;
    later = reduce_sum(reshape(late, {3, 1}), {0});
    EXPECT_FALSE(late.is_ready());
    EXPECT_FALSE(later.is_ready());
    EXPECT_EQ(late.shape(), Shape({3}));
    EXPECT_EQ(later.shape(), Shape({1}));
    EXPECT_THAT(later.device(), HasSubstr("GPU:0"));
    // On the host nothing waits.
    EXPECT_THAT((Tensor({1, 2}) + 1).to_vector<int>(), ElementsAre(2, 3));
  }
  // The runtime went, and did not wait for what cannot end.
  EXPECT_THAT(thrown_by([&] { late.synchronize(); }), HasSubstr("CANCELLED"));
  EXPECT_THAT(thrown_by([&] { later.item<float>(); }), HasSubstr("CANCELLED"));
}

class PendingCallsOn : public testing::TestWithParam<const char*> {};

TEST_P(PendingCallsOn, GiveTheValuesOfCallsInOrder) {
  Runtime runtime({.devices = {.emulate = {GetParam()}}});
  RuntimeScope scope(runtime);
  Tensor x = Tensor::from(std::vector<float>(64, 0.0f), {8, 8});
  for (int i = 0; i < 5000; ++i) x = x + 1.0f;  // more than may be under way at once
  EXPECT_EQ(reduce_max(x).item<float>(), 5000.0f);
  EXPECT_TRUE(x.is_ready());

  Variable v(x, {.name = "v"});
  v.assign_add(x * 2.0f);
  const Tensor before = Tensor(v) + 0.0f;
  v.assign(matmul(x, x));
  EXPECT_EQ(before.at<float>({7, 7}), 15000.0f);
  EXPECT_EQ(Tensor(v).at<float>({7, 7}), 8 * 25e6f);
}

TEST_P(PendingCallsOn, CopyFromDeviceToDeviceInOrder) {
  Runtime runtime({.devices = {.emulate = {GetParam()}}});
  RuntimeScope scope(runtime);
  Tensor x = Tensor({1.0f, 2.0f});
  for (int i = 0; i < 60; ++i) {
    DeviceScope on(i % 3 == 0 ? "/CPU:0" : i % 3 == 1 ? "/GPU:0" : "/GPU:1");
    x = i % 5 == 0 ? identity(x) : x + 1.0f;
  }
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(49.0f, 50.0f));
}

INSTANTIATE_TEST_SUITE_P(Devices, PendingCallsOn,
                         testing::Values("GPU:2,memory=1MiB,latency=0us",
                                         "GPU:2,memory=1MiB,latency=50us,streams=2"));

TEST(PendingCalls, ThrowWhereTheirValueIsLookedAt) {
  Runtime runtime({.devices = {.emulate = {"GPU:2"}}});
  RuntimeScope scope(runtime);
  const Tensor x = identity(Tensor({1.0f, 2.0f, 3.0f}));
  std::optional<Tensor> bad;
  ASSERT_NO_THROW(bad = gather(x, Tensor({1, 7})));
  const Tensor worse = *bad + 1.0f;
  Tensor worst;
  {
    DeviceScope on("/GPU:1");
    worst = worse * 2.0f;
  }
  EXPECT_THAT((x + 1.0f).to_vector<float>(), ElementsAre(2, 3, 4));
  const std::string why = thrown_by([&] { bad->to_vector<float>(); });
  EXPECT_THAT(why, testing::StartsWith("INVALID_ARGUMENT"));
  EXPECT_THAT(why, HasSubstr("[Op:Gather"));
  EXPECT_EQ(thrown_by([&] { bad->to_vector<float>(); }), why) << "each look throws";
  EXPECT_EQ(thrown_by([&] { worse.to_vector<float>(); }), why);
  EXPECT_EQ(thrown_by([&] { worst.to_vector<float>(); }), why);
  EXPECT_THAT(thrown_by([&] { Variable(worst, {}); }), HasSubstr("[Op:Gather"));

  runtime.set_synchronous(true);
  EXPECT_THAT(thrown_by([&] { gather(x, Tensor({1, 7})); }), HasSubstr("[Op:Gather"));
  EXPECT_TRUE((x + 1.0f).is_ready());
}

// What is forwarded is reported while the call that makes it fails.
TEST(PendingCalls, FailForThoseThatHandTheirValueOn) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,latency=0us"}}});
  RuntimeScope scope(runtime);
  const Tensor x = identity(Tensor({1.0f, 2.0f, 3.0f}));
  for (int i = 0; i < 300; ++i) {
    const Tensor bad = gather(x, Tensor({1, 7}));
    const Tensor on = reshape(identity(bad), {2, 1});
    EXPECT_THAT(thrown_by([&] { on.synchronize(); }), HasSubstr("[Op:Gather"));
  }
}

TEST(PendingCalls, ThatHoldMemoryAreWaitedForBeforeItRunsOut) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,memory=1MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  Tensor x = fill({1 << 16}, 1.0f);  // 256 KiB
  for (int i = 0; i < 200; ++i) x = sqrt(x * 4.0f) - 1.0f;
  EXPECT_EQ(x.at<float>({12345}), 1.0f);
  EXPECT_THROW(fill({1 << 19}, 1.0f).synchronize(), ResourceExhaustedError);
}

// What one thread waited for, another may take.
TEST(PendingCalls, OfSeveralThreadsDoNotTakeEachOthersRoom) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,memory=1MiB,latency=100us"}}});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&runtime] {
      RuntimeScope scope(runtime);
      EXPECT_NO_THROW({
        Tensor x = fill({1 << 13}, 1.0f);  // 32 KiB
        for (int i = 0; i < 200; ++i) x = sqrt(x * 4.0f) - 1.0f;
        EXPECT_EQ(x.at<float>({123}), 1.0f);
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PendingCalls, MakeRoomForFunctions) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,memory=1MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  const Tensor x = fill({250, 256}, 1.0f);  // almost 256 KiB
  auto f = function([](Tensor a) {
    const Tensor b = matmul(a, a, {.transpose_b = true});
    return reduce_sum(matmul(b, b) * b);
  });
  const float sum = f(x).item<float>();
  for (int i = 0; i < 10; ++i) {
    for (int k = 0; k < 4; ++k) matmul(x, x, {.transpose_b = true});  // free once they have run
    EXPECT_EQ(f(x).item<float>(), sum);
  }
}

TEST(PendingCalls, AreRunBeforeTheirRuntimeGoes) {
  Tensor late;
  {
    Runtime runtime({.devices = {.emulate = {"GPU:1,latency=1ms"}}});
    RuntimeScope scope(runtime);
    late = Tensor({1.0f, 2.0f});
    for (int i = 0; i < 50; ++i) late = late + Tensor({1.0f, 1.0f});  // a copy each
  }
  EXPECT_THAT(late.to_vector<float>(), ElementsAre(51.0f, 52.0f));
}

TEST(PendingCalls, FailWithTheirDevice) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,fault=lost@4", "GPU:1"}}});
  RuntimeScope scope(runtime);
  Tensor x = Tensor({1.0f});
  std::string why;
  for (int i = 0; i < 8; ++i) {
    DeviceScope on("/GPU:0");
    why = thrown_by([&] { x = x + 1.0f; });
    if (why != "nothing was thrown") break;
  }
  if (why == "nothing was thrown") why = thrown_by([&] { x.synchronize(); });
  EXPECT_THAT(why, testing::StartsWith("UNAVAILABLE"));
  EXPECT_THAT(why, HasSubstr("GPU:0"));
  EXPECT_EQ((Tensor({1.0f}) + 1.0f).item<float>(), 2.0f);
}

}  // namespace
}  // namespace tandem
