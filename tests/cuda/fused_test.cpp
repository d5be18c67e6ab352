// Fused ops on a device GPU:0 whose kernels run on the host, against the CPU's.

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::FloatNear;
using ::testing::Not;
using ::testing::Pointwise;
using Strings = std::vector<std::string>;
using Ints = std::vector<std::int64_t>;

// Some floats between -1 and 1.
Tensor values(const Shape& shape, int seed) {
  std::vector<float> all(static_cast<std::size_t>(shape.num_elements()));
  std::uint32_t state = static_cast<std::uint32_t>(seed) * 2654435761u + 12345u;
  for (float& value : all) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / static_cast<float>(1u << 23) - 1.0f;
  }
  const DeviceScope on("/CPU:0");
  return Tensor::from(all, shape);
}

std::vector<Tensor> run_on(const char* device, const std::string& op,
                           const std::vector<Tensor>& inputs, const AttrMap& attrs) {
  config::set_soft_device_placement(false);  // what has no kernel there is an error
  const DeviceScope on(device);
  return raw_op(op, inputs, attrs);
}

void expect_as_on_cpu(const std::string& op, const std::vector<Tensor>& inputs,
                      const AttrMap& attrs, const std::string& what = {}) {
  const std::vector<Tensor> wanted = run_on("/CPU:0", op, inputs, attrs);
  const std::vector<Tensor> got = run_on("/GPU:0", op, inputs, attrs);
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].shape(), wanted[i].shape()) << what;
    EXPECT_THAT(got[i].to_vector<float>(),
                Pointwise(FloatNear(2e-5f), wanted[i].to_vector<float>()))
        << op << ' ' << what;
  }
}

const char* const kActivations[] = {"Relu", "Relu6",   "Elu",       "LeakyRelu",
                                    "Tanh", "Sigmoid", "GeluExact", "GeluApproximate",
                                    "Swish"};

TEST(FusedOnGpu, ProductsWithEachActivation) {
  const Tensor a = values({5, 7}, 1), b = values({7, 19}, 2), bias = values({19}, 3);
  for (const char* activation : kActivations) {
    AttrMap attrs;
    attrs.set("fused_ops", Strings{"BiasAdd", activation});
    attrs.set("num_args", std::int64_t{1});
    expect_as_on_cpu("_FusedMatMul", {a, b, bias}, attrs, activation);
  }
}

TEST(FusedOnGpu, ProductsOfTransposedMatricesWithSomethingAdded) {
  AttrMap attrs;
  attrs.set("fused_ops", Strings{"BiasAdd", "Add", "Relu"});
  attrs.set("num_args", std::int64_t{2});
  attrs.set("transpose_a", true);
  attrs.set("transpose_b", true);
  const Tensor b = values({19, 7}, 2), bias = values({19}, 3);
  expect_as_on_cpu("_FusedMatMul", {values({7, 5}, 1), b, bias, values({5, 19}, 4)}, attrs);
  expect_as_on_cpu("_FusedMatMul", {values({7, 5}, 1), b, bias, values({1, 19}, 4)}, attrs);
  expect_as_on_cpu("_FusedMatMul", {values({7, 1}, 1), b, bias, values({6, 19}, 4)}, attrs);
}

TEST(FusedOnGpu, ConvolutionsWithWhatFollows) {
  const Tensor image = values({2, 6, 5, 4}, 1), bias = values({4}, 2);
  for (const bool depthwise : {false, true}) {
    const Ints sizes = depthwise ? Ints{3, 3, 4, 1} : Ints{3, 3, 4, 4};
    AttrMap attrs;
    attrs.set("fused_ops", Strings{"BiasAdd", "Add", "Relu"});
    attrs.set("filter_sizes", sizes);
    attrs.set("depthwise", depthwise);
    attrs.set("strides", Ints{1, 1, 1, 1});
    attrs.set("padding", std::string("SAME"));
    attrs.set("Tout", DType::kFloat);
    expect_as_on_cpu("_FusedConv2D",
                     {image, values(Shape(sizes), 3), bias, values({2, 6, 5, 4}, 4)}, attrs,
                     depthwise ? "depthwise" : "");
  }
}

TEST(FusedOnGpu, MomentsOfChannels) {
  for (const Shape& shape : {Shape{7, 5}, Shape{3, 1100, 2}, Shape{4, 5, 6, 40}}) {
    Tensor x = values(shape, 1);
    {
      const DeviceScope on("/CPU:0");
      x = x + 1000.0f;  // far from zero
    }
    AttrMap attrs;
    attrs.set("Tout", DType::kFloat);
    attrs.set("keep_variance_dims", true);
    const std::vector<Tensor> wanted = run_on("/CPU:0", "_Moments", {x}, attrs);
    const std::vector<Tensor> got = run_on("/GPU:0", "_Moments", {x}, attrs);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(got[i].shape(), wanted[i].shape());
      EXPECT_THAT(got[i].to_vector<float>(),
                  Pointwise(FloatNear(i == 0 ? 1e-3f : 1e-5f), wanted[i].to_vector<float>()));
    }
  }
}

