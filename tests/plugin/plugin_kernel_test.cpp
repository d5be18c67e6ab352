#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/device/memory_space.h"
#include "tandem/device/plugin_backend.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<Device> toy(const char* plugin) {
  const char* folder = std::getenv("TANDEM_TEST_PLUGINS");
  const auto backend = load_plugin(std::string(folder ? folder : ".") + "/lib" + plugin + ".so");
  const PhysicalDevice physical = backend->physical_devices().front();
  return backend->make_device(physical, {.memory_growth = true},
                              DeviceSpec::parse(physical.device_type + ":0"));
}

Array to_device(Device& device, const Array& array) {
  Ref<Buffer> buffer = device.allocator().allocate(array.num_bytes());
  device.copy_from_host(array.raw_data(), buffer, 0, array.num_bytes());
  void* data = buffer->data();
  return {array.dtype(), array.shape(), std::move(buffer), data};
}

std::vector<float> to_host(Device& device, const Array& array) {
  std::vector<float> out(static_cast<std::size_t>(array.num_elements()));
  const Array token = token_view(array);
  const auto offset =
      static_cast<std::byte*>(token.raw_data()) - static_cast<std::byte*>(token.buffer()->data());
  device.copy_to_host(token.buffer(), static_cast<std::size_t>(offset), out.data(),
                      array.num_bytes());
  return out;
}

// Runs one op on a device's compute stream, as a runtime does.
Array run(Device& device, const char* op, const std::vector<Array>& inputs, AttrMap attrs) {
  const OpRegistry ops;
  const KernelRegistry kernels;
  const OpDef& def = ops.get(op);
  IntraOpPool pool(1);
  const std::atomic<bool> deterministic{false};
  KernelServices services;
  services.device = &device;
  services.allocator = &device.allocator();
  services.intra_op = &pool;
  services.deterministic = &deterministic;

  std::vector<Array> views;
  std::vector<const Array*> pointers;
  for (const Array& input : inputs) views.push_back(kernel_view(to_device(device, input)));
  for (const Array& view : views) pointers.push_back(&view);
  Array result;
  Array* const results[] = {&result};
  const DType dtypes[] = {inputs.front().dtype()};
  attrs.set("T", inputs.front().dtype());
  KernelContext context;
  context.op_ = &def;
  context.attrs_ = &attrs;
  context.node_name_ = "the_node";
  context.inputs_ = pointers.data();
  context.outputs_ = results;
  context.output_dtypes_ = dtypes;
  context.num_inputs_ = static_cast<int>(inputs.size());
  context.num_outputs_ = 1;
  context.services_ = &services;
  const KernelList& list = kernels.get(def, device.kernel_class(), attrs);
  Stream& stream = device.stream(StreamKind::kCompute);
  stream.enqueue(Work{.run = [&] { list.choose(context).run(context); }});
  stream.synchronize();
  return result;
}

const Array kA = Array::from<float>(std::vector<float>{1, -2, 3, 4, 5, -6}, Shape{2, 3});
const Array kB = Array::from<float>(std::vector<float>{1, 0, 2, 1, 0, -1}, Shape{2, 3});

class PluginKernels : public testing::TestWithParam<const char*> {};

TEST_P(PluginKernels, ComputeInTheDevicesMemory) {
  const auto device = toy(GetParam());
  const Array sum = run(*device, "AddV2", {kA, kB}, {});
  EXPECT_EQ(device_of(sum), device.get());
  EXPECT_THAT(to_host(*device, sum), ElementsAre(2, -2, 5, 5, 5, -7));
  EXPECT_THAT(to_host(*device, run(*device, "Relu", {kA}, {})), ElementsAre(1, 0, 3, 4, 5, 0));
  const Array product =
      run(*device, "MatMul", {kA, kB}, {{"transpose_a", false}, {"transpose_b", true}});
  EXPECT_EQ(product.shape(), (Shape{2, 2}));
  EXPECT_THAT(to_host(*device, product), ElementsAre(7, -2, -8, 10));
  const Array turned =
      run(*device, "MatMul", {kA, kB}, {{"transpose_a", true}, {"transpose_b", false}});
  EXPECT_THAT(to_host(*device, turned), ElementsAre(5, 0, -2, 3, 0, -9, -3, 0, 12));
  const Array images =
      Array::from<float>(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9}, Shape{1, 3, 3, 1});
  const AttrMap windows = {{"ksize", std::vector<std::int64_t>{1, 2, 1, 1}},
                           {"strides", std::vector<std::int64_t>{1, 1, 2, 1}},
                           {"padding", std::string("VALID")},
                           {"data_format", std::string("NHWC")}};
  const Array pooled = run(*device, "AvgPool", {images}, windows);
  EXPECT_EQ(pooled.shape(), (Shape{1, 2, 2, 1}));
  EXPECT_THAT(to_host(*device, pooled), ElementsAre(2.5f, 4.5f, 5.5f, 7.5f));
}

INSTANTIATE_TEST_SUITE_P(Toys, PluginKernels, testing::Values("toy_device", "toy_memory"),
                         [](const auto& plugin) { return std::string(plugin.param); });

TEST(PluginKernel, FailuresAreTyped) {
  const auto device = toy("toy_device");
  const Array three = Array::from<float>(std::vector<float>{1, 2, 3}, Shape{3});
  try {
    run(*device, "AddV2", {kA, three}, {});
    FAIL() << "nothing was thrown";
  } catch (const UnimplementedError& error) {
    EXPECT_STREQ(error.what(), "the toy adds equal shapes alone");
  }
  EXPECT_THROW(run(*device, "MatMul", {kA, kB}, {{"transpose_a", false}, {"transpose_b", false}}),
               InvalidArgumentError);
}

TEST(PluginKernel, OtherTypesHaveNone) {
  const auto device = toy("toy_device");
  const Array whole = Array::from<std::int32_t>(std::vector<std::int32_t>{1, 2}, Shape{2});
  try {
    run(*device, "AddV2", {whole, whole}, {});
    FAIL() << "nothing was thrown";
  } catch (const UnimplementedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Op AddV2 has no toy kernel for T=int32"));
  }
}

TEST(PluginKernel, IsListedOnceHoweverOftenThePluginIsLoaded) {
  toy("toy_device");
  toy("toy_device");
  int found = 0;
  for (const KernelDecl* kernel : KernelRegistry().all("Relu")) {
    found += kernel->kernel_class == std::string("toy") ? 1 : 0;
  }
  EXPECT_EQ(found, 1);
}

}  // namespace
}  // namespace tandem
