// What is computed from a broadcast value and scalars is computed before it is broadcast; sums over
// no axes and reshapes to the same shape are gone once shapes are known.

#include <vector>

#include <gtest/gtest.h>

#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/pad_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/ops/fusion_util.h"

namespace tandem {
namespace {

using Tensors = std::vector<Tensor>;

const Node* producer(const MutableFunction& f, std::string_view op) {
  const Node* node = only_node(f, op);
  return node ? node->inputs()[0].node : nullptr;
}

TEST(BroadcastLate, ComputesOnFewerElements) {
  const Body body = [](const Tensors& x) {
    return Tensors{reverse(tanh(broadcast_to(x[0], {64, 96}) / 64.0 * x[1]), {0})};
  };
  const Tensors args{numbers({96}, 1), numbers({}, 2)};
  const MutableFunction f = optimized_graph(body, args);
  ASSERT_NE(producer(f, "BroadcastTo"), nullptr);
  EXPECT_EQ(producer(f, "BroadcastTo")->op().name, "Tanh") << f.graph.to_string();
  EXPECT_EQ(producer(f, "Tanh")->output_shape(0), PartialShape({96}));
  EXPECT_EQ(producer(f, "ReverseV2")->op().name, "BroadcastTo");
  expect_as_eager(body, args, 0);
}

TEST(BroadcastLate, LeavesWhatNeedsTheWholeValue) {
  const auto stays = [](const Body& body, const Tensors& args) {
    const MutableFunction f = optimized_graph(body, args);
    EXPECT_EQ(producer(f, "BroadcastTo")->kind(), NodeKind::kArg) << f.graph.to_string();
    expect_as_eager(body, args, 0);
  };
  // Another operand that is no scalar; one of shape [1, 1, 1], which gives the result a new axis.
  const Body subtract = [](const Tensors& x) { return Tensors{broadcast_to(x[0], {4, 6}) - x[1]}; };
  stays(subtract,
        {cast(numbers({6}, 1), DType::kDouble), cast(numbers({4, 6}, 2), DType::kDouble)});
  stays(subtract, {numbers({6}, 1), numbers({1, 1, 1}, 2)});
  // Nothing: what is computed of it cannot fail.
  const Body divide = [](const Tensors& x) {
    return Tensors{floordiv(broadcast_to(x[0], {0, 6}), 0)};
  };
  EXPECT_EQ(function([&](Tensor x) { return divide({x})[0]; })(Tensor::from(std::vector<int>(6, 1)))
                .shape(),
            (Shape{0, 6}));
  // The switch.
  config::optimizer::set_experimental_options({.arithmetic_optimization = false});
  stays(
      [](const Tensors& x) {
        return Tensors{tanh(broadcast_to(x[0], {4, 6}))};
      },
      {numbers({6}, 1)});
  config::optimizer::set_experimental_options({});
}

// Who waited for the node waits for what is computed in its place.
TEST(BroadcastLate, KeepsWaiting) {
  const ConcreteFunction concrete = function([](Tensor x) {
                                      const Tensor y = tanh(broadcast_to(x, {4, 6}));
                                      return std::pair(reverse(y, {0}), sin(x));
                                    }).concrete(numbers({6}, 1));
  MutableFunction f(*concrete.function());
  Node *sine = nullptr, *tangent = nullptr;
  for (const auto& node : f.graph.nodes()) {
    if (node->op().name == "Sin") sine = node.get();
    if (node->op().name == "Tanh") tangent = node.get();
  }
  f.graph.add_control_input(sine, tangent);
  f.control_results.push_back(tangent);
  EXPECT_TRUE(passes::sink_broadcasts(f, Runtime::current().ops()));
  const Node* small = only_node(f, "Tanh");
  EXPECT_EQ(small->output_shape(0), PartialShape({6}));
  EXPECT_EQ(only_node(f, "Sin")->control_inputs(), (std::vector<Node*>{const_cast<Node*>(small)}));
  EXPECT_EQ(f.control_results.back(), small);
}

// So does what is computed in the node's place: for all that the broadcast waited for.
TEST(BroadcastLate, WaitsAsTheBroadcastDid) {
  const ConcreteFunction concrete = function([](Tensor x) {
                                      return std::pair(tanh(broadcast_to(x, {4, 6})), cos(x));
                                    }).concrete(numbers({6}, 1));
  MutableFunction f(*concrete.function());
  Node *broadcast = nullptr, *cosine = nullptr;
  for (const auto& node : f.graph.nodes()) {
    if (node->op().name == "BroadcastTo") broadcast = node.get();
    if (node->op().name == "Cos") cosine = node.get();
  }
  f.graph.add_control_input(broadcast, cosine);
  EXPECT_TRUE(passes::sink_broadcasts(f, Runtime::current().ops()));
  EXPECT_EQ(only_node(f, "Tanh")->control_inputs(), (std::vector<Node*>{cosine}));
}

// Gradients of additions have such sums and reshapes: over which axes, only shapes show.
TEST(Shapes, KnownOnesLeaveNoEmptySums) {
  const auto run = [](const Tensors& x) {
    const std::vector<Tensor> axes = raw_op("BroadcastGradientArgs", {shape(x[0]), shape(x[1])});
    return Tensors{reverse(reshape(raw_op("Sum", {x[2], axes[0]})[0], shape(x[0])), {0}),
                   reverse(reshape(raw_op("Sum", {x[2], axes[1]})[0], shape(x[1])), {0})};
  };
  const Tensor full = numbers({6, 40}, 1), row = numbers({40}, 2);
  EXPECT_EQ(count_op(optimized_graph(run, {full, full, full}), "Sum"), 0);
  EXPECT_EQ(count_op(optimized_graph(run, {full, full, full}), "Reshape"), 0);
  EXPECT_EQ(count_op(optimized_graph(run, {full, row, full}), "Sum"), 1);
  expect_as_eager(run, {full, full, full}, 0);
  expect_as_eager(run, {full, row, full}, 1e-6);
  // Norms are no sums: those over nothing are absolute values.
  const auto norm = [](const Tensors& x) {
    return raw_op("EuclideanNorm", {x[0], Tensor::from(std::vector<int>{})});
  };
  expect_as_eager(norm, {full}, 1e-6);
  for (const char* op : {"Sum", "Mean", "Prod", "Max", "Min"}) {
    const auto nothing = [&](const Tensors& x) {
      return Tensors{reverse(raw_op(op, {x[0], Tensor::from(std::vector<int>{})})[0], {0})};
    };
    EXPECT_EQ(count_op(optimized_graph(nothing, {full}), op), 0);
    expect_as_eager(nothing, {full}, 0);
  }
}

}  // namespace
}  // namespace tandem