// ---- Graphs ----

std::vector<std::string> ops_of(const Explanation& explained) {
  std::vector<std::string> ops;
  for (const Explanation::Op& op : explained.ops) ops.push_back(op.op);
  return ops;
}

class FusingOnGpu : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override { config::set_soft_device_placement(true); }

  // Whether `body` of x, whose elements are of the test's dtype, has an op `fused` on the GPU and
  // none of the others, and makes there what it makes of floats on the CPU.
  static void expect_fused(const std::function<Tensor(const Tensor&)>& body, const Tensor& x,
                           const std::string& fused, const Strings& others) {
    const Tensor narrow = on_cpu([&] { return cast(x, GetParam()); });
    const auto f = function(body);
    const Strings ops = ops_of(explain(f, narrow));
    EXPECT_THAT(ops, Contains(fused));
    for (const std::string& other : others) EXPECT_THAT(ops, Not(Contains(other)));
    const Tensor got = f(narrow);
    EXPECT_EQ(got.dtype(), GetParam());
    const float tolerance = GetParam() == DType::kFloat  ? 2e-5f
                            : GetParam() == DType::kHalf ? 4e-3f
                                                         : 3e-2f;
    const Tensor wanted = on_cpu([&] { return body(cast(narrow, DType::kFloat)); });
    EXPECT_THAT(on_cpu([&] { return cast(got, DType::kFloat); }).to_vector<float>(),
                Pointwise(FloatNear(tolerance), wanted.to_vector<float>()));
  }
  static Tensor on_cpu(const std::function<Tensor()>& make) {
    const DeviceScope on("/CPU:0");
    return make();
  }
};

// As in a training step: the weights are variables.
TEST_P(FusingOnGpu, ProductsWithWhatFollows) {
  const Variable w(values({7, 19}, 2)), b(values({19}, 3));
  expect_fused(
      [&](const Tensor& x) {
        return nn::relu(nn::bias_add(matmul(x, cast(w, x.dtype())), cast(b, x.dtype())));
      },
      values({5, 7}, 1), "_FusedMatMul", {"MatMul", "BiasAdd", "Relu"});
}

// As a layer on three axes has it.
TEST_P(FusingOnGpu, ProductsWithWhatFollowsAReshape) {
  const Variable w(values({7, 19}, 2)), b(values({19}, 3));
  const auto layer = [&](const Tensor& x) {
    const Tensor flat = matmul(reshape(x, {-1, 7}), cast(w, x.dtype()));
    return nn::bias_add(reshape(flat, {2, 5, 19}), cast(b, x.dtype()));
  };
  expect_fused([&](const Tensor& x) { return nn::relu(layer(x)); }, values({2, 5, 7}, 1),
               "_FusedMatMul", {"MatMul", "BiasAdd", "Relu"});
  const Tensor residual = values({2, 5, 19}, 4);
  expect_fused([&](const Tensor& x) { return layer(x) + cast(residual, x.dtype()); },
               values({2, 5, 7}, 1), "_FusedMatMul", {"MatMul", "BiasAdd", "AddV2"});
}

// A step that trains it: the forward product is one op, and what its gradient reads is there.
TEST(TrainingOnGpu, FusesALayerOnThreeAxes) {
  const Tensor x = values({2, 5, 7}, 1);
  const auto gradients_on = [&](const char* device, Strings* ops) {
    const DeviceScope on(device);
    const Variable w(values({7, 19}, 2)), b(values({19}, 3));
    const auto step = function([&](const Tensor& in) {
      GradientTape tape;
      const Tensor flat = matmul(reshape(in, {-1, 7}), w);
      const Tensor y = nn::relu(nn::bias_add(reshape(flat, {2, 5, 19}), b));
      const std::vector<Tensor> gradients = tape.gradient(reduce_sum(y * y), {w, b});
      return std::vector<Tensor>{y, gradients[0], gradients[1]};
    });
    if (ops) *ops = ops_of(explain(step, x));
    std::vector<float> all;
    for (const Tensor& value : step(x)) {
      const std::vector<float> of_one = value.to_vector<float>();
      all.insert(all.end(), of_one.begin(), of_one.end());
    }
    return all;
  };
  Strings ops;
  const std::vector<float> got = gradients_on("/GPU:0", &ops);
  EXPECT_THAT(got, Pointwise(FloatNear(1e-4f), gradients_on("/CPU:0", nullptr)));
  EXPECT_THAT(ops, Contains("_FusedMatMul"));
  EXPECT_THAT(ops, Not(Contains("BiasAdd")));
  EXPECT_THAT(ops, Not(Contains("Relu")));
}

