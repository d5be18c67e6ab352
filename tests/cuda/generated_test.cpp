// Ops whose kernels are generated and compiled at run time (tandem/kernels/cuda/fused), on a device
// GPU:0 whose kernels run on the host, against the CPU's. Without NVRTC
// (TANDEM_CUDA_LIBRARIES=none, or no compiler for its stand-in) graphs are computed op by op, with
// the same results.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Strings = std::vector<std::string>;
using Ints = std::vector<std::int64_t>;

// Some floats between -2 and 2.
Tensor values(const Shape& shape, int seed, DType dtype = DType::kFloat) {
  std::vector<float> all(static_cast<std::size_t>(shape.num_elements()));
  std::uint32_t state = static_cast<std::uint32_t>(seed) * 2654435761u + 12345u;
  for (float& value : all) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / static_cast<float>(1u << 22) - 2.0f;
  }
  const DeviceScope on("/CPU:0");
  const Tensor made = Tensor::from(all, shape);
  return dtype == DType::kFloat ? made : cast(made, dtype);
}

std::vector<Tensor> run_on(const char* device, const std::string& op,
                           const std::vector<Tensor>& inputs, const AttrMap& attrs) {
  config::set_soft_device_placement(false);  // what has no kernel there is an error
  const DeviceScope on(device);
  return raw_op(op, inputs, attrs);
}

std::vector<float> floats(const Tensor& tensor) {
  const DeviceScope on("/CPU:0");
  return (tensor.dtype() == DType::kFloat ? tensor : cast(tensor, DType::kFloat))
      .to_vector<float>();
}

// NaN is like NaN, infinity like infinity of its sign.
void expect_alike(const Tensor& got, const Tensor& wanted, float tolerance,
                  const std::string& what) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  ASSERT_EQ(got.dtype(), wanted.dtype()) << what;
  const std::vector<float> a = floats(got), b = floats(wanted);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(b[i]) || std::isinf(b[i])) {
      ASSERT_TRUE(std::isnan(b[i]) ? std::isnan(a[i]) : a[i] == b[i])
          << what << ", element " << i << ": " << a[i] << ", not " << b[i];
    } else {
      ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0f, std::abs(b[i])))
          << what << ", element " << i;
    }
  }
}

// Programs are written op by op.
struct Program {
  Strings ops;
  Ints operands;
  std::int64_t add(const std::string& op, const Ints& of) {
    ops.push_back(op);
    operands.push_back(static_cast<std::int64_t>(of.size()));
    operands.insert(operands.end(), of.begin(), of.end());
    return -static_cast<std::int64_t>(ops.size());
  }
  AttrMap attrs(DType output) const {
    AttrMap all{{"T", output}};
    all.set("ops", ops);
    all.set("operands", operands);
    return all;
  }
};

// Whether kernels are generated here. Any failure but the want of a kernel is one.
bool has_nvrtc() {
  Program copy;
  copy.add("Neg", {0});
  try {
    run_on("/GPU:0", "_FusedElementwise", {values({2}, 1)}, copy.attrs(DType::kFloat));
    return true;
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("Ask for a device that has a kernel for _FusedElementwise"));
    return false;
  }
}

class Generated : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_nvrtc()) GTEST_SKIP() << "There is no NVRTC, or no compiler for its stand-in.";
  }

  static void expect_as_on_cpu(const std::string& op, const std::vector<Tensor>& inputs,
                               const AttrMap& attrs, const std::string& what,
                               float tolerance = 2e-5f) {
    const std::vector<Tensor> wanted = run_on("/CPU:0", op, inputs, attrs);
    const std::vector<Tensor> got = run_on("/GPU:0", op, inputs, attrs);
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) expect_alike(got[i], wanted[i], tolerance, what);
  }
};

struct Fusible {
  const char* op;
  int elements;
};
constexpr Fusible kFusible[] = {
#define TANDEM_CUDA_FUSIBLE(OP, FUNCTION, ELEMENTS) {OP, ELEMENTS},
#include "tandem/kernels/cuda/elementwise/fusible.inc"
#undef TANDEM_CUDA_FUSIBLE
};

