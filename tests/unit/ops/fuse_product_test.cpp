// What becomes of convolutions and products with what follows them: the graph that runs holds one
// fused op, and gives what the single ops give eagerly.

#include <atomic>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/ops/activation_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/conv_ops.h"
#include "tandem/ops/identity_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/norm_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/pad_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/optimized.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/ops/fusion_util.h"

namespace tandem {
namespace {

constexpr double kFloat = 2e-6, kShort = 2e-2;
constexpr const char* kConv = "_FusedConv2D";
constexpr const char* kMatMul = "_FusedMatMul";

using Tensors = std::vector<Tensor>;

// The fused op's name, what it has taken in, and that nothing else is left of the arithmetic.
void expect_fused(const Body& body, const Tensors& args, const char* op, const std::string& wanted,
                  double tolerance = kFloat) {
  const MutableFunction f = optimized_graph(body, args);
  EXPECT_EQ(fused_ops(f, op), wanted) << f.graph.to_string();
  for (const char* left : {"Conv2D", "DepthwiseConv2dNative", "MatMul", "BiasAdd", "Mul", "AddV2",
                           "FusedBatchNormV3", "Relu", "Pad", "Cast"})
    EXPECT_EQ(count_op(f, left), 0) << left << " in\n" << f.graph.to_string();
  expect_as_eager(body, args, tolerance);
}

Tensor activation(const std::string& name, const Tensor& x) {
  if (name == "Swish") return nn::swish(x);
  if (name == "LeakyRelu") return nn::leaky_relu(x, 0.3f);
  return raw_op(name, {x})[0];
}

const std::vector<std::string> kActivations = {"Relu",      "Relu6", "Elu",
                                               "LeakyRelu", "Tanh",  "Sigmoid"};

// ---- Convolutions. ----

Tensor image() { return numbers({2, 9, 8, 5}, 1); }
Tensor filter() { return numbers({3, 3, 5, 7}, 2); }
Tensor bias() { return numbers({7}, 3); }
Tensor scale() { return numbers({7}, 4); }
Tensor depth_filter() { return numbers({3, 3, 5, 1}, 5); }
Tensor depth_scale() { return numbers({5}, 6); }

TEST(FuseConvolution, TakesInBiasAndActivation) {
  expect_fused(
      [](const Tensors& x) {
        return Tensors{nn::bias_add(nn::conv2d(x[0], filter(), 1, "SAME"), bias())};
      },
      {image()}, kConv, "BiasAdd");
  for (const std::string& name : kActivations) {
    SCOPED_TRACE(name);
    expect_fused(
        [&](const Tensors& x) {
          const Tensor y = nn::conv2d(x[0], filter(), 1, "SAME");
          return Tensors{activation(name, nn::bias_add(y, bias()))};
        },
        {image()}, kConv, "BiasAdd " + name, 5e-6);
    expect_fused(
        [&](const Tensors& x) {
          return Tensors{activation(name, nn::conv2d(x[0], filter(), 1, "SAME"))};
        },
        {image()}, kConv, name, 5e-6);
  }
}

TEST(FuseConvolution, TakesInSwish) {
  const Body body = [](const Tensors& x) {
    const Tensor y = nn::bias_add(nn::conv2d(x[0], filter(), 1, "SAME"), bias());
    return Tensors{y * sigmoid(y)};
  };
  expect_fused(body, {image()}, kConv, "BiasAdd Swish", 5e-6);
}

TEST(FuseConvolution, TakesWeightsThatAreNotConstant) {
  const Body body = [](const Tensors& x) {
    return Tensors{nn::relu(nn::bias_add(nn::conv2d(x[0], x[1], 1, "SAME"), x[2]))};
  };
  expect_fused(body, {image(), filter(), bias()}, kConv, "BiasAdd Relu");
  EXPECT_EQ(count_op(optimized_graph(body, {image(), filter(), bias()}), "_PackWeights"), 0);
}

TEST(FuseConvolution, FoldsBatchNormIntoWeights) {
  const auto normalized = [](const Tensor& y, const Tensor& factor) {
    return nn::fused_batch_norm(
               y, factor, factor * 0.5,
               {.mean = factor * 0.25, .variance = factor * factor + 0.5, .is_training = false})
        .y;
  };
  expect_fused(
      [&](const Tensors& x) {
        return Tensors{nn::relu(normalized(nn::conv2d(x[0], filter(), 1, "SAME"), scale()))};
      },
      {image()}, kConv, "BiasAdd Relu", 5e-6);
  expect_fused(
      [&](const Tensors& x) {
        const Tensor y = nn::bias_add(nn::conv2d(x[0], filter(), 1, "SAME"), bias());
        return Tensors{normalized(y, scale())};
      },
      {image()}, kConv, "BiasAdd", 5e-6);
  expect_fused(
      [&](const Tensors& x) {
        const Tensor y = nn::depthwise_conv2d(x[0], depth_filter(), 1, "SAME");
        return Tensors{nn::relu6(normalized(y, depth_scale()))};
      },
      {image()}, kConv, "BiasAdd Relu6", 5e-6);
}

// Batch norm as Keras writes it once its moments are constants.
TEST(FuseConvolution, FoldsFactorsAndSummandsIntoWeights) {
  expect_fused(
      [](const Tensors& x) {
        const Tensor y = nn::bias_add(nn::conv2d(x[0], filter(), 1, "SAME"), bias());
        return Tensors{nn::relu(scale() * y + bias())};
      },
      {image()}, kConv, "BiasAdd Relu", 5e-6);
  expect_fused(
      [](const Tensors& x) {
        const Tensor y = nn::conv2d(x[0], filter(), 1, "SAME");
        return Tensors{y * Tensor(0.5f) + reshape(bias(), {1, 1, 1, 7})};
      },
      {image()}, kConv, "BiasAdd", 5e-6);
  expect_fused(
      [](const Tensors& x) {
        return Tensors{nn::depthwise_conv2d(x[0], depth_filter(), 1, "SAME") * depth_scale()};
      },
      {image()}, kConv, "", 5e-6);
}

TEST(FuseConvolution, AddsAnImage) {
  const Tensor other = numbers({2, 9, 8, 7}, 9);
  const Body body = [](const Tensors& x) {
    const Tensor y = nn::bias_add(nn::conv2d(x[0], filter(), 1, "SAME"), bias());
    return Tensors{nn::relu(x[1] + y)};
  };
  expect_fused(body, {image(), other}, kConv, "BiasAdd Add Relu");
}

// The image is read in another order than the sum: they cannot share memory, whichever way it goes.
TEST(FuseConvolution, AddsItsOwnInput) {
  const Tensor square = numbers({3, 3, 5, 5}, 10);
  for (const Shape& shape : {Shape{2, 9, 8, 5}, Shape{1, 33, 40, 5}, Shape{4, 7, 7, 5}}) {
    SCOPED_TRACE(cat(shape));
    const Tensor x0 = numbers(shape, 11);
    const Body body = [&](const Tensors& x) {
      const Tensor before = nn::softsign(x[0]);
      const Tensor after = nn::conv2d(before, fixed(square), 1, "SAME") + before;
      return Tensors{after * 2.0};
    };
    EXPECT_EQ(fused_ops(optimized_graph(body, {x0}), kConv), "Add");
    expect_as_eager(body, {x0}, kFloat);
    const Body through_identity = [&](const Tensors& x) {
      const Tensor before = nn::softsign(x[0]);
      const Tensor same = reshape(reshape(before, {-1}), x0.shape());
      return Tensors{(nn::conv2d(before, fixed(square), 1, "SAME") + same) * 2.0};
    };
    expect_as_eager(through_identity, {x0}, kFloat);
  }
}

TEST(FuseConvolution, AddsAnImageOfAnotherBatchSize) {
  const Body body = [](const Tensors& x) {
    return Tensors{nn::bias_add(nn::conv2d(x[0], filter(), 1, "SAME"), bias()) + x[1]};
  };
  const auto shapes = std::vector<PartialShape>{{-1, 9, 8, 5}, {-1, 9, 8, 7}};
  const auto run = function(
      [&](Tensor a, Tensor b) {
        return body({a, b})[0];
      },
      {.input_shapes = shapes});
  for (const auto& [m, n] : {std::pair{1, 3}, {3, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 1}, {1, 0}}) {
    SCOPED_TRACE(cat(m, " and ", n));
    const Tensor a = numbers({m, 9, 8, 5}, 1), b = numbers({n, 9, 8, 7}, 2);
    EXPECT_LE(distance(run(a, b), body({a, b})[0]), kFloat);
  }
  EXPECT_THROW(run(numbers({2, 9, 8, 5}, 1), numbers({3, 9, 8, 7}, 2)), InvalidArgumentError);
}

TEST(FuseConvolution, TakesInPad) {
  for (const auto& sizes : {std::vector<int>{1, 1, 1, 1}, {0, 1, 2, 0}, {5, 4, 0, 6}}) {
    const Body body = [&](const Tensors& x) {
      const Tensor paddings{{0, 0}, {sizes[0], sizes[1]}, {sizes[2], sizes[3]}, {0, 0}};
      const Tensor y = nn::conv2d(pad(x[0], paddings), filter(), 2, "VALID");
      return Tensors{nn::relu(nn::bias_add(y, bias()))};
    };
    expect_fused(body, {image()}, kConv, "BiasAdd Relu");
    const Body depthwise = [&](const Tensors& x) {
      const Tensor paddings{{0, 0}, {sizes[0], sizes[1]}, {sizes[2], sizes[3]}, {0, 0}};
      return Tensors{
          nn::relu6(nn::depthwise_conv2d(pad(x[0], paddings), depth_filter(), 1, "VALID"))};
    };
    expect_fused(depthwise, {image()}, kConv, "Relu6");
  }
}

TEST(FuseConvolution, LeavesPadsThatAreNoPadding) {
  const Tensor of_batch{{1, 0}, {1, 1}, {1, 1}, {0, 0}}, of_depth{{0, 0}, {0, 0}, {0, 0}, {1, 1}};
  const Tensor around{{0, 0}, {1, 1}, {1, 1}, {0, 0}};
  const auto left = [&](const Body& body, const char* op, const Tensor& x) {
    EXPECT_EQ(count_op(optimized_graph(body, {x}), op), 1);
    expect_as_eager(body, {x}, kFloat);
  };
  left(
      [&](const Tensors& x) {
        return Tensors{nn::conv2d(pad(x[0], fixed(of_batch)), filter(), 1, "VALID")};
      },
      "Pad", image());
  left(
      [&](const Tensors& x) {
        return Tensors{nn::conv2d(pad(x[0], fixed(of_depth)), filter(), 1, "VALID")};
      },
      "Pad", numbers({2, 9, 8, 3}, 1));
  left(
      [&](const Tensors& x) {
        return Tensors{nn::conv2d(pad(x[0], fixed(around)), filter(), 1, "SAME")};
      },
      "Pad", image());
  left(
      [&](const Tensors& x) {
        return Tensors{
            nn::conv2d(pad(x[0], fixed(around), PadMode::kConstant, 1), filter(), 1, "VALID")};
      },
      "PadV2", image());
  left(
      [&](const Tensors& x) {
        return Tensors{
            nn::conv2d(pad(x[0], fixed(around), PadMode::kReflect), filter(), 1, "VALID")};
      },
      "MirrorPad", image());
  // Also read by another.
  left(
      [&](const Tensors& x) {
        const Tensor y = pad(x[0], fixed(around));
        return Tensors{nn::conv2d(y, filter(), 1, "VALID"), y};
      },
      "Pad", image());
}

TEST(FuseConvolution, TakesEveryKindOfWindow) {
  struct Case {
    Shape image, filter;
    nn::Size2D strides;
    nn::Padding padding;
    nn::Size2D dilations;
  };
  const std::vector<Case> cases = {
      {{2, 9, 8, 5}, {3, 3, 5, 7}, 2, "SAME", 1},
      {{2, 9, 8, 5}, {3, 3, 5, 7}, 1, "VALID", 2},
      {{2, 9, 8, 5}, {2, 4, 5, 7}, {2, 3}, "SAME", 1},
      {{2, 9, 8, 5}, {3, 3, 5, 7}, 1, nn::Padding({4, 0}, {1, 5}), 1},
      {{2, 9, 8, 6}, {3, 3, 2, 9}, 1, "SAME", 1},    // three groups
      {{1, 64, 64, 8}, {3, 3, 8, 7}, 1, "SAME", 1},  // cut into rows
      {{1, 64, 64, 8}, {5, 5, 8, 7}, 2, "SAME", 3},
      {{3, 1, 1, 32}, {1, 1, 32, 7}, 1, "VALID", 1},
      {{1, 3, 3, 5}, {3, 3, 5, 7}, 1, "VALID", 1},
      {{0, 9, 8, 5}, {3, 3, 5, 7}, 1, "SAME", 1},
      {{2, 2, 2, 5}, {3, 3, 5, 7}, 1, "VALID", 1},  // nothing comes out
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(cat(c.image, " by ", c.filter, " ", c.padding.kind));
    expect_fused(
        [&](const Tensors& x) {
          const Tensor y = nn::conv2d(x[0], numbers(c.filter, 2), c.strides, c.padding,
                                      {.dilations = c.dilations});
          return Tensors{nn::relu(nn::bias_add(y, numbers({c.filter[3]}, 3)))};
        },
        {numbers(c.image, 1)}, kConv, "BiasAdd Relu");
  }
}

// Filters of one entry that are no constants run as products of matrices.
TEST(FuseConvolution, TakesFiltersOfOneEntryThatAreComputed) {
  for (const auto& [strides, height, width] : {std::tuple{1, 5, 4}, {2, 3, 2}}) {
    for (const auto& [in, out] : {std::pair{64, 144}, {144, 64}, {512, 1024}}) {
      SCOPED_TRACE(cat(in, " to ", out, " by ", strides));
      const Tensors x{numbers({2, 5, 4, in}, 1), numbers({1, 1, in, out}, 2), numbers({out}, 3),
                      numbers({2, height, width, out}, 4)};
      const auto conv = [&, strides = strides](const Tensors& v) {
        return nn::bias_add(nn::conv2d(v[0], v[1], strides, "SAME"), v[2]);
      };
      expect_fused([&](const Tensors& v) { return Tensors{conv(v)}; }, x, kConv, "BiasAdd", 1e-5);
      expect_fused([&](const Tensors& v) { return Tensors{nn::relu(conv(v) + v[3])}; }, x, kConv,
                   "BiasAdd Add Relu", 1e-5);
    }
  }
}

TEST(FuseConvolution, TakesShortFloats) {
  const auto half = [](const Tensor& t) { return cast(t, DType::kBFloat16); };
  const Tensor x0 = half(image()), w0 = half(filter()), b0 = half(bias());
  expect_fused(
      [&](const Tensors& x) {
        return Tensors{nn::relu(nn::bias_add(nn::conv2d(x[0], fixed(w0), 1, "SAME"), fixed(b0)))};
      },
      {x0}, kConv, "BiasAdd Relu", kShort);
  // The wide result at once.
  const Body widened = [&](const Tensors& x) {
    const Tensor y = nn::bias_add(nn::conv2d(x[0], fixed(w0), 1, "SAME"), fixed(b0));
    return Tensors{nn::relu(cast(y, DType::kFloat))};
  };
  expect_fused(widened, {x0}, kConv, "BiasAdd Relu", kShort);
  // A bias and an image of float after it.
  const Tensor other = numbers({2, 9, 8, 7}, 9);
  const Body wide_add = [&](const Tensors& x) {
    const Tensor y = cast(nn::conv2d(x[0], fixed(w0), 1, "SAME"), DType::kFloat);
    return Tensors{nn::relu(nn::bias_add(y, bias()) + x[1])};
  };
  expect_fused(wide_add, {x0, other}, kConv, "BiasAdd Add Relu", kShort);
  const Body folded = [&](const Tensors& x) {
    const Tensor y = nn::conv2d(x[0], fixed(w0), 1, "SAME");
    return Tensors{
        cast(nn::fused_batch_norm(
                 y, scale(), bias(),
                 {.mean = bias(), .variance = scale() * scale() + 0.5, .is_training = false})
                 .y,
             DType::kFloat)};
  };
  expect_fused(folded, {x0}, kConv, "BiasAdd", kShort);
}

TEST(FuseConvolution, LeavesWhatItMayNotTake) {
  const auto left = [](const Body& body, const char* op, const Tensors& x) {
    const MutableFunction f = optimized_graph(body, x);
    EXPECT_EQ(count_op(f, op), 1) << op << " in\n" << f.graph.to_string();
    expect_as_eager(body, x, kFloat);
  };
  // The convolution's result is read twice, or is a result.
  left(
      [](const Tensors& x) {
        const Tensor y = nn::conv2d(x[0], filter(), 1, "SAME");
        return Tensors{nn::relu(y) + nn::elu(y)};
      },
      "Relu", {image()});
  left(
      [](const Tensors& x) {
        const Tensor y = nn::conv2d(x[0], filter(), 1, "SAME");
        return Tensors{nn::relu(y), y};
      },
      "Relu", {image()});
  left(
      [](const Tensors& x) {
        const Tensor y = nn::bias_add(nn::conv2d(x[0], filter(), 1, "SAME"), bias());
        return Tensors{nn::relu(y), y};
      },
      "Relu", {image()});
  // Order NCHW.
  left(
      [](const Tensors& x) {
        const Tensor y = nn::conv2d(x[0], filter(), 1, "SAME", {.data_format = "NCHW"});
        return Tensors{nn::relu(nn::bias_add(y, bias(), "NCHW"))};
      },
      "Relu", {numbers({2, 5, 9, 8}, 1)});
  // More channels than came in.
  left(
      [](const Tensors& x) {
        return Tensors{nn::relu(nn::depthwise_conv2d(x[0], numbers({3, 3, 5, 2}, 1), 1, "SAME"))};
      },
      "Relu", {image()});
  // Moments that are not known, or the batch's own.
  left(
      [](const Tensors& x) {
        return Tensors{nn::fused_batch_norm(nn::conv2d(x[0], filter(), 1, "SAME"), scale(), bias(),
                                            {.mean = x[1], .variance = x[2], .is_training = false})
                           .y};
      },
      "FusedBatchNormV3", {image(), bias(), scale() * scale() + 0.5});
  left(
      [](const Tensors& x) {
        return Tensors{
            nn::fused_batch_norm(nn::conv2d(x[0], filter(), 1, "SAME"), scale(), bias()).y};
      },
      "FusedBatchNormV3", {image()});
  // No factor for each channel.
  left(
      [](const Tensors& x) {
        return Tensors{nn::conv2d(x[0], filter(), 1, "SAME") * numbers({9, 8, 1}, 4)};
      },
      "Mul", {image()});
  left(
      [](const Tensors& x) {
        return Tensors{nn::conv2d(x[0], filter(), 1, "SAME") + numbers({9, 1, 7}, 4)};
      },
      "AddV2", {image()});
  // After an activation the weights are closed.
  left(
      [](const Tensors& x) {
        return Tensors{nn::relu(nn::conv2d(x[0], filter(), 1, "SAME")) * scale()};
      },
      "Mul", {image()});
  // A factor that would make NaN of weights.
  left(
      [](const Tensors& x) {
        return Tensors{nn::conv2d(x[0], filter(), 1, "SAME") * Tensor(INFINITY)};
      },
      "Mul", {image()});
}

// Two that share weights each scale their own copy.
TEST(FuseConvolution, SharesConstants) {
  const Body body = [](const Tensors& x) {
    const Tensor w = filter();
    return Tensors{nn::conv2d(x[0], w, 1, "SAME") * scale(),
                   nn::bias_add(nn::conv2d(x[1], w, 1, "SAME"), bias()), w};
  };
  const Tensors args{image(), numbers({2, 9, 8, 5}, 12)};
  const MutableFunction f = optimized_graph(body, args);
  EXPECT_EQ(count_op(f, kConv), 2);
  EXPECT_EQ(count_op(f, "_PackWeights"), 2);
  expect_as_eager(body, args, kFloat);
  const Body same = [](const Tensors& x) {
    const Tensor w = filter();
    return Tensors{nn::relu(nn::conv2d(x[0], w, 1, "SAME")),
                   nn::elu(nn::conv2d(x[1], w, 1, "SAME"))};
  };
  EXPECT_EQ(count_op(optimized_graph(same, args), "_PackWeights"), 1);
  expect_as_eager(same, args, kFloat);
}

// What waits for a node keeps it; a constant that waits for something belongs to a loop or branch.
TEST(FuseConvolution, MindsControlEdges) {
  const auto trace = [] {
    return function([](Tensor x) { return nn::relu(nn::conv2d(x, filter(), 1, "SAME") * scale()); })
        .concrete(image());
  };
  const OpRegistry& ops = Runtime::current().ops();
  const ConcreteFunction concrete = trace();
  const auto find = [](MutableFunction& f, const char* op) {
    for (const auto& node : f.graph.nodes())
      if (node->op().name == op) return node.get();
    throw NotFoundError(op);
  };
  {
    MutableFunction f(*concrete.function());
    f.control_results.push_back(find(f, "Mul"));
    passes::fuse(f, ops);
    EXPECT_EQ(fused_ops(f, kConv), "");
    EXPECT_EQ(count_op(f, "Mul"), 1);
    EXPECT_EQ(count_op(f, "Relu"), 1);
  }
  {
    MutableFunction f(*concrete.function());
    f.graph.add_control_input(find(f, "Relu"), f.args[0]);
    passes::fuse(f, ops);
    EXPECT_EQ(count_op(f, "Relu"), 1);
    EXPECT_EQ(count_op(f, "Mul"), 0);
  }
  {
    MutableFunction f(*concrete.function());
    for (const auto& node : f.graph.nodes())
      if (node->kind() == NodeKind::kConst) f.graph.add_control_input(node.get(), f.args[0]);
    passes::fuse(f, ops);
    EXPECT_EQ(count_op(f, "Mul"), 1);
    EXPECT_EQ(count_op(f, "_PackWeights"), 0);
    for (const auto& node : f.graph.nodes()) {
      if (node->kind() == NodeKind::kConst) {
        EXPECT_EQ(node->control_inputs().size(), 1u);
      }
    }
  }
}

// As in TensorFlow a fused Relu or Relu6 may make 0 of NaN; nothing else hides one.
TEST(FuseConvolution, CarriesNanAndInfinity) {
  std::vector<float> values = numbers({1, 9, 8, 16}, 1).to_vector<float>();
  values[500] = NAN;
  values[0] = INFINITY;
  values[1100] = -INFINITY;
  const Tensor x0 = Tensor::from(values, {1, 9, 8, 16});
  for (const std::string& name : kActivations) {
    SCOPED_TRACE(name);
    const Body body = [&](const Tensors& x) {
      const Tensor y =
          nn::bias_add(nn::conv2d(x[0], numbers({3, 3, 16, 16}, 2), 1, "SAME"), numbers({16}, 3));
      return Tensors{activation(name, y)};
    };
    if (name != "Relu" && name != "Relu6") {
      expect_fused(body, {x0}, kConv, "BiasAdd " + name, 5e-6);
      continue;
    }
    const auto wanted = body({x0})[0].to_vector<float>();
    const auto got = function([&](Tensor x) { return body({x})[0]; })(x0).to_vector<float>();
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(wanted[i])) {
        EXPECT_TRUE(std::isnan(got[i]) || got[i] == 0);
      } else if (std::isinf(wanted[i])) {
        EXPECT_EQ(got[i], wanted[i]);
      } else {
        EXPECT_NEAR(got[i], wanted[i], 1e-4);
      }
    }
  }
}

