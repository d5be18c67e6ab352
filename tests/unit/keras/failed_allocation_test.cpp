// Memory that runs out somewhere in the first fit, which builds the model, its optimizer and its
// metrics: what was half made is not left behind.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/device.h"
#include "tandem/device/emulated/emulated_device.h"
#include "tandem/runtime/runtime.h"
#include <tandem/tandem.h>

namespace tandem::keras {
namespace {

struct Case {
  const char* name;
  Optimizer (*make)();
};

std::vector<std::vector<float>> floats_of(const std::vector<Variable>& variables) {
  const DeviceScope on("/CPU:0");
  std::vector<std::vector<float>> values;
  for (const Variable& v : variables)
    values.push_back(cast(v.read_value(), float32).to_vector<float>());
  return values;
}

struct Fitted {
  std::vector<float> losses, errors;
  std::vector<std::vector<float>> weights, slots;
  std::size_t held = 0;  // in the device's memory while the model is there
  std::size_t left = 0;  // and afterwards
  int failures = 0;
  bool in_step = false;  // the failure was in the step, with all built
};

Model make_model(const Case& which) {
  const auto first = initializers::GlorotUniform(3);
  const auto second = initializers::GlorotUniform(4);
  // Without an Input: the first fit builds it.
  Sequential model{Dense(5, {.activation = "tanh", .kernel_initializer = first}),
                   LayerNormalization(), Dense(2, {.kernel_initializer = second})};
  model.compile({.optimizer = which.make(), .loss = "mse", .metrics = {"mae"}});
  return model;
}

// What the first fit begins with.
struct Beginning {
  std::vector<Tensor> weights, slots;
};

Beginning beginning_of(const Case& which) {
  Runtime runtime;
  RuntimeScope scope(runtime);
  const Model model = make_model(which);
  model.build({-1, 3});
  model.optimizer().build(model.trainable_weights());
  Beginning beginning{model.get_weights(), {}};
  for (const Variable& v : model.optimizer().variables()) beginning.slots.push_back(v.read_value());
  return beginning;
}

// A step that was broken off may have changed some of the variables; they are put back, and there
// are either all of them or those from before the first fit.
void put_back(const Model& model, const Beginning& beginning, std::size_t slots_at_first) {
  if (!model.weights().empty() && model.built()) model.set_weights(beginning.weights);
  const std::vector<Variable> slots = model.optimizer().variables();
  if (slots.size() != beginning.slots.size()) {
    EXPECT_EQ(slots.size(), slots_at_first);
    return;
  }
  for (std::size_t i = 0; i < slots.size(); ++i) slots[i].assign(beginning.slots[i]);
}

// What is still allocated once the device has let go of its work: a kernel that has just ended may
// hold its operands for a moment longer than the caller waits for it.
std::size_t bytes_left(EmulatedDevice& gpu) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (gpu.allocator().stats().current != 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return gpu.allocator().stats().current;
}

// Fits with the n-th allocation failing, none for 0.
Fitted fit_with_failing_allocation(const Case& which, const Beginning& beginning, std::uint64_t n) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  auto& gpu = dynamic_cast<EmulatedDevice&>(*runtime.devices()[1]);
  Tensor x, y;
  {
    const DeviceScope on("/CPU:0");
    x = Tensor{{0.1, 0.5, -0.2}, {0.9, -0.3, 0.4}, {-0.7, 0.2, 0.6}, {0.3, 0.3, -0.8}};
    y = Tensor{{1.0, 0.0}, {0.0, 1.0}, {0.5, 0.5}, {1.0, -1.0}};
  }
  Fitted fitted;
  {
    const Model model = make_model(which);
    const std::size_t slots_at_first = model.optimizer().variables().size();
    if (n > 0) gpu.inject_fault({.oom_at = n});
    while (fitted.losses.empty()) {
      try {
        const History history =
            model.fit(x, y, {.batch_size = 4, .verbose = Verbose::kSilent, .shuffle = false});
        for (const double loss : history["loss"]) fitted.losses.push_back(float(loss));
        for (const double error : history["mae"]) fitted.errors.push_back(float(error));
      } catch (const ResourceExhaustedError& e) {
        EXPECT_THAT(e.what(), testing::HasSubstr("GPU:0"));
        if (++fitted.failures > 1) break;
        fitted.in_step = std::string(e.what()).find("[[{{node") != std::string::npos;
        put_back(model, beginning, slots_at_first);
      }
    }
    fitted.weights = floats_of(model.weights());
    fitted.slots = floats_of(model.optimizer().variables());
    fitted.held = gpu.allocator().stats().current;
  }
  fitted.left = bytes_left(gpu);
  return fitted;
}

class FailedAllocation : public testing::TestWithParam<Case> {};

TEST_P(FailedAllocation, InTheFirstFitLeavesTheModelAsItWas) {
  const Beginning beginning = beginning_of(GetParam());
  const Fitted expected = fit_with_failing_allocation(GetParam(), beginning, 0);
  ASSERT_EQ(expected.failures, 0);
  ASSERT_EQ(expected.losses.size(), 1u);
  // All that is built, and the first allocations of the step; the rest of a step is
  // FaultsInTraining's.
  int in_step = 0;
  std::uint64_t n = 1;
  for (; in_step < 5; ++n) {
    ASSERT_LT(n, 2000u);
    const Fitted fitted = fit_with_failing_allocation(GetParam(), beginning, n);
    ASSERT_LE(fitted.failures, 1) << "one allocation fails, the " << n << "th";
    EXPECT_EQ(fitted.losses, expected.losses) << n;
    EXPECT_EQ(fitted.errors, expected.errors) << n;
    EXPECT_EQ(fitted.weights, expected.weights) << n;
    EXPECT_EQ(fitted.slots, expected.slots) << n;
    EXPECT_EQ(fitted.held, expected.held) << n;
    EXPECT_EQ(fitted.left, 0u) << n;
    if (fitted.failures == 0) break;
    in_step += fitted.in_step;
  }
  EXPECT_GT(n, 20u) << "hardly anything was allocated";
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, FailedAllocation,
    testing::Values(
        Case{"sgd", [] { return Optimizer("sgd"); }},
        Case{"momentum", []() -> Optimizer { return optimizers::SGD({.momentum = 0.9}); }},
        Case{"adam", [] { return Optimizer("adam"); }},
        Case{"amsgrad", []() -> Optimizer { return optimizers::Adam({.amsgrad = true}); }},
        Case{"adamw", [] { return Optimizer("adamw"); }},
        Case{
            "rmsprop",
            []() -> Optimizer { return optimizers::RMSprop({.momentum = 0.9, .centered = true}); }},
        Case{"adagrad", [] { return Optimizer("adagrad"); }},
        Case{"adamax", [] { return Optimizer("adamax"); }},
        Case{"nadam", [] { return Optimizer("nadam"); }},
        Case{"adadelta", [] { return Optimizer("adadelta"); }},
        Case{"loss_scale", []() -> Optimizer { return optimizers::LossScaleOptimizer("nadam"); }}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tandem::keras