// One kernel has them all: each row of its result is one op's, as a mask says.
TEST_F(Generated, EveryOpThatTheyTakeIn) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  std::vector<float> x, y;
  for (const float a :
       {0.0f, -0.0f, 0.3f, -0.7f, 1.0f, 2.5f, -3.25f, 7.0f, 30.0f, inf, -inf, nan}) {
    for (const float b : {0.0f, 0.5f, -1.5f, 2.0f, 6.5f, inf, nan}) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  const auto columns = static_cast<std::int64_t>(x.size());
  const auto rows = static_cast<std::int64_t>(std::size(kFusible));
  std::vector<Tensor> inputs;
  {
    const DeviceScope on("/CPU:0");
    inputs = {Tensor::from(x, {1, columns}), Tensor::from(y, {1, columns})};
  }
  Program program;
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const Fusible& one = kFusible[static_cast<std::size_t>(i)];
    std::vector<float> mask(static_cast<std::size_t>(rows), 0.0f);
    mask[static_cast<std::size_t>(i)] = 1.0f;
    {
      const DeviceScope on("/CPU:0");
      inputs.push_back(Tensor::from(mask, {rows, 1}));
    }
    const std::int64_t result = program.add(one.op, one.elements == 1 ? Ints{0} : Ints{0, 1});
    const std::int64_t masked = program.add("MulNoNan", {result, i + 2});
    sum = i == 0 ? masked : program.add("AddV2", {sum, masked});
  }
  const AttrMap attrs = program.attrs(DType::kFloat);
  const std::vector<float> wanted = floats(run_on("/CPU:0", "_FusedElementwise", inputs, attrs)[0]);
  const std::vector<float> got = floats(run_on("/GPU:0", "_FusedElementwise", inputs, attrs)[0]);
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::size_t row = i / x.size(), column = i % x.size();
    const auto where = [&] {
      return std::string(kFusible[row].op) + '(' + std::to_string(x[column]) + ", " +
             std::to_string(y[column]) + ')';
    };
    if (std::isnan(wanted[i]) || std::isinf(wanted[i])) {
      EXPECT_TRUE(std::isnan(wanted[i]) ? std::isnan(got[i]) : got[i] == wanted[i])
          << where() << " is " << got[i] << ", not " << wanted[i];
    } else {
      EXPECT_NEAR(got[i], wanted[i], 2e-5f * std::max(1.0f, std::abs(wanted[i]))) << where();
    }
  }
}

// Against the CPU's ops one by one: it has no fused op for double.
TEST_F(Generated, EveryOpInDouble) {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> x, y;
  for (const double a : {0.0, -0.0, 0.3, -0.7, 1.0, 2.5, -3.25, 7.1, 30.0, inf, -inf}) {
    for (const double b : {0.0, 0.5, -1.5, 2.0, 6.7, inf}) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  const auto columns = static_cast<std::int64_t>(x.size());
  const auto rows = static_cast<std::int64_t>(std::size(kFusible));
  const auto on_cpu = [](const std::vector<double>& all, const Shape& shape) {
    const DeviceScope on("/CPU:0");
    return Tensor::from(all, shape);
  };
  const Tensor first = on_cpu(x, {1, columns}), second = on_cpu(y, {1, columns});
  std::vector<Tensor> inputs{first, second};
  Program program;
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const Fusible& one = kFusible[static_cast<std::size_t>(i)];
    std::vector<double> mask(static_cast<std::size_t>(rows), 0.0);
    mask[static_cast<std::size_t>(i)] = 1.0;
    inputs.push_back(on_cpu(mask, {rows, 1}));
    const std::int64_t result = program.add(one.op, one.elements == 1 ? Ints{0} : Ints{0, 1});
    const std::int64_t masked = program.add("MulNoNan", {result, i + 2});
    sum = i == 0 ? masked : program.add("AddV2", {sum, masked});
  }
  const std::vector<double> got =
      run_on("/GPU:0", "_FusedElementwise", inputs, program.attrs(DType::kDouble))[0]
          .to_vector<double>();
  for (std::size_t row = 0; row < std::size(kFusible); ++row) {
    const std::string op = kFusible[row].op;
    std::vector<double> wanted = x;
    if (op != "Cast" && op != "BroadcastTo") {
      const std::vector<Tensor> operands =
          kFusible[row].elements == 1 ? std::vector{first} : std::vector{first, second};
      wanted = run_on("/CPU:0", op, operands, {})[0].to_vector<double>();
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double one = got[row * x.size() + i];
      const std::string where = op + '(' + std::to_string(x[i]) + ", " + std::to_string(y[i]) + ')';
      if (std::isnan(wanted[i]) || std::isinf(wanted[i])) {
        EXPECT_TRUE(std::isnan(wanted[i]) ? std::isnan(one) : one == wanted[i])
            << where << " is " << one << ", not " << wanted[i];
      } else {
        EXPECT_NEAR(one, wanted[i], 1e-12 * std::max(1.0, std::abs(wanted[i]))) << where;
      }
    }
  }
}