TEST(FuseConvolution, ServesManyShapes) {
  const auto body = [](const Tensor& x) {
    return nn::relu(nn::bias_add(nn::conv2d(x, filter(), 1, "SAME"), bias()) * scale());
  };
  const auto run = function([&](Tensor x) { return body(x); },
                            {.input_shapes = {PartialShape({-1, -1, -1, 5})}});
  for (int round = 0; round < 2; ++round) {
    for (int n = 0; n < 40; ++n) {  // more than the plans that are kept
      const Tensor x = numbers({n % 4, 3 + n, 5 + n % 7, 5}, n);
      ASSERT_LE(distance(run(x), body(x)), kFloat) << x.shape();
    }
  }
  EXPECT_EQ(run.num_traces(), 1u);
}

// ---- Products of matrices. ----

Tensor matrix() { return numbers({24, 10}, 20); }
Tensor row() { return numbers({10}, 21); }

// A layer on three axes: its product is one of matrices, reshaped.
Tensor on_three_axes(const Tensor& x) {
  return reshape(matmul(reshape(x, {-1, 24}), matrix()), {x.dim(0), x.dim(1), 10});
}

TEST(FuseMatMul, TakesInWhatFollowsAReshape) {
  for (const std::int64_t batch : {1, 4}) {
    const Tensor a = numbers({batch, 3, 24}, 22), other = numbers({batch, 3, 10}, 23);
    const auto with_bias = [](const Tensors& x) {
      return nn::bias_add(on_three_axes(x[0]), row());
    };
    expect_fused([&](const Tensors& x) { return Tensors{with_bias(x)}; }, {a}, kMatMul, "BiasAdd");
    expect_fused([](const Tensors& x) { return Tensors{on_three_axes(x[0]) + row()}; }, {a},
                 kMatMul, "BiasAdd");
    for (const std::string& name : kActivations) {
      expect_fused([&](const Tensors& x) { return Tensors{activation(name, with_bias(x))}; }, {a},
                   kMatMul, "BiasAdd " + name, 5e-6);
    }
    expect_fused([&](const Tensors& x) { return Tensors{nn::relu(with_bias(x) + x[1])}; },
                 {a, other}, kMatMul, "BiasAdd Add Relu", 5e-6);
    // A bias that is no constant.
    expect_fused([](const Tensors& x) { return Tensors{on_three_axes(x[0]) + x[1]}; }, {a, row()},
                 kMatMul, "BiasAdd");
  }
  const auto body = [](const Tensors& x) {
    return Tensors{nn::relu(nn::bias_add(on_three_axes(x[0]), row()) + x[1])};
  };
  expect_as_eager(body, {numbers({0, 3, 24}, 22), numbers({0, 3, 10}, 23)}, 0);
}

