#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"
#include "tandem/io/graph_def.h"
#include "tandem/io/graph_export.h"
#include "tandem/io/graph_session.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

constexpr const char* kToy = "/job:localhost/replica:0/task:0/device:TOY:0";

// Only the plugin's devices can run it.
const OpRegistration kOnlyToy{{.name = "TestOnlyToy", .inputs = "x: float", .outputs = "y: float"}};
const KernelRegistration kOnlyToyKernel{
    {.op = "TestOnlyToy", .kernel_class = "toy", .run = [](KernelContext& c) {
       c.set_output(0, c.input(0));
     }}};

const OpRegistration kOnlyToyInt{
    {.name = "TestOnlyToyInt", .inputs = "x: int32", .outputs = "y: int32"}};
const KernelRegistration kOnlyToyIntKernel{
    {.op = "TestOnlyToyInt", .kernel_class = "toy", .run = [](KernelContext& c) {
       c.set_output(0, c.input(0));
     }}};

const OpRegistration kOnlyToyFloat{
    {.name = "TestOnlyToyFloat", .inputs = "x: T", .outputs = "y: T", .attrs = "T: type"}};
const KernelRegistration kOnlyToyFloatKernel{
    {.op = "TestOnlyToyFloat",
     .kernel_class = "toy",
     .types = {{"T", DTypeSet{DType::kFloat}}},
     .run = [](KernelContext& c) { c.set_output(0, c.input(0)); }}};

// A machine with a CPU and the example plugin, which has three kernels of its own and no others.
class PluginRuntime : public ::testing::Test {
 protected:
  PluginRuntime() : runtime_({.devices = {.plugins = {path()}}}), scope_(runtime_) {}

  static std::string path() {
    const char* folder = std::getenv("TANDEM_TEST_PLUGINS");
    return std::string(folder ? folder : ".") + "/libtoy_device.so";
  }
  static Tensor on_host() {
    DeviceScope host("/CPU:0");
    return Tensor{1.0f, -2.0f, 3.0f};
  }

  Runtime runtime_;
  RuntimeScope scope_;
};

TEST_F(PluginRuntime, FunctionsCopyWhatTheDeviceNeeds) {
  auto f = function([](Tensor x) { return nn::relu(x + x); });
  const Tensor y = f(on_host());
  EXPECT_EQ(y.device(), kToy);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{2, 0, 6}));
}

TEST_F(PluginRuntime, FunctionsGoToTheHostAndBack) {
  auto f = function([](Tensor x) {
    Tensor a = x + x;
    {
      DeviceScope host("/CPU:0");
      a = square(a);
    }
    return nn::relu(a + a);
  });
  EXPECT_EQ(f(on_host()).to_vector<float>(), (std::vector<float>{8, 32, 72}));
}

TEST_F(PluginRuntime, ConstantsAreUploadedOver) {
  auto f = function([](Tensor x) { return x + Tensor{10.0f, 20.0f, 30.0f}; });
  EXPECT_EQ(f(on_host()).to_vector<float>(), (std::vector<float>{11, 18, 33}));
}

TEST_F(PluginRuntime, ConditionsLoopsAndCallsWorkThere) {
  auto add = function([](Tensor x) { return x + x; });
  auto f = function([&](Tensor x, Tensor n) {
    DeviceScope toy("/TOY:0");
    const auto go_on = [&](const std::vector<Tensor>& v) { return less(v[0], n); };
    const auto step = [&](const std::vector<Tensor>& v) {
      return std::vector<Tensor>{v[0] + Tensor(1), add(v[1])};
    };
    const Tensor looped = while_loop(go_on, step, std::vector<Tensor>{Tensor(0), x})[1];
    return cond(
        greater(n, Tensor(0)), [&] { return nn::relu(looped); }, [&] { return x; });
  });
  EXPECT_EQ(f(on_host(), Tensor(3)).to_vector<float>(), (std::vector<float>{8, 0, 24}));
  EXPECT_EQ(f(on_host(), Tensor(0)).to_vector<float>(), (std::vector<float>{1, -2, 3}));
}

TEST_F(PluginRuntime, CallsGoWhereTheKernelIsThoughTheHostIsAskedFor) {
  DeviceScope host("/CPU:0");
  const Tensor x{1.0f, -2.0f};
  for (int i = 0; i < 2; ++i) {
    const Tensor y = raw_op("TestOnlyToy", {x})[0];
    EXPECT_EQ(y.device(), kToy);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, -2}));
  }
  config::set_soft_device_placement(false);
  EXPECT_THROW(raw_op("TestOnlyToy", {x}), InvalidArgumentError);
}

// Though small integers are the host's.
TEST_F(PluginRuntime, CallsOnSmallIntegersGoWhereTheOnlyKernelIs) {
  const Tensor y = raw_op("TestOnlyToyInt", {Tensor{1, 2}})[0];
  EXPECT_EQ(y.device(), kToy);
  EXPECT_EQ(y.to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 2}));
}

TEST_F(PluginRuntime, ErrorsReportForWhichTypesThereAreKernels) {
  DeviceScope host("/CPU:0");
  try {
    raw_op("TestOnlyToyFloat", {tensor<double>({1})});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnimplemented) << error.what();
    EXPECT_NE(std::string(error.what()).find("There are kernels for"), std::string::npos)
        << error.what();
  }
}

// TensorFlow's rule: such numbers count and index, so they are computed on the host.
TEST_F(PluginRuntime, SmallIntegersStayOnTheHost) {
  auto f = function([](Tensor x, Tensor n) { return std::pair(nn::relu(x), n + n); });
  DeviceScope toy("/TOY:0");
  const auto [y, n] = f(on_host(), Tensor{1, 2});
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 0, 3}));
  EXPECT_EQ(n.to_vector<std::int32_t>(), (std::vector<std::int32_t>{2, 4}));
}

TEST_F(PluginRuntime, RunsAGraphThatWasWritten) {
  auto f = function([](Tensor x) { return nn::relu(x + Tensor{1.0f, 1.0f, 1.0f}); });
  const std::string file = testing::TempDir() + "plugin_runtime.pb";
  io::write_graph_def(file, f.concrete(on_host()), {.inputs = {"x"}, .outputs = {"y"}});
  io::GraphSession session(io::read_graph_def(file));
  const auto y = session.run({{"x", on_host().array()}}, {"y"});
  EXPECT_EQ(Tensor(y[0]).to_vector<float>(), (std::vector<float>{2, 0, 4}));
}

TEST(LaterPlugin, RunsItsKernels) {
  Runtime runtime({.devices = {.plugins = {TANDEM_LATER_PLUGIN}}});
  RuntimeScope scope(runtime);
  const auto f = function([](Tensor x) {
    Tensor y;
    {
      DeviceScope host("/CPU:0");
      y = x + 1.0f;
    }
    return -y;
  });
  for (int i = 0; i < 3; ++i) {
    const Tensor y = f(Tensor{1.0f, -2.0f});
    EXPECT_EQ(y.device(), "/job:localhost/replica:0/task:0/device:LATER:0");
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{-2, 1}));
  }
  EXPECT_EQ((-Tensor{3.0f}).to_vector<float>(), (std::vector<float>{-3}));
}

}  // namespace
}  // namespace tandem
