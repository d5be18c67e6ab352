#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/device/device.h"
#include "tandem/device/emulated/emulated_device.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/explain.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

// A small network with its weights on GPU:0, trained by a traced step.
struct Network {
  Network() {
    DeviceScope on("/GPU:0");
    w1 = Variable(fill({4, 8}, 0.1f), {.name = "w1"});
    w2 = Variable(fill({8, 2}, -0.2f), {.name = "w2"});
  }
  Tensor train(const Tensor& x, const Tensor& y) {
    const auto step_of = [this](Tensor a, Tensor b) {
      GradientTape tape;
      const Tensor loss = reduce_mean(square(matmul(nn::relu(matmul(a, w1)), w2) - b));
      const auto grads = tape.gradient(loss, std::vector<Variable>{w1, w2});
      w1.assign_sub(grads[0] * 0.1f);
      w2.assign_sub(grads[1] * 0.1f);
      return loss;
    };
    if (!step) step.emplace(std::function<Tensor(Tensor, Tensor)>(step_of), FunctionOptions{});
    return (*step)(x, y);
  }
  Variable w1, w2;
  std::optional<TracedFunction<std::function<Tensor(Tensor, Tensor)>>> step;
};

struct Trained {
  std::vector<float> losses, w1, w2;
  bool operator==(const Trained&) const = default;
};

Trained train(Network& net, const Tensor& x, const Tensor& y, int steps) {
  Trained t;
  for (int i = 0; i < steps; ++i) t.losses.push_back(net.train(x, y).item<float>());
  t.w1 = Tensor(net.w1).to_vector<float>();
  t.w2 = Tensor(net.w2).to_vector<float>();
  return t;
}

std::vector<float> some_inputs() {
  std::vector<float> values;
  for (int i = 0; i < 12; ++i) values.push_back(0.1f * static_cast<float>(i));
  return values;
}

