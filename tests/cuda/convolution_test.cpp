// Convolutions through cuDNN and cuBLASLt on a device GPU:0, with stand-ins for the driver and the
// libraries.

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

#include "tests/cuda/cublaslt_stand_in.h"
#include "tests/cuda/cudnn_stand_in.h"
#include "tests/unit/folder.h"

namespace tandem {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;
using Ints = std::vector<std::int64_t>;
using Strings = std::vector<std::string>;

// What earlier processes have measured and kept is not there, so that every engine is tried once.
class FreshCache final : public testing::Environment {
 public:
  void SetUp() override { setenv("TANDEM_CACHE_DIR", folder_.file("cache").c_str(), 1); }

 private:
  Folder folder_;
};
const testing::Environment* const kFreshCache =
    testing::AddGlobalTestEnvironment(std::make_unique<FreshCache>().release());  // GoogleTest's

template <class Control>
const Control& control_of(const char* path, const char* function) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) std::abort();
  return *reinterpret_cast<const Control* (*)()>(dlsym(library, function))();
}
CudnnStandInUse used() {
  static const auto& control =
      control_of<CudnnStandInControl>(TANDEM_CUDNN_STAND_IN, "cudnn_stand_in_control");
  return control.used();
}
long long runs() {
  const CudnnStandInUse use = used();
  return use.plain + use.nondeterministic + use.tensor_core;
}
long long products() {
  static const auto& control =
      control_of<CublasLtStandInControl>(TANDEM_CUBLASLT_STAND_IN, "cublaslt_stand_in_control");
  return control.used().products;
}

Tensor values(const Ints& sizes, int seed, DType dtype = DType::kFloat) {
  const Shape shape(sizes);
  std::vector<float> all(static_cast<std::size_t>(shape.num_elements()));
  std::uint32_t state = static_cast<std::uint32_t>(seed) * 2654435761u + 12345u;
  for (float& value : all) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / static_cast<float>(1u << 23) - 1.0f;
  }
  const DeviceScope on("/CPU:0");
  return cast(Tensor::from(all, shape), dtype);
}

std::vector<float> run_on(const char* device, const std::string& op,
                          const std::vector<Tensor>& inputs, const AttrMap& attrs) {
  config::set_soft_device_placement(false);
  Tensor result;
  {
    const DeviceScope on(device);
    result = raw_op(op, inputs, attrs)[0];
  }
  const DeviceScope on("/CPU:0");
  return cast(result, DType::kFloat).to_vector<float>();
}

struct Case {
  std::string name;
  Ints x, filter, y;  // sizes
  std::int64_t stride = 1;
  std::string padding = "SAME";
  std::int64_t dilation = 1;
};

const Case kCases[] = {
    {"same", {2, 6, 5, 3}, {3, 3, 3, 4}, {2, 6, 5, 4}},
    {"padded on one side", {2, 6, 8, 3}, {3, 3, 3, 4}, {2, 3, 4, 4}, 2},
    {"strided", {2, 7, 9, 3}, {3, 3, 3, 4}, {2, 3, 4, 4}, 2, "VALID"},
    {"dilated", {1, 9, 9, 2}, {3, 3, 2, 4}, {1, 5, 5, 4}, 1, "VALID", 2},
    {"in groups", {2, 5, 5, 4}, {3, 3, 2, 6}, {2, 5, 5, 6}},
    {"strided entries", {2, 6, 6, 3}, {1, 1, 3, 4}, {2, 3, 3, 4}, 2},
};

AttrMap attrs_of(const Case& c) {
  AttrMap attrs;
  attrs.set("strides", Ints{1, c.stride, c.stride, 1});
  attrs.set("dilations", Ints{1, c.dilation, c.dilation, 1});
  attrs.set("padding", c.padding);
  return attrs;
}