TEST(FuseMatMul, LeavesWhatAReshapeMixes) {
  const auto left = [](const Body& body, const char* op, const Tensors& x) {
    EXPECT_EQ(count_op(optimized_graph(body, x), op), 1);
    expect_as_eager(body, x, kFloat);
  };
  const Tensor a = numbers({6, 24}, 22);
  left(
      [](const Tensors& x) {
        return Tensors{nn::bias_add(reshape(matmul(x[0], matrix()), {6, 2, 5}), numbers({5}, 1))};
      },
      "BiasAdd", {a});
  // What is added to each row of a batch is none of the product's rows.
  left(
      [](const Tensors& x) {
        return Tensors{reshape(matmul(x[0], matrix()), {2, 3, 10}) + x[1]};
      },
      "AddV2", {a, numbers({3, 10}, 2)});
  // The product itself is wanted too.
  left(
      [](const Tensors& x) {
        const Tensor y = matmul(x[0], matrix());
        return Tensors{nn::bias_add(reshape(y, {2, 3, 10}), row()), y};
      },
      "BiasAdd", {a});
}

TEST(FuseMatMul, TakesInBiasAndActivation) {
  for (const std::int64_t m : {1, 2, 7, 64}) {
    const Tensor a = numbers({m, 24}, 22);
    expect_fused(
        [](const Tensors& x) { return Tensors{nn::bias_add(matmul(x[0], matrix()), row())}; }, {a},
        kMatMul, "BiasAdd");
    expect_fused([](const Tensors& x) { return Tensors{row() + matmul(x[0], matrix())}; }, {a},
                 kMatMul, "BiasAdd");
    for (const std::string& name : kActivations) {
      expect_fused(
          [&](const Tensors& x) {
            return Tensors{activation(name, nn::bias_add(matmul(x[0], matrix()), row()))};
          },
          {a}, kMatMul, "BiasAdd " + name, 5e-6);
    }
    expect_fused(
        [](const Tensors& x) {
          const Tensor y = nn::bias_add(matmul(x[0], matrix()), row());
          return Tensors{y * sigmoid(y)};
        },
        {a}, kMatMul, "BiasAdd Swish", 5e-6);
    expect_fused(
        [](const Tensors& x) {
          return Tensors{nn::relu(nn::bias_add(matmul(x[0], matrix()), row()) + x[1])};
        },
        {a, numbers({m, 10}, 23)}, kMatMul, "BiasAdd Add Relu", 5e-6);
    expect_fused([](const Tensors& x) { return Tensors{matmul(x[0], matrix()) * row() + row()}; },
                 {a}, kMatMul, "BiasAdd", 5e-6);
  }
}