Trained undisturbed() {
  Runtime runtime({.devices = {.emulate = {"GPU:1,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  Network net;
  return train(net, Tensor::from(some_inputs(), {3, 4}),
               Tensor::from(std::vector<float>(6, 1.0f), {3, 2}), 4);
}

// Each allocation of a training step fails once: nothing leaks, nothing crashes, and what follows
// gives the right numbers.
TEST(DeviceFaults, AnyAllocationMayFail) {
  const Trained expected = undisturbed();
  int failures = 0;
  for (int n = 1;; ++n) {
    ASSERT_LT(n, 2000);
    Runtime runtime(
        {.devices = {.emulate = {"GPU:1,memory=8MiB,latency=0us,fault=oom@" + std::to_string(n)}}});
    RuntimeScope scope(runtime);
    Device& gpu = *runtime.devices()[1];
    bool failed = false;
    {
      std::optional<Network> net;
      const Tensor x = Tensor::from(some_inputs(), {3, 4});
      const Tensor y = Tensor::from(std::vector<float>(6, 1.0f), {3, 2});
      Trained t;
      for (int i = 0; i < 4; ++i) {
        // A step that failed has changed nothing or is repeated from the start.
        try {
          if (!net) net.emplace();
          t.losses.push_back(net->train(x, y).item<float>());
        } catch (const ResourceExhaustedError& e) {
          failed = true;
          EXPECT_NE(std::string(e.what()).find("GPU:0"), std::string::npos) << e.what();
          net.reset();
          t = {};
          i = -1;
        }
      }
      t.w1 = Tensor(net->w1).to_vector<float>();
      t.w2 = Tensor(net->w2).to_vector<float>();
      EXPECT_TRUE(t == expected) << "after a failure at allocation " << n;
    }
    EXPECT_EQ(gpu.allocator().stats().current, 0u) << "after a failure at allocation " << n;
    if (!failed) break;
    ++failures;
  }
  EXPECT_GT(failures, 10);
}

// The device is lost at each of its works in turn: the step fails and says so, the CPU goes on, and
// training resumes there.
TEST(DeviceFaults, ALostDeviceFailsTheStepAndNothingElse) {
  bool ever_lost = false;
  for (int n = 1; n < 400; n += 3) {
    Runtime runtime(
        {.devices = {.emulate = {"GPU:1,memory=8MiB,latency=0us,fault=lost@" + std::to_string(n),
                                 "GPU:1"}}});
    RuntimeScope scope(runtime);
    const Tensor x = Tensor::from(some_inputs(), {3, 4});
    const Tensor y = Tensor::from(std::vector<float>(6, 1.0f), {3, 2});
    bool lost = false;
    try {
      Network net;
      for (int i = 0; i < 4; ++i) net.train(x, y).item<float>();
    } catch (const UnavailableError& e) {
      lost = true;
      EXPECT_NE(std::string(e.what()).find("GPU:0"), std::string::npos) << e.what();
    }
    if (!lost) break;
    ever_lost = true;
    {
      DeviceScope on("/CPU:0");
      EXPECT_EQ((x + x).to_vector<float>()[1], 0.2f);
    }
    {
      DeviceScope on("/GPU:1");
      EXPECT_EQ((x + x).to_vector<float>()[1], 0.2f);
    }
    // What asks for nothing, or for the lost device, goes on elsewhere.
    EXPECT_EQ((x + x).to_vector<float>()[1], 0.2f);
    Network again;
    EXPECT_NO_THROW(again.train(x, y).item<float>());
    EXPECT_THAT(again.w1.read_value().device(), ::testing::EndsWith("GPU:1"));
  }
  EXPECT_TRUE(ever_lost);
}

// Whichever of its device's actions fails first.
TEST(DeviceFaults, ErrorsOfALostDeviceNameTheOp) {
  int failed = 0;
  for (int n = 1; n <= 12; ++n) {
    Runtime::Options options;
    options.devices.emulate = {cat("GPU:1,memory=64MiB,fault=lost@", n)};
    Runtime runtime(options);
    RuntimeScope scope(runtime);
    const Tensor host = [] {
      const DeviceScope cpu("/CPU:0");
      return Tensor::from(std::vector<float>(64, 1.0f), {8, 8});
    }();
    const DeviceScope gpu("/GPU:0");
    try {
      const Tensor sum = matmul(ones({8, 8}), host);
      auto f = function([](Tensor a) { return exp(a) * 2.0f; });
      f(sum).synchronize();
    } catch (const UnavailableError& error) {
      ++failed;
      EXPECT_THAT(error.what(),
                  testing::AnyOf(testing::HasSubstr("[Op:"), testing::HasSubstr("{{node ")))
          << n;
    }
  }
  EXPECT_GT(failed, 5);
}

TEST(DeviceFaults, WhatALostDeviceHeldIsGone) {
  Runtime runtime({.devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  auto f = function([](Tensor a) { return a * 2.0f; });
  const Tensor x = Tensor{1.0f, 2.0f};
  EXPECT_THAT(f(x).device(), ::testing::EndsWith("GPU:0"));
  const Variable v(x * 1.0f);
  auto use = function([&](Tensor a) { return a + v; });
  EXPECT_EQ(use(x).to_vector<float>(), (std::vector<float>{2, 4}));
  dynamic_cast<EmulatedDevice&>(*runtime.devices()[1]).lose("unplugged");
  EXPECT_THROW(use(x), UnavailableError);
  EXPECT_THROW(v.read_value(), UnavailableError);
  // The same trace finds another place.
  EXPECT_THAT(f(x).device(), ::testing::EndsWith("GPU:1"));
  EXPECT_EQ(f(x).to_vector<float>(), (std::vector<float>{2, 4}));
}

TEST(DeviceFaults, TooLittleMemoryNamesTheHoldersAndASmallerStepWorks) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,memory=1MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  Variable big;
  {
    DeviceScope on("/GPU:0");
    big = Variable(zeros({512, 256}), {.name = "big_table"});  // half of the memory
  }
  auto f = function([&](Tensor x) { return reduce_sum(matmul(x, big)); });
  try {
    DeviceScope on("/CPU:0");
    const Tensor x = zeros({1024, 512});
    DeviceScope off("");
    f(x);
    FAIL();
  } catch (const ResourceExhaustedError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("big_table"), std::string::npos) << text;
    EXPECT_NE(text.find("1 MiB"), std::string::npos) << text;
  }
  EXPECT_EQ(f(zeros({4, 512})).item<float>(), 0.0f);
}

TEST(DeviceFaults, ValuesMayOutliveTheirRuntime) {
  Tensor on_gpu;
  Variable variable;
  {
    Runtime runtime({.devices = {.emulate = {"GPU:1,latency=0us"}}});
    RuntimeScope scope(runtime);
    on_gpu = Tensor{1.0f, 2.0f} + Tensor{1.0f, 1.0f};
    variable = Variable(Tensor{1.0f, 2.0f} * 2.0f);
  }
  EXPECT_EQ(on_gpu.to_vector<float>(), (std::vector<float>{2, 3}));
  on_gpu = Tensor();
  EXPECT_EQ(variable.read_value().to_vector<float>(), (std::vector<float>{2, 4}));
}

TEST(DeviceFaults, WhatWasNotComputedCannotBeRead) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,compute=timed,latency=0us"}}});
  RuntimeScope scope(runtime);
  auto f = function([](Tensor x) {
    return while_loop([](const Tensor& v) { return reduce_sum(v) < 10.0f; },
                      [](const Tensor& v) { return v * 2.0f; }, x, {.maximum_iterations = 3});
  });
  const Tensor y = f(Tensor{1.0f, 2.0f});
  EXPECT_EQ(y.shape(), (Shape{2}));
  EXPECT_THROW(y.array(), FailedPreconditionError);
  EXPECT_EQ((Tensor{1, 2} + Tensor{3, 4}).to_vector<int>(), (std::vector<int>{4, 6}));
}

TEST(DeviceFaults, EagerCallsTakeTheTimeOfTheirOperations) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,compute=timed,flops=1G,latency=0us"}}});
  RuntimeScope scope(runtime);
  const Tensor x = ones({256, 256});
  const auto begin = std::chrono::steady_clock::now();
  const Tensor y = matmul(x, x);
  y.synchronize();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took.count(), 2 * 256.0 * 256 * 256 / 1e9);  // never before: the device is as fast
}

TEST(DeviceFaults, ARuntimeWithOneCpuTakesTensorsOfAnothersDevices) {
  Runtime gpu({.devices = {.emulate = {"GPU:1,latency=0us"}}});
  Tensor there;
  {
    RuntimeScope scope(gpu);
    there = Tensor{1.0f, 2.0f} + Tensor{1.0f, 1.0f};
  }
  Runtime cpu;
  RuntimeScope scope(cpu);
  EXPECT_EQ((there + there).to_vector<float>(), (std::vector<float>{4, 6}));
  auto f = function([&](Tensor x) { return x * there; });
  EXPECT_EQ(f(there).to_vector<float>(), (std::vector<float>{4, 9}));
}

TEST(DeviceFaults, ALongFunctionFailsWithoutExhaustingTheStack) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,latency=0us,fault=lost@5"}}});
  RuntimeScope scope(runtime);
  auto f = function(
      [](Tensor x) {
        for (int i = 0; i < 30000; ++i) x = x + 1.0f;
        return x;
      },
      {.optimize = false});
  EXPECT_THROW(f(Tensor{1.0f}), UnavailableError);
}