void expect_by_cudnn(const std::string& op, const std::vector<Tensor>& on_cpu,
                     const std::vector<Tensor>& on_gpu, const AttrMap& attrs, float tolerance,
                     const std::string& what) {
  const std::vector<float> wanted = run_on("/CPU:0", op, on_cpu, attrs);
  const long long before = runs();
  const std::vector<float> got = run_on("/GPU:0", op, on_gpu, attrs);
  EXPECT_GT(runs(), before) << op << ' ' << what;
  EXPECT_THAT(got, Pointwise(FloatNear(tolerance), wanted)) << op << ' ' << what;
}

Tensor sizes_of(const Ints& sizes) {
  const DeviceScope on("/CPU:0");
  return Tensor::from(std::vector<std::int32_t>(sizes.begin(), sizes.end()),
                      {static_cast<std::int64_t>(sizes.size())});
}

TEST(ConvolutionsByCudnn, AndTheirGradients) {
  for (const Case& c : kCases) {
    const Tensor x = values(c.x, 1), filter = values(c.filter, 2), dy = values(c.y, 3);
    const AttrMap attrs = attrs_of(c);
    expect_by_cudnn("Conv2D", {x, filter}, {x, filter}, attrs, 2e-5f, c.name);
    const std::vector<Tensor> by_x{sizes_of(c.x), filter, dy}, by_filter{x, sizes_of(c.filter), dy};
    expect_by_cudnn("Conv2DBackpropInput", by_x, by_x, attrs, 2e-5f, c.name);
    expect_by_cudnn("Conv2DBackpropFilter", by_filter, by_filter, attrs, 1e-4f, c.name);
  }
}

TEST(ConvolutionsByCudnn, OfSixteenBitFloats) {
  const Case& c = kCases[0];
  for (const DType dtype : {DType::kHalf, DType::kBFloat16}) {
    const Tensor x = values(c.x, 1), filter = values(c.filter, 2);
    expect_by_cudnn("Conv2D", {x, filter}, {values(c.x, 1, dtype), values(c.filter, 2, dtype)},
                    attrs_of(c), dtype == DType::kHalf ? 1e-2f : 8e-2f, c.name);
  }
}

TEST(ConvolutionsByCudnn, OfVolumes) {
  const Tensor x = values({2, 4, 5, 6, 2}, 1), filter = values({3, 2, 3, 2, 3}, 2);
  AttrMap attrs;
  attrs.set("strides", Ints{1, 1, 2, 1, 1});
  attrs.set("padding", std::string("SAME"));
  expect_by_cudnn("Conv3D", {x, filter}, {x, filter}, attrs, 2e-5f, "");
}

TEST(ConvolutionsByCudnn, ThatAreDepthwise) {
  const Tensor x = values({2, 6, 5, 3}, 1), filter = values({3, 3, 3, 2}, 2);
  AttrMap attrs;
  attrs.set("strides", Ints{1, 1, 1, 1});
  attrs.set("padding", std::string("SAME"));
  expect_by_cudnn("DepthwiseConv2dNative", {x, filter}, {x, filter}, attrs, 2e-5f, "");
}

// Cells: what is fused, and by which engine it runs.
TEST(ConvolutionsByCudnn, WithWhatFollows) {
  const Tensor x = values({2, 6, 5, 4}, 1), filter = values({3, 3, 4, 4}, 2);
  const Tensor bias = values({4}, 3), addend = values({2, 6, 5, 4}, 4);
  const auto attrs_for = [](const Strings& fused, DType dtype) {
    AttrMap attrs;
    attrs.set("fused_ops", fused);
    attrs.set("filter_sizes", Ints{3, 3, 4, 4});
    attrs.set("strides", Ints{1, 1, 1, 1});
    attrs.set("padding", std::string("SAME"));
    attrs.set("Tout", dtype);
    return attrs;
  };
  for (const Strings& fused :
       {Strings{"BiasAdd", "Add", "Relu"}, Strings{"BiasAdd", "Add", "Tanh"}}) {
    const std::vector<Tensor> floats{x, filter, bias, addend};
    expect_by_cudnn("_FusedConv2D", floats, floats, attrs_for(fused, DType::kFloat), 2e-5f,
                    fused.back());
    std::vector<Tensor> narrow;
    for (const Tensor& one : floats) {
      const DeviceScope on("/CPU:0");
      narrow.push_back(cast(one, DType::kBFloat16));
    }
    const std::vector<float> wanted =
        run_on("/CPU:0", "_FusedConv2D", floats, attrs_for(fused, DType::kFloat));
    const long long before = used().tensor_core;
    EXPECT_THAT(run_on("/GPU:0", "_FusedConv2D", narrow, attrs_for(fused, DType::kBFloat16)),
                Pointwise(FloatNear(0.15f), wanted));
    if (fused.back() == "Relu") {
      EXPECT_GT(used().tensor_core, before) << "one graph with all that follows";
    }
  }
}