TEST(FuseMatMul, TakesTurnedMatrices) {
  for (const std::int64_t m : {1, 3, 40}) {
    for (const bool turn_a : {false, true}) {
      for (const bool turn_b : {false, true}) {
        const Tensor a = numbers(turn_a ? Shape{24, m} : Shape{m, 24}, 22);
        expect_fused(
            [&](const Tensors& x) {
              const Tensor b = numbers(turn_b ? Shape{10, 24} : Shape{24, 10}, 20);
              const Tensor y = matmul(x[0], b, {.transpose_a = turn_a, .transpose_b = turn_b});
              return Tensors{nn::relu(y * row() + row())};
            },
            {a}, kMatMul, "BiasAdd Relu", 5e-6);
      }
    }
  }
}

// Few rows against a large matrix, with and without each part of the epilogue.
TEST(FuseMatMul, TakesFewRows) {
  for (const std::int64_t m : {1, 2, 3, 8, 33}) {
    SCOPED_TRACE(m);
    const Tensor a = numbers({m, 700}, 22), other = numbers({m, 530}, 23);
    const auto product = [](const Tensors& x) { return matmul(x[0], numbers({700, 530}, 20)); };
    expect_fused([&](const Tensors& x) { return Tensors{product(x)}; }, {a}, kMatMul, "", 5e-6);
    expect_fused(
        [&](const Tensors& x) {
          const Tensor y = nn::bias_add(product(x), numbers({530}, 21));
          return Tensors{nn::leaky_relu(y + x[1], 0.3f)};
        },
        {a, other}, kMatMul, "BiasAdd Add LeakyRelu", 5e-6);
    expect_fused(
        [&](const Tensors& x) {
          const Tensor y = nn::bias_add(product(x), numbers({530}, 21));
          return Tensors{y * sigmoid(y)};
        },
        {a}, kMatMul, "BiasAdd Swish", 5e-6);
  }
}