TEST(DeviceFaults, UnmaterializedValuesStaySoOnTheHost) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,compute=timed,latency=0us"}}});
  RuntimeScope scope(runtime);
  auto f = function([](Tensor x) {
    const Tensor y = matmul(x, x);
    DeviceScope on("/CPU:0");
    return y + 1.0f;
  });
  EXPECT_THROW(f(ones({4, 4})).array(), FailedPreconditionError);
}

// Whatever it is used for, and however often.
TEST(DeviceFaults, WhatALostDeviceHeldIsGoneAndEveryErrorSaysSo) {
  Runtime runtime({.devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  Tensor x;
  {
    DeviceScope on("/GPU:0");
    x = fill({4}, 1.0f) + 1.0f;
  }
  auto f = function([](Tensor a) { return a * 2.0f; });
  static_cast<EmulatedDevice&>(*runtime.devices()[1]).lose("somebody pulled it out");
  const std::vector<std::function<void()>> uses = {
      [&] { x.to_vector<float>(); }, [&] { (x + x).to_vector<float>(); },   [&] { f(x); },
      [&] { x.to_vector<float>(); }, [&] { square(x).to_vector<float>(); }, [&] { f(x); },
  };
  for (std::size_t i = 0; i < uses.size(); ++i) {
    try {
      uses[i]();
      ADD_FAILURE() << "use " << i;
    } catch (const UnavailableError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("device:GPU:0")) << i;
      EXPECT_THAT(error.what(), testing::HasSubstr("somebody pulled it out")) << i;
    }
  }
}

// A program can ask before it uses them.
TEST(DeviceFaults, ALostDeviceIsReportedOf) {
  Runtime runtime({.devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  const Tensor x = ones({16}) + 1.0f;
  EXPECT_GT(config::get_memory_info("GPU:0").current, 0u);
  EXPECT_FALSE(config::get_device_details("GPU:0").contains("lost"));
  static_cast<EmulatedDevice&>(*runtime.devices()[1]).lose("somebody pulled it out");
  EXPECT_EQ(config::get_device_details("GPU:0").at("lost"), "somebody pulled it out");
  EXPECT_FALSE(config::get_device_details("GPU:1").contains("lost"));
  EXPECT_EQ(config::get_memory_info("GPU:1").current, 0u);
  for (const auto& asks : std::vector<std::function<void()>>{
           [] { config::get_memory_info("GPU:0"); }, [] { config::reset_memory_stats("GPU:0"); }}) {
    try {
      asks();
      ADD_FAILURE() << "reported memory that is gone";
    } catch (const UnavailableError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("device:GPU:0 is lost: somebody pulled it out"));
    }
  }
}

TEST(DeviceFaults, AnExplanationMarksALostDevice) {
  Runtime runtime({.devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  const auto step = function([](const Tensor& x) { return x * 2.0f; });
  static_cast<EmulatedDevice&>(*runtime.devices()[1]).lose("somebody pulled it out");
  const Explanation explanation = explain(step, ones({16}));
  EXPECT_EQ(explanation.devices.at(1).lost, "somebody pulled it out");
  EXPECT_EQ(explanation.devices.at(1).ops, 0);
  EXPECT_EQ(explanation.devices.at(2).lost, "");
  const std::string text = explanation.to_text();
  EXPECT_THAT(text, testing::HasSubstr("note: GPU:0 is lost: somebody pulled it out."));
  EXPECT_THAT(text, testing::HasSubstr("GPU:0, lost "));
  EXPECT_THAT(explanation.to_json(), testing::HasSubstr("somebody pulled it out"));
  EXPECT_THAT(explanation.to_html(), testing::HasSubstr("GPU:0 is lost: somebody pulled it out."));
}

// With soft placement it goes elsewhere, and the line says why.
TEST(DeviceFaults, ALostDeviceThatIsAskedForIsUnavailable) {
  Runtime runtime({.devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  static_cast<EmulatedDevice&>(*runtime.devices()[1]).lose("somebody pulled it out");
  DeviceScope on("/GPU:0");
  testing::internal::CaptureStderr();
  EXPECT_THAT((Tensor{1.0f} + 1.0f).device(), testing::HasSubstr("GPU:1"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("but that is lost"));
  runtime.set_soft_placement(false);
  try {
    Tensor{1.0f} + 1.0f;
    ADD_FAILURE() << "ran on a lost device";
  } catch (const UnavailableError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("somebody pulled it out"));
    EXPECT_THAT(error.what(), testing::HasSubstr("device:GPU:1"));
  }
  const auto more = function([](const Tensor& x) { return x + 1.0f; });
  EXPECT_THROW(more(Tensor{1.0f}), UnavailableError);
}

}  // namespace
}  // namespace tandem