TEST_F(Generated, DoubleIsNotMixedWithOtherFloats) {
  Program program;
  program.add("Mul", {0, 1});
  const Tensor narrow = values({4}, 1), wide = values({4}, 2, DType::kDouble);
  for (const DType output : {DType::kFloat, DType::kDouble}) {
    EXPECT_THROW(run_on("/GPU:0", "_FusedElementwise", {narrow, wide}, program.attrs(output)),
                 InvalidArgumentError);
  }
}

TEST_F(Generated, EveryWayToBroadcast) {
  Program program;
  const std::int64_t product = program.add("Mul", {0, 1});
  program.add("Sub", {product, 0});
  const Shape whole{3, 5, 2, 7};
  const std::vector<Shape> others = {{},           {1},          {7},         {2, 7},
                                     {5, 1, 1},    {3, 1, 1, 1}, {5, 1, 7},   {3, 1, 2, 1},
                                     {3, 1, 2, 7}, {1, 1, 1, 7}, {3, 5, 2, 7}};
  for (const Shape& other : others) {
    expect_as_on_cpu("_FusedElementwise", {values(whole, 1), values(other, 2)},
                     program.attrs(DType::kFloat), other.to_string());
  }
  // None of the inputs has the shape of the result.
  expect_as_on_cpu("_FusedElementwise", {values({3, 1, 7}, 1), values({5, 1}, 2)},
                   program.attrs(DType::kFloat), "outer product");
}

TEST_F(Generated, FloatsOf16And32Bits) {
  Program program;
  const std::int64_t sum = program.add("AddN", {0, 1, 0});
  program.add("Tanh", {sum});
  constexpr DType kTypes[] = {DType::kFloat, DType::kHalf, DType::kBFloat16};
  for (const DType first : kTypes) {
    for (const DType second : kTypes) {
      for (const DType output : kTypes) {
        expect_as_on_cpu("_FusedElementwise", {values({9, 31}, 1, first), values({31}, 2, second)},
                         program.attrs(output), "", output == DType::kFloat ? 2e-5f : 8e-3f);
      }
    }
  }
}

TEST_F(Generated, NoElementsAndMoreThanAGridHas) {
  Program program;
  program.add("Square", {0});
  expect_as_on_cpu("_FusedElementwise", {values({0, 3}, 1)}, program.attrs(DType::kFloat), "none");
  expect_as_on_cpu("_FusedElementwise", {values({1}, 1)}, program.attrs(DType::kFloat), "one");
  expect_as_on_cpu("_FusedElementwise", {values({1, 20011}, 1)}, program.attrs(DType::kFloat),
                   "many");
}

TEST_F(Generated, SumsOfRows) {
  Program program;
  const std::int64_t square = program.add("Square", {0});
  program.add("Mul", {square, 1});
  for (const Shape& shape : {Shape{4, 3}, Shape{700, 1}, Shape{2, 150, 33}, Shape{5000, 3},
                             Shape{1, 70}, Shape{0, 4}, Shape{3, 0}}) {
    for (const bool mean : {false, true}) {
      if (mean && shape[0] == 0) continue;
      AttrMap attrs = program.attrs(DType::kFloat);
      attrs.set("mean", mean);
      attrs.set("keep_dims", mean);
      const Shape row{shape[shape.rank() - 1]};
      expect_as_on_cpu("_FusedSum", {values(shape, 1), values(row, 2)}, attrs, shape.to_string(),
                       1e-4f);
    }
  }
  AttrMap narrow = program.attrs(DType::kBFloat16);
  expect_as_on_cpu("_FusedSum", {values({65, 40}, 1, DType::kBFloat16), values({40}, 2)}, narrow,
                   "bfloat16", 8e-3f);
}