TEST(FuseMatMul, TakesEmptyMatrices) {
  const auto body = [](const Tensors& x) {
    return Tensors{nn::relu(nn::bias_add(matmul(x[0], numbers({24, 10}, 1)), row()))};
  };
  expect_as_eager(body, {numbers({0, 24}, 1)}, 0);
  expect_as_eager(
      [](const Tensors& x) {
        return Tensors{nn::relu(nn::bias_add(matmul(x[0], numbers({0, 10}, 1)), row()))};
      },
      {numbers({3, 0}, 1)}, 0);
  expect_as_eager(
      [](const Tensors& x) {
        return Tensors{nn::relu(nn::bias_add(matmul(x[0], numbers({24, 0}, 1)), numbers({0}, 1)))};
      },
      {numbers({3, 24}, 1)}, 0);
}

TEST(FuseMatMul, LeavesWhatItMayNotTake) {
  const auto left = [](const Body& body, const char* op, const Tensors& x) {
    EXPECT_EQ(count_op(optimized_graph(body, x), op), 1);
    expect_as_eager(body, x, kFloat);
  };
  const Tensor a = numbers({6, 24}, 22);
  // Where the rank is 2, a column is no bias.
  left(
      [](const Tensors& x) {
        return Tensors{matmul(x[0], matrix()) + numbers({6, 1}, 1)};
      },
      "AddV2", {a});
  left(
      [](const Tensors& x) {
        const Tensor y = matmul(x[0], matrix());
        return Tensors{nn::bias_add(y, row()), y};
      },
      "BiasAdd", {a});
  const Body in_double = [](const Tensors& x) {
    return Tensors{
        nn::bias_add(matmul(x[0], cast(matrix(), DType::kDouble)), cast(row(), DType::kDouble))};
  };
  left(in_double, "MatMul", {cast(a, DType::kDouble)});
}