TEST(ConvolutionsByCudnn, KeepToFloatUnlessTensorFloat32IsEnabled) {
  const Tensor x = values({1, 6, 6, 3}, 1), filter = values({3, 3, 3, 5}, 2);
  const AttrMap attrs = attrs_of(kCases[0]);
  const long long before = used().tensor_core;
  run_on("/GPU:0", "Conv2D", {x, filter}, attrs);
  EXPECT_EQ(used().tensor_core, before);
  config::enable_tensor_float_32_execution(true);
  run_on("/GPU:0", "Conv2D", {x, filter}, attrs);
  config::enable_tensor_float_32_execution(false);
  EXPECT_GT(used().tensor_core, before);
}

TEST(ConvolutionsByCudnn, UseDeterministicEnginesUnderOpDeterminism) {
  const Tensor x = values({1, 6, 7, 3}, 1), filter = values({3, 3, 3, 5}, 2);
  const AttrMap attrs = attrs_of(kCases[0]);
  const CudnnStandInUse before = used();
  config::enable_op_determinism();
  run_on("/GPU:0", "Conv2D", {x, filter}, attrs);
  config::enable_op_determinism(false);
  EXPECT_EQ(used().nondeterministic, before.nondeterministic);
  EXPECT_EQ(used().plain, before.plain + 1) << "and nothing is measured";
}

TEST(ConvolutionsByCudnn, ArePlannedOnce) {
  const Tensor x = values({1, 5, 7, 3}, 1), filter = values({3, 3, 3, 5}, 2);
  const AttrMap attrs = attrs_of(kCases[0]);
  run_on("/GPU:0", "Conv2D", {x, filter}, attrs);
  const CudnnStandInUse before = used();
  for (int i = 0; i < 3; ++i) run_on("/GPU:0", "Conv2D", {x, filter}, attrs);
  EXPECT_EQ(used().heuristics, before.heuristics);
  EXPECT_EQ(used().plans, before.plans);
}

TEST(ConvolutionsByCublasLt, WhereTheFilterHasOneEntry) {
  const Ints sizes{2, 4, 5, 3}, results{2, 4, 5, 6}, one{1, 1, 3, 6};
  const Tensor x = values(sizes, 1), filter = values(one, 2), dy = values(results, 3);
  AttrMap attrs;
  attrs.set("strides", Ints{1, 1, 1, 1});
  attrs.set("padding", std::string("SAME"));
  const std::vector<std::pair<std::string, std::vector<Tensor>>> calls{
      {"Conv2D", {x, filter}},
      {"Conv2DBackpropInput", {sizes_of(sizes), filter, dy}},
      {"Conv2DBackpropFilter", {x, sizes_of(one), dy}}};
  for (const auto& [op, inputs] : calls) {
    const long long before = products(), convolutions = runs();
    EXPECT_THAT(run_on("/GPU:0", op, inputs, attrs),
                Pointwise(FloatNear(2e-5f), run_on("/CPU:0", op, inputs, attrs)))
        << op;
    EXPECT_EQ(products(), before + 1) << op;
    EXPECT_EQ(runs(), convolutions) << op;
  }
}

}  // namespace
}  // namespace tandem