TEST_F(Generated, AValueAndSumsAlongIt) {
  Program program;
  const std::int64_t value = program.add("ReluGrad", {0, 1});
  const std::int64_t product = program.add("Mul", {value, 2});
  for (const Shape& shape : {Shape{6, 5}, Shape{3, 400, 9}}) {
    AttrMap attrs = program.attrs(DType::kFloat);
    attrs.set("Tsum", DType::kFloat);
    attrs.set("num_sums", std::int64_t{2});
    attrs.set("results", Ints{value, value, product});
    attrs.set("sum_ranks", Ints{1, shape.rank()});
    expect_as_on_cpu("_FusedElementwiseSums",
                     {values(shape, 1), values(shape, 2), values({shape[shape.rank() - 1]}, 3)},
                     attrs, shape.to_string(), 1e-4f);
  }
}

// Against the CPU's ops one by one, to the digits that a double has.
TEST_F(Generated, SumsInDouble) {
  Program program;
  const std::int64_t value = program.add("Square", {0});
  const std::int64_t product = program.add("Mul", {value, 1});
  const auto expect_close = [](const Tensor& got, const Tensor& wanted, const Shape& shape) {
    ASSERT_EQ(got.dtype(), DType::kDouble);
    ASSERT_EQ(got.shape(), wanted.shape()) << shape;
    const std::vector<double> a = got.to_vector<double>(), b = wanted.to_vector<double>();
    for (std::size_t i = 0; i < b.size(); ++i)
      EXPECT_NEAR(a[i], b[i], 1e-13 * std::max(1.0, std::abs(b[i]))) << shape << ", column " << i;
  };
  for (const Shape& shape : {Shape{4, 3}, Shape{700, 1}, Shape{2, 150, 33}, Shape{5000, 3}}) {
    const Tensor x = values(shape, 1, DType::kDouble);
    const Tensor row = values({shape[shape.rank() - 1]}, 2, DType::kDouble);
    std::vector<Tensor> wanted;
    {
      const DeviceScope on("/CPU:0");
      std::vector<std::int64_t> axes;
      for (int axis = 0; axis < shape.rank() - 1; ++axis) axes.push_back(axis);
      wanted = {square(x), reduce_mean(square(x) * row, axes), reduce_sum(square(x), axes)};
    }
    AttrMap attrs = program.attrs(DType::kDouble);
    attrs.set("mean", true);
    expect_close(run_on("/GPU:0", "_FusedSum", {x, row}, attrs)[0], wanted[1], shape);
    AttrMap along = program.attrs(DType::kDouble);
    along.set("Tsum", DType::kDouble);
    along.set("num_sums", std::int64_t{2});
    along.set("results", Ints{value, value, product});
    along.set("sum_ranks", Ints{1, 1});
    const std::vector<Tensor> got = run_on("/GPU:0", "_FusedElementwiseSums", {x, row}, along);
    expect_close(got[0], wanted[0], shape);
    expect_close(got[1], wanted[2], shape);
    along.set("Tsum", DType::kFloat);
    EXPECT_THROW(run_on("/GPU:0", "_FusedElementwiseSums", {x, row}, along), InvalidArgumentError);
  }
}

TEST_F(Generated, WhatIsWrongIsAnError) {
  Program missing;
  missing.add("Neg", {3});
  EXPECT_THROW(
      run_on("/GPU:0", "_FusedElementwise", {values({2}, 1)}, missing.attrs(DType::kFloat)),
      InvalidArgumentError);
  Program unknown;
  unknown.add("BesselI0", {0});
  try {
    run_on("/GPU:0", "_FusedElementwise", {values({2}, 1)}, unknown.attrs(DType::kFloat));
    FAIL() << "no error";
  } catch (const UnimplementedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("op BesselI0 cannot be part of a generated kernel"));
  }
}