// ---- All of them. ----

TEST(FuseProduct, RunsOnSeveralThreads) {
  const auto body = [](const Tensor& x) {
    Tensor y = nn::relu(nn::bias_add(nn::conv2d(x, filter(), 1, "SAME"), bias()));
    y = nn::conv2d(y, numbers({3, 3, 7, 7}, 30), 1, "SAME") * scale() + y;
    y = reshape(y, {-1, 7});
    return tanh(nn::bias_add(matmul(y, numbers({7, 33}, 31)), numbers({33}, 32)));
  };
  const auto run =
      function([&](Tensor x) { return body(x); }, {.input_shapes = {PartialShape({-1, 9, 8, 5})}});
  constexpr int kThreads = 4, kCalls = 25;
  std::vector<Tensor> images, wanted;
  for (int i = 0; i < kThreads; ++i) {
    images.push_back(numbers({1 + i % 3, 9, 8, 5}, i));
    wanted.push_back(body(images.back()));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int call = 0; call < kCalls; ++call) {
        const auto i = static_cast<std::size_t>((t + call) % kThreads);
        if (!(distance(run(images[i]), wanted[i]) <= 5e-6)) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(FuseProduct, IsSwitchedOff) {
  const Body body = [](const Tensors& x) {
    return Tensors{nn::relu(nn::bias_add(nn::conv2d(x[0], filter(), 1, "SAME"), bias()))};
  };
  const auto run = function([&](Tensor x) { return body({x})[0]; });
  const auto with = [&](const config::optimizer::Options& options) {
    config::optimizer::set_experimental_options(options);
    EXPECT_TRUE(config::optimizer::get_experimental_options() == options);
    EXPECT_LE(distance(run(image()), body({image()})[0]), kFloat);
    MutableFunction f = optimized_graph(body, {image()});
    config::optimizer::set_experimental_options({});
    return f;
  };
  EXPECT_EQ(count_op(with({}), "_PackWeights"), 1);
  const MutableFunction plain_weights = with({.packed_weights = false});
  EXPECT_EQ(count_op(plain_weights, "_PackWeights"), 0);
  EXPECT_EQ(fused_ops(plain_weights, kConv), "BiasAdd Relu");
  EXPECT_EQ(count_op(with({.remapping = false}), kConv), 0);
  const MutableFunction off = with({.disable_meta_optimizer = true});
  EXPECT_EQ(count_op(off, "Conv2D"), 1);
  EXPECT_EQ(count_op(off, "Relu"), 1);
  EXPECT_LE(distance(run(image()), body({image()})[0]), kFloat);
}

}  // namespace
}  // namespace tandem