TEST_P(FusingOnGpu, ConvolutionsWithWhatFollows) {
  const Variable w(values({3, 3, 4, 6}, 2)), b(values({6}, 3));
  expect_fused(
      [&](const Tensor& x) {
        const Tensor y = nn::conv2d(x, cast(w, x.dtype()), 1, "SAME");
        return nn::relu(nn::bias_add(y, cast(b, x.dtype())));
      },
      values({2, 6, 5, 4}, 1) * 0.3f, "_FusedConv2D", {"Conv2D", "BiasAdd", "Relu"});
}

TEST_P(FusingOnGpu, MomentsOfWhatACastWidens) {
  expect_fused(
      [](const Tensor& x) {
        const Tensor wide = cast(x, DType::kFloat), mean = reduce_mean(wide, {0, 1});
        return cast(reduce_mean(math::squared_difference(wide, mean), {0, 1}) + mean, x.dtype());
      },
      values({9, 5, 4}, 1), "_Moments", {"SquaredDifference", "Mean"});
}

INSTANTIATE_TEST_SUITE_P(DTypes, FusingOnGpu,
                         testing::Values(DType::kFloat, DType::kHalf, DType::kBFloat16),
                         [](const auto& dtype) { return std::string(dtype_name(dtype.param)); });

// A CPU has its weights in the cache of the core that changed them, and no products in half.
TEST(FusingOnCpu, LeavesProductsWithWeightsThatChange) {
  const DeviceScope on("/CPU:0");
  const Variable w(values({7, 19}, 2)), b(values({19}, 3));
  const auto f =
      function([&](const Tensor& x) { return nn::relu(nn::bias_add(matmul(x, w), Tensor(b))); });
  EXPECT_THAT(ops_of(explain(f, values({5, 7}, 1))), Contains("MatMul"));
}

Tensor mask(const Shape& shape) {
  const DeviceScope on("/CPU:0");
  return greater(values(shape, 9), Tensor(-0.5f));
}

TEST(FusedOnGpu, AttentionWithWhatIsDoneToTheScores) {
  const DeviceScope on("/CPU:0");
  const Tensor bias = values({2, 1, 9, 11}, 4), scale = Tensor(0.3f), low = Tensor(-1e9f);
  const Tensor factor = values({11}, 5);
  AttrMap attrs;
  attrs.set("axes", Strings{"BTND", "BSND", "BNTS", "BSNE", "BTNE"});
  attrs.set("fused_ops", Strings{"Mul", "AddV2", "SelectV2", "Softmax", "RealDiv", "Sub"});
  expect_as_on_cpu("_FusedAttention",
                   {values({2, 9, 3, 5}, 1), values({2, 11, 3, 5}, 2), values({2, 11, 3, 4}, 3),
                    scale, bias, mask({9, 11}), low, Tensor(0.5f), factor},
                   attrs);
  // Keys that all heads share, values in columns, and a mask of queries.
  attrs.set("axes", Strings{"BNTD", "BDS", "BNTS", "BES", "BNTE"});
  attrs.set("fused_ops", Strings{"SelectV2", "Softmax"});
  expect_as_on_cpu("_FusedAttention",
                   {values({2, 3, 6, 5}, 1), values({2, 5, 70}, 2), values({2, 4, 70}, 3),
                    mask({2, 1, 6, 1}), values({70}, 6)},
                   attrs);
}

TEST(FusedOnGpu, AttentionToMoreKeysThanSharedMemoryHolds) {
  AttrMap attrs;
  attrs.set("axes", Strings{"TD", "SD", "TS", "SE", "TE"});
  attrs.set("fused_ops", Strings{"Softmax"});
  for (const std::int64_t keys : {5000, 12001}) {
    expect_as_on_cpu("_FusedAttention",
                     {values({3, 2}, 1), values({keys, 2}, 2), values({keys, 3}, 3)}, attrs);
  }
}

TEST(FusedOnGpu, EndsOfRecurrentSteps) {
  expect_as_on_cpu("_LstmGates", {values({3, 20}, 1), values({3, 5}, 2)}, {});
  expect_as_on_cpu("_LstmGates", {values({3, 20}, 1), values({1, 5}, 2)}, {});
  expect_as_on_cpu("_GruGates", {values({3, 15}, 1), values({3, 15}, 2), values({3, 5}, 3)}, {});
  expect_as_on_cpu("_GruGates", {values({3, 15}, 1), values({1, 15}, 2), values({1, 5}, 3)}, {});
}

}  // namespace
}  // namespace tandem
