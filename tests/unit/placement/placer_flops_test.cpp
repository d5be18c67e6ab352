// What ops declare of their cost, through the cost model.

#include <cmath>

#include <gtest/gtest.h>

#include "tandem/graph/function.h"
#include "tandem/placement/cost_model.h"

#include "tests/unit/placement/placer_util.h"

namespace tandem::placer_test {
namespace {

class FlopsTest : public ::testing::Test {
 protected:
  FlopsTest() : s(devices(1)) {}

  Output of(PartialShape shape, DType dtype = float32) {
    return {s.source("", "", dtype, std::move(shape)), 0};
  }
  double flops(const char* op, std::vector<Output> inputs, AttrMap attrs = {}) {
    return CostModel::flops(*s.add(op, "", std::move(inputs), "", std::move(attrs)));
  }
  static AttrMap window(std::vector<std::int64_t> strides, const char* padding = "SAME") {
    return {{"strides", std::move(strides)}, {"padding", padding}};
  }
  static AttrMap pool(const char* padding = "VALID") {
    return {{"ksize", std::vector<std::int64_t>{1, 2, 3, 1}},
            {"strides", std::vector<std::int64_t>{1, 2, 3, 1}},
            {"padding", padding}};
  }
  Scene s;
};

TEST_F(FlopsTest, ElementwiseOpsByTheirLargestArgument) {
  EXPECT_EQ(flops("AddV2", {of({4, 3}), of({3})}), 12);
  EXPECT_EQ(flops("Exp", {of({4, 3})}), 12);
}

TEST_F(FlopsTest, Products) {
  EXPECT_EQ(flops("MatMul", {of({4, 3}), of({3, 2})}), 2 * 4 * 3 * 2);
  EXPECT_EQ(flops("MatMul", {of({3, 4}), of({3, 2})}, {{"transpose_a", true}}), 2 * 4 * 3 * 2);
  EXPECT_EQ(flops("BatchMatMulV2", {of({5, 4, 3}), of({5, 3, 2})}), 5 * 2 * 4 * 3 * 2);
  EXPECT_EQ(flops("BatchMatMulV2", {of({5, 3, 4}), of({5, 3, 2})}, {{"adj_x", true}}),
            5 * 2 * 4 * 3 * 2);
  EXPECT_EQ(flops("Einsum", {of({5, 4, 3}), of({5, 3, 2})}, {{"equation", "bij,bjk->bik"}}),
            5 * 2 * 4 * 3 * 2);
  EXPECT_EQ(flops("Einsum", {of({5, 4})}, {{"equation", "ij->i"}}), 20);
}

TEST_F(FlopsTest, UnknownSizesCountAsOne) {
  EXPECT_EQ(flops("MatMul", {of({-1, 3}), of({3, 2})}), 2 * 3 * 2);
  EXPECT_EQ(flops("MatMul", {of(PartialShape()), of({3, 2})}), 6);  // as if elementwise
}

TEST_F(FlopsTest, ConvolutionsAndTheirGradients) {
  const double forward = 2.0 * (2 * 8 * 8 * 4) * (3 * 3 * 5);
  EXPECT_EQ(flops("Conv2D", {of({2, 8, 8, 5}), of({3, 3, 5, 4})}, window({1, 1, 1, 1})), forward);
  const Output grad = of({2, 8, 8, 4});
  const Output input_sizes{
      s.add("Const", "", {}, "",
            {{"value", Array::vector(std::vector<std::int32_t>{2, 8, 8, 5})}, {"dtype", int32}}),
      0};
  const Output filter_sizes{
      s.add("Const", "", {}, "",
            {{"value", Array::vector(std::vector<std::int32_t>{3, 3, 5, 4})}, {"dtype", int32}}),
      0};
  EXPECT_EQ(
      flops("Conv2DBackpropInput", {input_sizes, of({3, 3, 5, 4}), grad}, window({1, 1, 1, 1})),
      forward);
  EXPECT_EQ(
      flops("Conv2DBackpropFilter", {of({2, 8, 8, 5}), filter_sizes, grad}, window({1, 1, 1, 1})),
      forward);
  EXPECT_EQ(
      flops("DepthwiseConv2dNative", {of({2, 8, 8, 5}), of({3, 3, 5, 2})}, window({1, 1, 1, 1})),
      2.0 * (2 * 8 * 8 * 10) * (3 * 3));
  EXPECT_EQ(flops("Conv3D", {of({1, 4, 4, 4, 2}), of({3, 3, 3, 2, 6})}, window({1, 1, 1, 1, 1})),
            2.0 * (4 * 4 * 4 * 6) * (27 * 2));
}

TEST_F(FlopsTest, Pooling) {
  EXPECT_EQ(flops("MaxPool", {of({1, 8, 9, 2})}, pool()), 4 * 3 * 2 * 6);
  EXPECT_EQ(flops("AvgPool", {of({1, 8, 9, 2})}, pool()), 4 * 3 * 2 * 6);
  EXPECT_EQ(flops("MaxPoolGrad", {of({1, 8, 9, 2}), of({1, 4, 3, 2}), of({1, 4, 3, 2})}, pool()),
            4 * 3 * 2 * 6);
}

TEST_F(FlopsTest, RecurrentLayers) {
  const Output state = of({2, 4}), peephole = of({4});
  EXPECT_EQ(flops("LSTMBlockCell",
                  {of({2, 3}), state, state, of({7, 16}), peephole, peephole, peephole, of({16})}),
            2 * 2 * 7 * 16);
  EXPECT_EQ(flops("BlockLSTM", {of({}, int64), of({5, 2, 3}), state, state, of({7, 16}), peephole,
                                peephole, peephole, of({16})}),
            5 * 2 * 2 * 7 * 16);
  EXPECT_EQ(flops("GRUBlockCell", {of({2, 3}), state, of({7, 8}), of({7, 4}), of({8}), of({4})}),
            2 * 2 * (7 * 8 + 7 * 4));
}

TEST_F(FlopsTest, MatricesAndTransforms) {
  EXPECT_EQ(flops("Cholesky", {of({5, 6, 6})}), 5 * 6 * 6 * 6 / 3);
  EXPECT_EQ(flops("FFT", {of({3, 8}, complex64)}), 5 * 24 * 3);
  EXPECT_EQ(flops("FFT2D", {of({4, 8}, complex64)}), 5 * 32 * 5);
}

TEST_F(FlopsTest, CallsCostWhatTheirBodiesDo) {
  Scene body(devices(1));
  Node* a = body.add("_Arg", "a", {}, "", {{"T", float32}, {"index", 0}});
  body.graph.set_output_shape(a, 0, Shape{3, 3});
  Node* product = body.add("MatMul", "product", {{a, 0}, {a, 0}});
  const Output sum{body.add("AddV2", "sum", {{product, 0}, {a, 0}}), 0};
  const FunctionRef f = std::make_shared<const Function>(
      "f", std::move(body.graph), std::vector<Node*>{a}, std::vector<Output>{sum});
  EXPECT_EQ(
      flops(
          "PartitionedCall", {of({3, 3})},
          {{"f", f}, {"Tin", std::vector<DType>{float32}}, {"Tout", std::vector<DType>{float32}}}),
      2 * 27 + 9);
}

}  // namespace
}  // namespace tandem::placer_test
