// Elementwise ops become one op on a plugin's device where the plugin says that it can run that.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/ops/ops.h"
#include "tandem/runtime/explain.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

class PluginFusion : public testing::Test {
 protected:
  PluginFusion() : runtime_({.devices = {.plugins = {TANDEM_FUSING_PLUGIN}}}), scope_(runtime_) {}

  // Ops of the plugin's device, and what is said of fusing them.
  struct Explained {
    std::vector<std::string> ops, fusions;
  };
  static Explained explained(const Explanation& e) {
    Explained found;
    for (const auto& op : e.ops) {
      if (e.devices[static_cast<std::size_t>(op.device)].short_name == "FUSING:0" &&
          !op.is_constant)
        found.ops.push_back(op.op);
    }
    for (const auto& fusion : e.fusions) found.fusions.push_back(fusion.text);
    return found;
  }

  Runtime runtime_;
  RuntimeScope scope_;
};

const std::vector<float> kX = {1, -2, 3, -4}, kY = {2, 0.5f, -3, -1};

// Four elements: for the CPU too few to fuse.
TEST_F(PluginFusion, MakesOneKernelOfATreeOfAnySize) {
  const auto f = function([](Tensor x, Tensor y) {
    const DeviceScope on("/FUSING:0");
    return nn::relu(x + y + y);
  });
  const Tensor x = Tensor::from(kX), y = Tensor::from(kY);
  EXPECT_THAT(f(x, y).to_vector<float>(), ElementsAre(5, 0, 0, 0));
  const Explained e = explained(explain(f, x, y));
  EXPECT_THAT(e.ops, ElementsAre("_FusedElementwise"));
  EXPECT_THAT(e.fusions, Contains(HasSubstr("fused into _FusedElementwise")));
}

// Six ops are too many for the plugin: three of them become one.
TEST_F(PluginFusion, TakesTheLargestTreeThatThePluginTakes) {
  const auto f = function([](Tensor x, Tensor y) {
    const DeviceScope on("/FUSING:0");
    return nn::relu(nn::relu(nn::relu(x + y) + y) + x);
  });
  const Tensor x = fill({8192}, Tensor(-3.0f)), y = fill({8192}, Tensor(5.0f));
  EXPECT_THAT(f(x, y).to_vector<float>(), Each(4.0f));
  const Explained e = explained(explain(f, x, y));
  EXPECT_THAT(e.ops, ElementsAre("_FusedElementwise", "Relu", "AddV2", "Relu"));
  EXPECT_THAT(e.fusions, Contains(HasSubstr("class fusing: the toy fuses at most three ops")));
}

// What is not on the plugin's list stays an op of its own, though the CPU could fuse it.
TEST_F(PluginFusion, LeavesOpsThatThePluginDoesNotName) {
  const auto f = function([](Tensor x, Tensor y) {
    const DeviceScope on("/FUSING:0");
    return nn::relu(tanh(x + y) + y);
  });
  const Tensor x = zeros({8192}), y = ones({8192});
  EXPECT_THAT(f(x, y).to_vector<float>(), Each(testing::FloatNear(1.76159f, 1e-5f)));
  const Explanation e = explain(f, x, y);
  bool alone = false;
  for (const auto& op : e.ops) alone = alone || op.op == "Tanh";
  EXPECT_TRUE(alone);
}

}  // namespace
}  // namespace tandem
