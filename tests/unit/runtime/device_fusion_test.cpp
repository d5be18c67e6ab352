// What is fused where a graph runs on devices of different kernel classes: ops become one where the
// device that runs them has a kernel for it, and stay there one by one where it has none.

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tandem/ops/ops.h"
#include "tandem/runtime/explain.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

Tensor filter() { return ones({3, 3, 2, 4}) * 0.25f; }
Tensor bias() { return Tensor{-1.0f, 0.5f, 0.0f, 2.0f}; }

auto layer(const std::string& device) {
  return function(
      [device](Tensor x) {
        const DeviceScope scope(device);
        return nn::relu(nn::bias_add(nn::conv2d(x, filter(), 1, "SAME"), bias()));
      },
      {.name = "layer"});
}

Tensor image() { return reshape(range(Tensor(128.0f)), {1, 8, 8, 2}) / 64.0f - 1.0f; }

std::vector<std::string> ops_on(const Explanation& e, const std::string& device) {
  std::vector<std::string> ops;
  for (const auto& op : e.ops) {
    if (e.devices[static_cast<std::size_t>(op.device)].short_name == device && !op.is_constant)
      ops.push_back(op.op);
  }
  return ops;
}

std::vector<std::string> fusions(const Explanation& e) {
  std::vector<std::string> lines;
  for (const auto& fusion : e.fusions) lines.push_back(fusion.text);
  return lines;
}

TEST(DeviceFusion, IsMadeWhereTheDeviceHasTheKernel) {
  const std::vector<float> wanted = layer("")(image()).to_vector<float>();
  Runtime runtime({.devices = {.emulate = {"GPU:1,class=x,memory=64MiB"}}});
  const RuntimeScope scope(runtime);
  ASSERT_EQ(runtime.devices().back()->kernel_class(), "emulated-x");
  const auto f = layer("/GPU:0");
  EXPECT_EQ(f(image()).to_vector<float>(), wanted);
  const Explanation e = explain(f, image());
  EXPECT_THAT(ops_on(e, "GPU:0"), Contains("_FusedConv2D"));
  EXPECT_THAT(ops_on(e, "GPU:0"), Not(Contains("BiasAdd")));
  EXPECT_THAT(fusions(e),
              ElementsAre(HasSubstr("Conv2D + BiasAdd + Relu: fused into _FusedConv2D")));
  EXPECT_TRUE(e.fusions.at(0).made);
}

TEST(DeviceFusion, LeavesOpsOnADeviceWhoseClassLacksTheKernel) {
  const std::vector<float> wanted = layer("")(image()).to_vector<float>();
  Runtime runtime({.devices = {.emulate = {"GPU:1,class=x,memory=64MiB,without=_FusedConv2D"}}});
  const RuntimeScope scope(runtime);
  const auto f = layer("/GPU:0");
  const Tensor y = f(image());
  EXPECT_THAT(y.device(), HasSubstr("GPU:0"));
  const std::vector<float> got = y.to_vector<float>();
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5f);

  const Explanation e = explain(f, image());
  EXPECT_THAT(ops_on(e, "GPU:0"), IsSupersetOf({"Conv2D", "BiasAdd", "Relu"}));
  EXPECT_THAT(ops_on(e, "GPU:0"), Not(Contains("_FusedConv2D")));
  const char* const line =
      "Conv2D + BiasAdd + Relu: not fused on GPU:0, class emulated-x has no kernel for "
      "_FusedConv2D";
  EXPECT_THAT(fusions(e), ElementsAre(line));
  EXPECT_FALSE(e.fusions.at(0).made);
  EXPECT_THAT(e.to_text(), HasSubstr(line));
  EXPECT_THAT(e.to_html(), HasSubstr("not fused on GPU:0"));
  const auto json = nlohmann::json::parse(e.to_json());
  EXPECT_EQ(json["fusions"][0]["ops"], "Conv2D + BiasAdd + Relu");
  EXPECT_EQ(json["fusions"][0]["reason"], "class emulated-x has no kernel for _FusedConv2D");
}

// Both in one graph: each device has it its own way.
TEST(DeviceFusion, IsDecidedForEachDevice) {
  Runtime runtime(
      {.devices = {
           .emulate = {"GPU:1,memory=64MiB;GPU:1,class=x,memory=64MiB,without=_FusedConv2D"}}});
  const RuntimeScope scope(runtime);
  const auto f = function(
      [](Tensor x) { return std::pair(layer("/GPU:0")(x), layer("/GPU:1")(x)); }, {.name = "both"});
  const auto [first, second] = f(image());
  EXPECT_THAT(first.device(), HasSubstr("GPU:0"));
  EXPECT_THAT(second.device(), HasSubstr("GPU:1"));
  const std::vector<float> a = first.to_vector<float>(), b = second.to_vector<float>();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5f);
}

TEST(DeviceFusion, OpsOfDifferentDevicesStayApart) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,memory=64MiB"}}});
  const RuntimeScope scope(runtime);
  const auto f = function([](Tensor x) {
    Tensor y;
    {
      const DeviceScope gpu("/GPU:0");
      y = nn::bias_add(nn::conv2d(x, filter(), 1, "SAME"), bias());
    }
    const DeviceScope cpu("/CPU:0");
    return nn::relu(y);
  });
  const Explanation e = explain(f, image());
  EXPECT_THAT(ops_on(e, "GPU:0"), Contains("_FusedConv2D"));
  EXPECT_THAT(ops_on(e, "CPU:0"), Contains("Relu"));
  EXPECT_THAT(fusions(e), Contains(HasSubstr("Relu: not fused on CPU:0, ")));
  EXPECT_EQ(f(image()).to_vector<float>(), layer("/CPU:0")(image()).to_vector<float>());
}

TEST(DeviceFusion, NamesAReaderInTheWay) {
  const auto f = function([](Tensor x) {
    const Tensor y = nn::conv2d(x, filter(), 1, "SAME");
    return std::pair(nn::bias_add(y, bias()), -y);
  });
  EXPECT_THAT(fusions(explain(f, image())),
              Contains(HasSubstr("Conv2D + BiasAdd: not fused on CPU:0, ")));
}

// Trees of elementwise ops too.
TEST(DeviceFusion, TreesOfElementwiseOps) {
  const auto body = [](Tensor x) {
    const DeviceScope scope("/GPU:0");
    return tanh(x * 2.0f + 1.0f) - x;
  };
  const Tensor x = reshape(range(Tensor(8192.0f)), {64, 128}) / 8192.0f;
  const std::vector<float> wanted = function(body)(x).to_vector<float>();
  for (const bool has : {true, false}) {
    Runtime runtime({.devices = {.emulate = {has ? "GPU:1,class=x"
                                                 : "GPU:1,class=x,without=_FusedElementwise"}}});
    const RuntimeScope scope(runtime);
    const auto f = function(body);
    const std::vector<float> got = f(x).to_vector<float>();
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-6f);
    const Explanation e = explain(f, x);
    const std::vector<std::string> ops = ops_on(e, "GPU:0");
    EXPECT_EQ(std::count(ops.begin(), ops.end(), "_FusedElementwise"), has ? 1 : 0);
    EXPECT_EQ(std::count(ops.begin(), ops.end(), "Tanh"), has ? 0 : 1);
    EXPECT_THAT(fusions(e), ElementsAre(HasSubstr(has ? "fused into _FusedElementwise"
                                                      : "class emulated-x has no kernel for "
                                                        "_FusedElementwise")));
  }
}

}  // namespace
}  // namespace tandem
