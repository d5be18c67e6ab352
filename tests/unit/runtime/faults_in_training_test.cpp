// Hardware that fails within training steps: what the errors name, and that training goes on with
// the right numbers.
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/device/device.h"
#include "tandem/device/emulated/emulated_device.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr int kSteps = 5;

Runtime::Options two_gpus() { return {.devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}}; }

EmulatedDevice& gpu(Runtime& runtime, std::size_t index) {
  return dynamic_cast<EmulatedDevice&>(*runtime.devices()[1 + index]);
}

std::vector<float> ramp(int count, float step) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(step * static_cast<float>(i % 7));
  return values;
}

using Weights = std::pair<std::vector<float>, std::vector<float>>;
using Step = std::function<Tensor(Tensor)>;

// Two layers whose weights lie on `home`; a step computes on `device`.
struct Network {
  Network(const std::string& home, std::string device_of_steps, Weights weights = first_weights())
      : device(std::move(device_of_steps)) {
    DeviceScope on(home);
    w1 = Variable(Tensor::from(weights.first, {4, 8}), {.name = "w1"});
    w2 = Variable(Tensor::from(weights.second, {8, 2}), {.name = "w2"});
  }

  static Weights first_weights() { return {ramp(32, 0.05f), ramp(16, -0.03f)}; }
  Weights weights() const { return {Tensor(w1).to_vector<float>(), Tensor(w2).to_vector<float>()}; }
  void set(const Weights& weights) const {
    w1.assign(Tensor::from(weights.first, {4, 8}));
    w2.assign(Tensor::from(weights.second, {8, 2}));
  }

  Tensor operator()(const Tensor& x) const {
    std::vector<Tensor> gradients;
    Tensor loss;
    {
      DeviceScope on(device);
      GradientTape tape;
      loss =
          reduce_mean(square(matmul(nn::relu(matmul(x, w1.read_value())), w2.read_value()) - 1.0f));
      gradients = tape.gradient(loss, std::vector<Variable>{w1, w2});
      for (Tensor& g : gradients) g = g * 0.1f;
    }
    w1.assign_sub(gradients[0]);
    w2.assign_sub(gradients[1]);
    return loss;
  }
  Step traced() const {
    return function([this](Tensor x) { return (*this)(x); }, {.name = "step"});
  }

  std::string device;
  Variable w1, w2;
};

Tensor some_input() {
  DeviceScope on("/CPU:0");
  return Tensor::from(ramp(12, 0.1f), {3, 4});
}

// The losses of an undisturbed run.
std::vector<float> expected_losses() {
  Runtime runtime(two_gpus());
  RuntimeScope scope(runtime);
  const Network net("/GPU:0", "/GPU:0");
  const Step step = net.traced();
  const Tensor x = some_input();
  std::vector<float> losses;
  for (int i = 0; i < kSteps; ++i) losses.push_back(step(x).item<float>());
  EXPECT_LT(losses.back(), losses.front());
  return losses;
}

void expect_losses(const std::vector<float>& losses, const std::vector<float>& expected) {
  ASSERT_EQ(losses.size(), expected.size());
  for (std::size_t i = 0; i < losses.size(); ++i)
    EXPECT_FLOAT_EQ(losses[i], expected[i]) << "step " << i;
}

// At each piece of work and each copy of a step in turn.
TEST(FaultsInTraining, ALossWithinAStepNamesTheDeviceAndTheNode) {
  std::set<std::string> ops;
  for (std::uint64_t n = 1;; ++n) {
    ASSERT_LT(n, 200u);
    Runtime runtime(two_gpus());
    RuntimeScope scope(runtime);
    const Network net("/GPU:0", "/GPU:0");
    const Step step = net.traced();
    const Tensor x = some_input();
    step(x).item<float>();
    gpu(runtime, 0).inject_fault({.lost_at = n});
    try {
      step(x);
      break;
    } catch (const UnavailableError& e) {
      const std::string text = e.what();
      EXPECT_THAT(text, HasSubstr("/job:localhost/replica:0/task:0/device:GPU:0 is lost"));
      EXPECT_THAT(text, HasSubstr("[[{{node ")) << "at work " << n;
      const std::size_t op = text.find("}} (");
      if (op != text.npos) ops.insert(text.substr(op + 4, text.find(')', op) - op - 4));
    }
  }
  for (const char* op : {"MatMul", "ReluGrad", "AssignSubVariableOp", "_CopyToDevice"})
    EXPECT_THAT(ops, Contains(op));
}

class Resumed : public ::testing::TestWithParam<const char*> {};

