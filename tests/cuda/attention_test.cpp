// Attention through cuDNN on a device GPU:0, with stand-ins for the driver and the library.

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

#include "tests/cuda/cudnn_stand_in.h"

namespace tandem {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;
using Ints = std::vector<std::int64_t>;
using Strings = std::vector<std::string>;

long long attentions() {
  static const auto& control = [&]() -> const CudnnStandInControl& {
    void* const library = dlopen(TANDEM_CUDNN_STAND_IN, RTLD_NOW | RTLD_LOCAL);
    if (!library) std::abort();
    return *reinterpret_cast<const CudnnStandInControl* (*)()>(
        dlsym(library, "cudnn_stand_in_control"))();
  }();
  return control.used().attentions;
}

// Some numbers between -1 and 1.
Tensor values(const Ints& sizes, int seed) {
  const Shape shape(sizes);
  std::vector<float> all(static_cast<std::size_t>(shape.num_elements()));
  std::uint32_t state = static_cast<std::uint32_t>(seed) * 2654435761u + 12345u;
  for (float& value : all) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / static_cast<float>(1u << 23) - 1.0f;
  }
  const DeviceScope on("/CPU:0");
  return Tensor::from(all, shape);
}

std::vector<Tensor> as(DType dtype, const std::vector<Tensor>& tensors) {
  const DeviceScope on("/CPU:0");
  std::vector<Tensor> all;
  for (const Tensor& one : tensors)
    all.push_back(one.dtype() == DType::kBool ? one : cast(one, dtype));
  return all;
}

std::vector<float> run_on(const char* device, const std::vector<Tensor>& inputs,
                          const AttrMap& attrs) {
  config::set_soft_device_placement(false);
  Tensor result;
  {
    const DeviceScope on(device);
    result = raw_op("_FusedAttention", inputs, attrs)[0];
  }
  const DeviceScope on("/CPU:0");
  return cast(result, DType::kFloat).to_vector<float>();
}

AttrMap attrs_of(const Strings& axes, const Strings& ops, float scale = 1) {
  AttrMap attrs;
  attrs.set("axes", axes);
  attrs.set("fused_ops", ops);
  attrs.set("scale", scale);
  return attrs;
}

const Strings kHeadsThird{"BTND", "BSND", "BNTS", "BSNE", "BTNE"};

// On the GPU as on the CPU in float, `by_cudnn` calls of cuDNN for it.
void expect_as_in_float(DType dtype, const std::vector<Tensor>& inputs, const AttrMap& attrs,
                        long long by_cudnn) {
  const std::vector<float> wanted = run_on("/CPU:0", inputs, attrs);
  // Operands up to 1 are rounded, and so is the result.
  const float tolerance = dtype == DType::kFloat ? 2e-5f : dtype == DType::kHalf ? 3e-3f : 2e-2f;
  EXPECT_THAT(run_on("/CPU:0", as(dtype, inputs), attrs), Pointwise(FloatNear(tolerance), wanted));
  const long long before = attentions();
  EXPECT_THAT(run_on("/GPU:0", as(dtype, inputs), attrs), Pointwise(FloatNear(tolerance), wanted));
  // The first call may measure engines.
  if (by_cudnn == 0) {
    EXPECT_EQ(attentions(), before);
  } else {
    EXPECT_GE(attentions(), before + by_cudnn);
  }
}

std::vector<Tensor> heads_third(std::int64_t width = 8) {
  return {values({2, 9, 3, width}, 1), values({2, 11, 3, width}, 2), values({2, 11, 3, 16}, 3)};
}

TEST(AttentionByCudnn, OfSixteenBitFloats) {
  for (const DType dtype : {DType::kHalf, DType::kBFloat16}) {
    expect_as_in_float(dtype, heads_third(), attrs_of(kHeadsThird, {"Softmax"}), 1);
    expect_as_in_float(dtype, heads_third(), attrs_of(kHeadsThird, {"Softmax"}, 0.3f), 1);
  }
}

TEST(AttentionByCudnn, WithWhatIsAddedToTheScores) {
  for (const Ints& sizes : {Ints{2, 3, 9, 11}, Ints{2, 1, 1, 11}, Ints{9, 11}, Ints{1, 1, 9, 1}}) {
    std::vector<Tensor> inputs = heads_third();
    inputs.push_back(values(sizes, 4));
    expect_as_in_float(DType::kHalf, inputs, attrs_of(kHeadsThird, {"AddV2", "Softmax"}, 0.5f), 1);
  }
}