// ---- Graphs ----

std::vector<std::string> ops_of(const Explanation& explained) {
  std::vector<std::string> ops;
  for (const Explanation::Op& op : explained.ops) ops.push_back(op.op);
  return ops;
}

// Small values too: on a GPU each launch costs time.
TEST(GraphsOnGpu, FuseTreesWhereThereIsNvrtc) {
  const bool fused = has_nvrtc();
  config::set_soft_device_placement(true);
  const auto body = [](Tensor x) { return tanh(x * 2.0f + 1.0f) - x; };
  const Tensor x = values({3, 4}, 1);
  const auto f = function(body);
  const Explanation explained = explain(f, x);
  if (fused) {
    EXPECT_THAT(ops_of(explained), Contains("_FusedElementwise"));
    EXPECT_THAT(ops_of(explained), Not(Contains("Tanh")));
  } else {
    EXPECT_THAT(ops_of(explained), Not(Contains("_FusedElementwise")));
    EXPECT_THAT(ops_of(explained), Contains("Tanh"));
  }
  const Tensor got = f(x);
  const DeviceScope on("/CPU:0");
  expect_alike(got, body(x), 2e-5f, "");
}

TEST(GraphsOnGpu, FuseTreesOfDouble) {
  const bool fused = has_nvrtc();
  config::set_soft_device_placement(true);
  const auto body = [](Tensor x) { return tanh(x * 2.0 + 1.0) - x / 3.0; };
  const Tensor x = values({3, 4}, 1, DType::kDouble);
  const auto f = function(body);
  const std::vector<std::string> ops = ops_of(explain(f, x));
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "_FusedElementwise"), fused ? 1 : 0);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Tanh"), fused ? 0 : 1);
  const std::vector<double> got = f(x).to_vector<double>();
  const DeviceScope on("/CPU:0");
  const std::vector<double> wanted = body(x).to_vector<double>();
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-14);
}

TEST(GraphsOnGpu, FuseSumsOfDouble) {
  const bool fused = has_nvrtc();
  config::set_soft_device_placement(true);
  const auto body = [](Tensor x) { return reduce_sum(tanh(x * 2.0 + 1.0), {0}); };
  const Tensor x = values({30, 4}, 1, DType::kDouble);
  const auto f = function(body);
  const std::vector<std::string> ops = ops_of(explain(f, x));
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "_FusedSum"), fused ? 1 : 0);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Sum"), fused ? 0 : 1);
  const std::vector<double> got = f(x).to_vector<double>();
  const DeviceScope on("/CPU:0");
  const std::vector<double> wanted = body(x).to_vector<double>();
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-13);
}

// What is rounded to float on the way is rounded all the same.
TEST(GraphsOnGpu, KeepDoubleAndFloatApart) {
  config::set_soft_device_placement(true);
  const auto body = [](Tensor x) {
    const Tensor rounded = cast(x * 1.1 + 0.3, DType::kFloat);
    return cast(rounded * 2.0f - 0.1f, DType::kDouble) * 3.0 - x;
  };
  const Tensor x = values({50}, 1, DType::kDouble);
  const std::vector<double> got = function(body)(x).to_vector<double>();
  const DeviceScope on("/CPU:0");
  const std::vector<double> wanted = body(x).to_vector<double>();
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-14);
}

// An op that no generated kernel takes in stays as it is, and so does what depends on it.
TEST(GraphsOnGpu, LeaveOpsOutThatKernelsAreNotGeneratedOf) {
  config::set_soft_device_placement(true);
  const auto body = [](Tensor x) {
    return raw_op("LeakyRelu", {exp(x) - 1.0f}, {{"alpha", 0.25f}})[0] * 3.0f + 2.0f;
  };
  const Tensor x = values({5, 7}, 1);
  const auto f = function(body);
  EXPECT_THAT(ops_of(explain(f, x)), Contains("LeakyRelu"));
  const Tensor got = f(x);
  const DeviceScope on("/CPU:0");
  expect_alike(got, body(x), 2e-5f, "");
}

}  // namespace
}  // namespace tandem