// The same function and the same variables, which lie elsewhere. A step that was broken off may
// have changed some of them, so they are put back to what was read last.
TEST_P(Resumed, TrainingGivesTheLossesOfAnUndisturbedRun) {
  const std::vector<float> expected = expected_losses();
  int in_steps = 0;
  for (std::uint64_t n = 1;; n += 2) {
    ASSERT_LT(n, 400u);
    Runtime runtime(two_gpus());
    RuntimeScope scope(runtime);
    const Network net(GetParam(), "/GPU:0");
    const Step step = net.traced();
    const Tensor x = some_input();
    gpu(runtime, 0).inject_fault({.lost_at = n});
    bool lost = false;
    std::vector<float> losses;
    while (losses.size() < kSteps) {
      const Weights before = net.weights();
      Tensor loss;
      try {
        loss = step(x);
      } catch (const UnavailableError&) {
        ASSERT_FALSE(lost) << "a second time, after work " << n;
        lost = true;
        ++in_steps;
        net.set(before);
        continue;
      }
      try {
        losses.push_back(loss.item<float>());
      } catch (const UnavailableError&) {
        // The step was over, and only its result was lost.
        ASSERT_FALSE(lost) << "a second time, after work " << n;
        lost = true;
        losses.push_back(expected[losses.size()]);
      }
    }
    expect_losses(losses, expected);
    if (!lost) break;
  }
  EXPECT_GT(in_steps, 20);
}

INSTANTIATE_TEST_SUITE_P(FaultsInTraining, Resumed, ::testing::Values("/CPU:0", "/GPU:1"));

// The variables were on the lost device: what was saved last is loaded into new ones elsewhere.
TEST(FaultsInTraining, GoesOnWithNewVariablesFromWhatWasSaved) {
  const std::vector<float> expected = expected_losses();
  for (int lost_after = 0; lost_after < kSteps; ++lost_after) {
    for (const char* to : {"/GPU:1", "/CPU:0"}) {
      Runtime runtime(two_gpus());
      RuntimeScope scope(runtime);
      const Tensor x = some_input();
      std::vector<float> losses;
      Weights saved = Network::first_weights();
      {
        const Network net("/GPU:0", "/GPU:0");
        const Step step = net.traced();
        for (int i = 0; i < lost_after; ++i) {
          losses.push_back(step(x).item<float>());
          saved = net.weights();
        }
        gpu(runtime, 0).lose("unplugged");
        EXPECT_THROW(step(x).item<float>(), UnavailableError);
        EXPECT_THROW(net.weights(), UnavailableError);
      }
      const Network again(to, to, saved);
      const Step step = again.traced();
      while (losses.size() < kSteps) losses.push_back(step(x).item<float>());
      EXPECT_THAT(again.w1.read_value().device(), HasSubstr(to + 1));
      expect_losses(losses, expected);
    }
  }
}

struct Ended {
  std::vector<float> losses;
  Weights weights;
  std::size_t held = 0;  // in the device's memory while function and variables are there
  std::size_t left = 0;  // and afterwards
  int failures = 0;
};

// Trains with the n-th allocation failing, none for 0. After a failure the variables are put back
// to what they were before the step, and the next call is one of the same function.
Ended train_with_failing_allocation(std::uint64_t n, bool traced) {
  Runtime runtime(two_gpus());
  RuntimeScope scope(runtime);
  Ended ended;
  {
    const Network net("/GPU:0", "/GPU:0");
    const Step step = traced ? net.traced() : Step([&](const Tensor& x) { return net(x); });
    const Tensor x = some_input();
    Weights before = net.weights();
    gpu(runtime, 0).inject_fault({.oom_at = n});
    while (ended.losses.size() < kSteps) {
      try {
        const float loss = step(x).item<float>();
        const Weights after = net.weights();
        ended.losses.push_back(loss);
        before = after;
      } catch (const ResourceExhaustedError& e) {
        EXPECT_THAT(e.what(), HasSubstr("GPU:0"));
        if (++ended.failures > 1) break;
        net.set(before);
      }
    }
    ended.weights = before;
    ended.held = gpu(runtime, 0).allocator().stats().current;
  }
  ended.left = gpu(runtime, 0).allocator().stats().current;
  return ended;
}

class FailingAllocation : public ::testing::TestWithParam<bool> {};

TEST_P(FailingAllocation, LeavesFunctionVariablesAndMemoryUsable) {
  const Ended expected = train_with_failing_allocation(0, GetParam());
  ASSERT_EQ(expected.failures, 0);
  EXPECT_EQ(expected.left, 0u);
  std::uint64_t n = 1;
  for (;; ++n) {
    ASSERT_LT(n, 2000u);
    const Ended ended = train_with_failing_allocation(n, GetParam());
    EXPECT_LE(ended.failures, 1) << "one allocation fails, the " << n << "th";
    EXPECT_EQ(ended.losses, expected.losses) << n;
    EXPECT_EQ(ended.weights, expected.weights) << n;
    EXPECT_EQ(ended.held, expected.held) << n;
    EXPECT_EQ(ended.left, 0u) << n;
    if (ended.failures == 0) break;
  }
  EXPECT_GT(n, 5u) << "hardly anything was allocated";
}

// Eager and traced.
INSTANTIATE_TEST_SUITE_P(FaultsInTraining, FailingAllocation, ::testing::Bool());

}  // namespace
}  // namespace tandem