// Queries that may look at no key get the mean of all values, or nothing if probabilities are
// masked too.
TEST(AttentionByCudnn, WithMasks) {
  std::vector<float> keep(2 * 9 * 11);
  for (std::size_t i = 0; i < keep.size(); ++i)
    keep[i] = i % 3 != 0 && i / 11 % 9 != 4 ? 1.0f : 0.0f;
  std::vector<Tensor> inputs = heads_third();
  const Tensor added = values({9, 11}, 4);
  Tensor on_host, mask;
  {
    const DeviceScope on("/CPU:0");
    on_host = cast(Tensor::from(keep, {2, 1, 9, 11}), DType::kBool);
  }
  {
    // There, so that both masks are the same memory.
    const DeviceScope on("/GPU:0");
    mask = logical_and(on_host, on_host);
  }
  for (const DType dtype : {DType::kHalf, DType::kBFloat16}) {
    inputs.resize(3);
    inputs.push_back(mask);
    expect_as_in_float(dtype, inputs, attrs_of(kHeadsThird, {"Mask", "Softmax"}, 0.5f), 1);
    inputs.push_back(mask);
    expect_as_in_float(dtype, inputs, attrs_of(kHeadsThird, {"Mask", "Softmax", "Mask"}), 1);
    inputs[3] = added;
    expect_as_in_float(dtype, inputs, attrs_of(kHeadsThird, {"AddV2", "Mask", "Softmax"}), 1);
  }
  expect_as_in_float(DType::kFloat, inputs, attrs_of(kHeadsThird, {"AddV2", "Mask", "Softmax"}), 0);
}

TEST(AttentionByCudnn, WithKeysThatAllHeadsShare) {
  expect_as_in_float(DType::kHalf,
                     {values({2, 3, 6, 8}, 1), values({2, 7, 8}, 2), values({2, 7, 8}, 3)},
                     attrs_of({"BNTD", "BSD", "BNTS", "BSE", "BNTE"}, {"Softmax"}, 0.25f), 1);
}

TEST(AttentionByCudnn, OfMatrices) {
  expect_as_in_float(DType::kHalf, {values({5, 8}, 1), values({7, 8}, 2), values({7, 24}, 3)},
                     attrs_of({"TD", "SD", "TS", "SE", "TE"}, {"Softmax"}), 1);
}

// Our own kernel takes what cuDNN's engines refuse, and what they have no form for.
TEST(AttentionByOurOwnKernel, WhereCudnnDoesNotServe) {
  expect_as_in_float(DType::kFloat, heads_third(), attrs_of(kHeadsThird, {"Softmax"}), 0);
  expect_as_in_float(DType::kHalf, heads_third(5), attrs_of(kHeadsThird, {"Softmax"}, 0.3f), 0);
  std::vector<Tensor> inputs = heads_third();
  inputs.push_back(values({11}, 4));
  expect_as_in_float(DType::kHalf, inputs, attrs_of(kHeadsThird, {"Softmax", "Mul"}), 0);
  inputs.pop_back();
  {
    const DeviceScope on("/CPU:0");
    inputs.push_back(greater(values({9, 11}, 9), Tensor(-0.5f)));
    inputs.push_back(Tensor(-1e3f));
  }
  expect_as_in_float(DType::kBFloat16, inputs, attrs_of(kHeadsThird, {"SelectV2", "Softmax"}), 0);
  expect_as_in_float(DType::kHalf,
                     {values({2, 3, 6, 8}, 1), values({2, 8, 7}, 2), values({2, 8, 7}, 3)},
                     attrs_of({"BNTD", "BDS", "BNTS", "BES", "BNTE"}, {"Softmax"}), 0);
}

// A layer of a model with mixed precision: its graph has one attention, which cuDNN computes.
TEST(AttentionByCudnn, OfALayerWithMixedPrecision) {
  config::set_soft_device_placement(true);
  const auto predict = [](const char* device) {
    const DeviceScope on(device);
    keras::utils::set_random_seed(1);
    keras::mixed_precision::set_global_policy("mixed_float16");
    const keras::MultiHeadAttention layer(2, 8);
    keras::mixed_precision::set_global_policy("float32");
    const Tensor x = values({2, 40, 16}, 1), mask = values({2, 40, 40}, 5) > 0.0f;
    const auto f = function([&](const Tensor& in) { return layer.outputs({in, in, in, mask})[0]; });
    Tensor result;
    for (int i = 0; i < 4; ++i) result = f(x);
    return cast(result, DType::kFloat).to_vector<float>();
  };
  const std::vector<float> wanted = predict("/CPU:0");
  const long long before = attentions();
  EXPECT_THAT(predict("/GPU:0"), Pointwise(FloatNear(1e-2f), wanted));
  EXPECT_GT(attentions(), before);
}

}  // namespace
}  // namespace tandem
