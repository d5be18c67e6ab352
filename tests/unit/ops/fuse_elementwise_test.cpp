// Trees of elementwise ops become one op, which gives what the single ops give eagerly. In bfloat16
// it rounds less often, so there it is compared with what float gives.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/ops/activation_ops.h"
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

constexpr double kFloat = 2e-6;
constexpr const char* kFused = "_FusedElementwise";
constexpr const char* kSum = "_FusedSum";
constexpr const char* kSums = "_FusedElementwiseSums";

using Tensors = std::vector<Tensor>;

Tensor large(int seed, DType dtype = DType::kFloat) { return numbers({64, 96}, seed, dtype); }

// The nodes that are left, without arguments and constants.
int count_steps(const MutableFunction& f) {
  int steps = 0;
  for (const auto& node : f.graph.nodes())
    steps += node->kind() != NodeKind::kArg && node->kind() != NodeKind::kConst ? 1 : 0;
  return steps;
}

void expect_one_step(const Body& body, const Tensors& args, const char* op,
                     double tolerance = kFloat) {
  const MutableFunction f = optimized_graph(body, args);
  EXPECT_EQ(count_op(f, op), 1) << f.graph.to_string();
  EXPECT_EQ(count_steps(f), 1) << f.graph.to_string();
  expect_as_eager(body, args, tolerance);
}

TEST(FuseElementwise, MakesOneOpOfATree) {
  const Body body = [](const Tensors& x) {
    return Tensors{tanh(x[0] * x[1] + 0.5) * sigmoid(x[0]) - maximum(x[1], x[2])};
  };
  expect_one_step(body, {large(1), large(2), large(3)}, kFused);
}

TEST(FuseElementwise, BroadcastsInputs) {
  const Tensor full = numbers({6, 5, 7, 40}, 1);
  for (const Shape& shape :
       {Shape{}, Shape{1}, Shape{40}, Shape{1, 40}, Shape{7, 40}, Shape{5, 7, 40}, Shape{7, 1},
        Shape{6, 1, 1, 1}, Shape{6, 5, 1, 1}, Shape{6, 5, 7, 1}, Shape{5, 1, 1}, Shape{5, 7, 1},
        Shape{6, 1, 7, 1}, Shape{6, 1, 1, 40}, Shape{5, 1, 40}, Shape{1, 1, 1, 1},
        Shape{1, 5, 1, 40}, Shape{6, 5, 7, 40}}) {
    SCOPED_TRACE(cat(shape));
    const Body body = [](const Tensors& x) {
      return Tensors{(x[0] - x[1]) * tanh(x[0] + x[1]) + 1.0};
    };
    expect_one_step(body, {full, numbers(shape, 2)}, kFused);
    expect_one_step(
        [](const Tensors& x) {
          return Tensors{maximum(x[1], cast(x[0] * x[2], DType::kFloat)) * x[1]};
        },
        {numbers({6, 5, 7, 40}, 1, DType::kBFloat16), numbers(shape, 2),
         numbers(shape, 3, DType::kBFloat16)},
        kFused, 2e-2);
  }
  // Rows longer than a block.
  const Body rows = [](const Tensors& x) { return Tensors{x[0] * x[1] + x[1]}; };
  expect_one_step(rows, {numbers({3, 5003}, 1), numbers({5003}, 2)}, kFused);
  // The pairs of inputs together have the shape that neither has: left as it is.
  EXPECT_EQ(count_op(optimized_graph(rows, {numbers({100, 1}, 1), numbers({1, 100}, 2)}), kFused),
            0);
}

TEST(FuseElementwise, SumsWhatItMakes) {
  for (const bool keep : {false, true}) {
    for (const bool mean : {false, true}) {
      for (const Shape& shape :
           {Shape{64, 96}, Shape{6, 5, 7, 40}, Shape{9000, 1}, Shape{3, 5000}}) {
        SCOPED_TRACE(cat(shape, keep, mean));
        const Body body = [&](const Tensors& x) {
          const Tensor y = (x[0] - x[1]) * (x[0] + 0.25);
          std::vector<int> axes;
          for (int i = 0; i + 1 < shape.rank(); ++i)
            axes.push_back(i - (i == 0 ? shape.rank() : 0));
          return Tensors{
              raw_op(mean ? "Mean" : "Sum", {y, Tensor::from(axes)}, {{"keep_dims", keep}})[0]};
        };
        expect_one_step(body, {numbers(shape, 1), numbers({shape[shape.rank() - 1]}, 2)}, kSum,
                        1e-5);
      }
    }
  }
  // Sums over other axes get no fused op of their own.
  const Body last = [](const Tensors& x) { return Tensors{reduce_sum(x[0] * x[0], {1})}; };
  EXPECT_EQ(count_op(optimized_graph(last, {large(1)}), kSum), 0);
}

// A value that is written and whose sums are wanted: one pass writes it and adds up all of them.
TEST(FuseElementwise, SumsAlongWithWhatItWrites) {
  for (const bool keep : {false, true}) {
    // The last ones are added up in several pieces.
    for (const Shape& shape : {Shape{64, 96}, Shape{6, 5, 7, 40}, Shape{9000, 1}, Shape{3, 5000},
                               Shape{640, 96}, Shape{50000, 1}, Shape{30, 30, 100}}) {
      SCOPED_TRACE(cat(shape, keep));
      std::vector<int> axes;
      for (int i = 0; i + 1 < shape.rank(); ++i) axes.push_back(i);
      const Body body = [&](const Tensors& x) {
        const Tensor g = raw_op("ReluGrad", {x[0], x[1]})[0];
        const auto sum = [&](const Tensor& of) {
          return raw_op("Sum", {of, Tensor::from(axes)}, {{"keep_dims", keep}})[0];
        };
        return Tensors{reverse(g, {0}), sum(g), sum(g * (x[2] - x[3])),
                       raw_op("BiasAddGrad", {g})[0]};
      };
      const Tensors args{numbers(shape, 1), numbers(shape, 2), numbers(shape, 3),
                         numbers({shape[shape.rank() - 1]}, 4)};
      const MutableFunction f = optimized_graph(body, args);
      const Node* fused = only_node(f, kSums);
      ASSERT_NE(fused, nullptr) << f.graph.to_string();
      EXPECT_EQ(fused->num_outputs(), 4) << f.graph.to_string();
      EXPECT_EQ(count_steps(f), 2) << f.graph.to_string();
      expect_as_eager(body, args, 1e-5);
    }
  }
}

TEST(FuseElementwise, SumsOfShortFloatsAlong) {
  const Body body = [](const Tensors& x) {
    const Tensor g = raw_op("ReluGrad", {x[0], x[1]})[0], wide = cast(g, DType::kFloat);
    return Tensors{reverse(g, {0}), reduce_sum(wide, {0}), reduce_sum(wide * x[2], {0})};
  };
  const Tensors args{large(1, DType::kBFloat16), large(2, DType::kBFloat16), large(3)};
  EXPECT_EQ(count_op(optimized_graph(body, args), kSums), 1);
  expect_as_eager(body, args, 1e-5);
}

// What the sum reads must be there before the value is, and somebody must want the value itself.
TEST(FuseElementwise, KeepsSumsThatCannotGoAlong) {
  const auto none = [](const Body& body, const Tensors& x) {
    const MutableFunction f = optimized_graph(body, x);
    EXPECT_EQ(count_op(f, kSums), 0) << f.graph.to_string();
    expect_as_eager(body, x, 1e-5);
  };
  // It reads a later value, which depends on this one.
  none(
      [](const Tensors& x) {
        const Tensor y = x[0] * x[1], later = reverse(y, {0});
        return Tensors{reduce_sum(y * later, {0}), later};
      },
      {large(1), large(2)});
  // Over a larger value, over other axes.
  none(
      [](const Tensors& x) {
        const Tensor y = x[0] * x[0];
        return Tensors{reverse(y, {0}), reduce_sum(y * x[1], {0, 1})};
      },
      {large(1), numbers({3, 64, 96}, 2)});
  none(
      [](const Tensors& x) {
        const Tensor y = x[0] * x[0];
        return Tensors{reverse(y, {0}), reduce_sum(y, {1}), reduce_mean(y, {0})};
      },
      {large(1)});
}

// In the memory of an input that a sum needs too.
TEST(FuseElementwise, SumsBeforeItWritesOverInputs) {
  const Body body = [](const Tensors& x) {
    const Tensor a = reverse(x[0], {0}), b = reverse(x[1], {0});  // its alone, to be written over
    const Tensor g = a * b;
    return Tensors{tanh(reverse(g, {1})), reduce_sum(g * a, {0}), reduce_sum(g * b, {0})};
  };
  for (const Shape& shape : {Shape{64, 96}, Shape{2000, 96}}) {
    const Tensors args{numbers(shape, 1), numbers(shape, 2)};
    EXPECT_EQ(count_op(optimized_graph(body, args), kSums), 1);
    expect_as_eager(body, args, 1e-5);
  }
}

// However many threads add up.
TEST(FuseElementwise, SumsHaveTheSameBitsOnAnyNumberOfThreads) {
  const auto results = [](int threads) {
    Runtime::Options options;
    options.intra_op_threads = options.inter_op_threads = threads;
    Runtime runtime(options);
    RuntimeScope scope(runtime);
    const auto run = function([](Tensor x, Tensor y) {
      const Tensor g = raw_op("ReluGrad", {x, y})[0];
      return std::tuple(reverse(g, {0}), reduce_sum(g, {0}), reduce_sum(g * y, {0}));
    });
    const auto [g, sum, product] = run(numbers({3000, 40}, 1), numbers({3000, 40}, 2));
    return Tensors{Tensor(g.array()), Tensor(sum.array()), Tensor(product.array())};
  };
  const Tensors one = results(1), four = results(4);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(distance(one[i], four[i]), 0) << i;
}

// Attributes that contradict each other, as a graph file may hold them.
TEST(FuseElementwise, RefusesSumsThatAreNone) {
  const auto call_with = [](std::vector<std::int64_t> results, std::vector<std::int64_t> ranks,
                            std::int64_t sums) {
    return raw_op("_FusedElementwiseSums", {large(1)},
                  {{"T", DType::kFloat},
                   {"Tsum", DType::kFloat},
                   {"Tin", std::vector<DType>{DType::kFloat}},
                   {"num_sums", sums},
                   {"ops", std::vector<std::string>{"Tanh"}},
                   {"operands", std::vector<std::int64_t>{1, 0}},
                   {"results", std::move(results)},
                   {"sum_ranks", std::move(ranks)}});
  };
  EXPECT_EQ(call_with({-1, 0}, {3}, 1)[1].shape(), (Shape{1, 1, 96}));
  for (const std::int64_t rank : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 60})
    EXPECT_THROW(call_with({-1, 0}, {rank}, 1), InvalidArgumentError) << rank;
  EXPECT_THROW(call_with({-1, 0}, {1}, 2), InvalidArgumentError);
  EXPECT_THROW(call_with({-1, 0}, {1, 1}, 1), InvalidArgumentError);
  EXPECT_THROW(call_with({-1}, {1}, 1), InvalidArgumentError);
  EXPECT_THROW(call_with({}, {1}, 1), InvalidArgumentError);
  EXPECT_THROW(call_with({-1, -2}, {1}, 1), InvalidArgumentError);
  EXPECT_THROW(call_with({-1, 1}, {1}, 1), InvalidArgumentError);
}

TEST(FuseElementwise, RoundsShortFloatsOnce) {
  for (const DType dtype : {DType::kBFloat16, DType::kHalf}) {
    const Tensor a = large(1, dtype), b = large(2, dtype);
    const Body body = [](const Tensors& x) { return Tensors{(x[0] * x[1] + x[0]) * x[1]}; };
    const MutableFunction f = optimized_graph(body, {a, b});
    EXPECT_EQ(count_op(f, kFused), 1);
    const auto run = function([&](Tensor x, Tensor y) { return body({x, y})[0]; });
    const Tensor exact = cast(body({cast(a, DType::kFloat), cast(b, DType::kFloat)})[0], dtype);
    EXPECT_EQ(distance(run(a, b), exact), 0) << dtype;
  }
}

// Sums too, and casts between the types within a tree.
TEST(FuseElementwise, TakesHalvesAndFloatsInOneTree) {
  const Tensor a = large(1, DType::kHalf), b = large(2);
  const Body body = [](const Tensors& x) {
    const Tensor wide = cast(x[0], DType::kFloat) * x[1];
    return Tensors{tanh(cast(wide + 1.0, DType::kHalf)), reduce_sum(wide * wide, {0})};
  };
  const MutableFunction f = optimized_graph(body, {a, b});
  EXPECT_EQ(count_op(f, "Cast"), 0) << f.graph.to_string();
  expect_as_eager(body, {a, b}, 2e-3);
}

// Everybody widens a short value for himself, rather than read a wide one from memory; what is
// before that is computed once all the same.
TEST(FuseElementwise, WidensAgain) {
  const Tensor a = large(1, DType::kBFloat16), b = large(2, DType::kBFloat16);
  const Body body = [](const Tensors& x) {
    const Tensor wide = cast(x[0], DType::kFloat);
    return Tensors{tanh(wide + 1.0), reduce_sum(wide * wide, {0}), reduce_sum(wide, {0})};
  };
  const MutableFunction f = optimized_graph(body, {a});
  EXPECT_EQ(count_op(f, kFused), 1) << f.graph.to_string();
  EXPECT_EQ(count_op(f, kSum), 2) << f.graph.to_string();
  EXPECT_EQ(count_op(f, "Cast"), 0) << f.graph.to_string();
  expect_as_eager(body, {a}, 1e-5);

  const Body once = [](const Tensors& x) {
    const Tensor wide = cast(tanh(x[0] * x[1]), DType::kFloat);
    return Tensors{wide * 2.0 + 1.0, wide};
  };
  const MutableFunction g = optimized_graph(once, {a, b});
  int products = 0;
  for (const auto& node : g.graph.nodes()) {
    if (node->op().name == "Tanh") ++products;
    if (const AttrValue* ops = node->attrs().find("ops")) {
      const auto& names = *ops->get_if<std::vector<std::string>>();
      products += static_cast<int>(std::count(names.begin(), names.end(), "Tanh"));
    }
  }
  EXPECT_EQ(products, 1) << g.graph.to_string();
  expect_as_eager(once, {a, b}, 2e-2);
}

// The result lies where one of the inputs was, in any order of the operands.
TEST(FuseElementwise, WritesOverInputs) {
  for (int turn = 0; turn < 6; ++turn) {
    const Body body = [turn](const Tensors& x) {
      Tensors y;  // each is planned memory, read for the last time below
      for (int i = 0; i < 3; ++i) y.push_back(cumsum(x[0] * (i + 0.5), i % 2));
      std::rotate(y.begin(), y.begin() + turn % 3, y.end());
      if (turn > 2) std::swap(y[0], y[1]);
      const Tensor z = raw_op("AddN", {y[0], y[1], y[2], y[0]})[0] - y[2] * y[1];
      return Tensors{reverse(z, {1})};
    };
    expect_as_eager(body, {large(7)}, kFloat);
  }
}

TEST(FuseElementwise, LeavesWhatItMayNotTake) {
  const auto left = [](const Body& body, const Tensors& x) {
    const MutableFunction f = optimized_graph(body, x);
    EXPECT_EQ(count_op(f, kFused) + count_op(f, kSum), 0) << f.graph.to_string();
    expect_as_eager(body, x, kFloat);
  };
  // Small values, other dtypes.
  left([](const Tensors& x) { return Tensors{x[0] * x[0] + 1.0}; }, {numbers({4000}, 1)});
  left([](const Tensors& x) { return Tensors{x[0] * x[0] + 1.0}; },
       {cast(large(1), DType::kDouble)});
  left([](const Tensors& x) { return Tensors{x[0] * x[0] + 1}; }, {cast(large(1), DType::kInt32)});
  left([](const Tensors& x) { return Tensors{x[0] * x[0] + 1.0}; }, {numbers({0, 1 << 20}, 1)});
  // What is between is a result, or is read by others.
  left(
      [](const Tensors& x) {
        const Tensor y = tanh(x[0]);
        return Tensors{y, y * x[0]};
      },
      {large(1)});
  // A parameter that the loops do not know.
  left([](const Tensors& x) { return Tensors{nn::leaky_relu(tanh(x[0]), 0.3f)}; }, {large(1)});
  const Body truncated = [](const Tensors& x) {
    const Tensor y =
        raw_op("Cast", {x[0] * x[0]}, {{"DstT", DType::kBFloat16}, {"Truncate", true}})[0];
    return Tensors{y};
  };
  left(truncated, {large(1)});
}

// Nodes that others wait for stay, and what members wait for the fused node waits for.
TEST(FuseElementwise, MindsControlEdges) {
  class AllLoops final : public Evaluator {
   public:
    std::optional<std::vector<Array>> evaluate(const Node&, std::span<const Array>) override {
      return std::nullopt;
    }
    bool has_float_loops(const Node&) override { return true; }
  };
  const ConcreteFunction concrete =
      function([](Tensor x) { return exp(tanh(sin(cos(x)))); }).concrete(large(1));
  const OpRegistry& ops = Runtime::current().ops();
  AllLoops evaluator;
  const auto find = [](MutableFunction& f, const char* op) {
    for (const auto& node : f.graph.nodes())
      if (node->op().name == op) return node.get();
    throw NotFoundError(op);
  };
  {
    MutableFunction f(*concrete.function());
    f.control_results.push_back(find(f, "Tanh"));
    EXPECT_TRUE(passes::fuse_elementwise(f, ops, evaluator));
    EXPECT_EQ(count_op(f, "Exp"), 1);
    EXPECT_EQ(count_op(f, "Tanh"), 1);
    EXPECT_EQ(only_node(f, kFused)->attr<std::vector<std::string>>("ops"),
              (std::vector<std::string>{"Cos", "Sin"}));
  }
  {
    MutableFunction f(*concrete.function());
    f.graph.add_control_input(find(f, "Exp"), find(f, "Sin"));
    f.graph.add_control_input(find(f, "Tanh"), f.args[0]);
    EXPECT_TRUE(passes::fuse_elementwise(f, ops, evaluator));
    const Node* fused = only_node(f, kFused);
    ASSERT_NE(fused, nullptr);
    EXPECT_EQ(fused->control_inputs(), (std::vector<Node*>{f.args[0]})) << f.graph.to_string();
    EXPECT_EQ(count_op(f, "Sin"), 0);  // only members waited for it
  }
}

// One name stands for different programs in the plans for different shapes.
TEST(FuseElementwise, ServesManyShapes) {
  const auto body = [](const Tensor& x, const Tensor& y) { return tanh(x) * 2.0 + y * 3.0 - x; };
  const auto run = function([&](Tensor x, Tensor y) { return body(x, y); },
                            {.input_shapes = {PartialShape({-1, 512}), PartialShape({-1, 512})}});
  for (int round = 0; round < 2; ++round) {
    for (int n = 1; n <= 40; ++n) {  // more than the plans that are kept
      const Tensor x = numbers({n % 3 == 0 ? 1 : n, 512}, n);
      const Tensor y = numbers({n % 3 == 1 ? 1 : n, 512}, n + 1);
      ASSERT_LE(distance(run(x, y), body(x, y)), kFloat) << x.shape() << " and " << y.shape();
      const Tensor z = numbers({16, 512}, n), one = numbers({1, 512}, n + 1);
      ASSERT_LE(distance(run(z, one), body(z, one)), kFloat);
    }
  }
  EXPECT_EQ(run.num_traces(), 1u);
}

TEST(FuseElementwise, RunsOnSeveralThreads) {
  const auto body = [](const Tensor& x, const Tensor& row) {
    const Tensor y = tanh(x * row) + sigmoid(x) * 0.5;
    return y * y - reduce_mean(y * row, {0});
  };
  const auto run = function([&](Tensor x, Tensor row) { return body(x, row); },
                            {.input_shapes = {PartialShape({-1, 96}), PartialShape({96})}});
  constexpr int kThreads = 4, kCalls = 25;
  std::vector<Tensor> values, wanted;
  const Tensor row = numbers({96}, 50);
  for (int i = 0; i < kThreads; ++i) {
    values.push_back(numbers({64 + i, 96}, i));
    wanted.push_back(body(values.back(), row));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int call = 0; call < kCalls; ++call) {
        const auto i = static_cast<std::size_t>((t + call) % kThreads);
        if (!(distance(run(values[i], row), wanted[i]) <= 1e-5)) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(FuseElementwise, IsSwitchedOff) {
  const Body body = [](const Tensors& x) { return Tensors{reduce_sum(x[0] * x[0] + 1.0, {0})}; };
  config::optimizer::set_experimental_options({.elementwise_fusion = false});
  EXPECT_EQ(count_op(optimized_graph(body, {large(1)}), kSum), 0);
  config::optimizer::set_experimental_options({});
  EXPECT_EQ(count_op(optimized_graph(body, {large(1)}), kSum), 1);
}

// ---- Random trees. ----

struct Call {
  std::string op;
  std::vector<std::size_t> operands;
};

// Some arguments, calls on them and on one another, and which of the values are results.
struct Tree {
  Tensors args;
  std::vector<Call> calls;
  std::vector<std::size_t> results;
};

const Shape& tree_shape() {
  static const Shape shape{8, 16, 40};
  return shape;
}

Tree random_tree(int seed, bool short_floats) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::vector<Shape> shapes = {tree_shape(),   tree_shape(),    Shape{40},      Shape{16, 40},
                                     Shape{8, 1, 1}, Shape{8, 1, 40}, Shape{16, 1},   Shape{},
                                     Shape{1},       Shape{8, 16, 1}, Shape{1, 1, 40}};
  const std::vector<std::string> binary = {"AddV2",   "Sub",     "Mul",
                                           "Maximum", "Minimum", "SquaredDifference"};
  const std::vector<std::string> unary = {"Neg",  "Abs",    "Tanh",    "Sigmoid",
                                          "Relu", "Square", "Softsign"};
  const std::vector<std::string> same = {"AddN", "TanhGrad", "SigmoidGrad", "ReluGrad"};
  Tree tree;
  std::vector<Shape> known;
  const std::size_t args = 2 + pick(4);
  for (std::size_t i = 0; i < args; ++i) {
    known.push_back(i == 0 ? tree_shape() : shapes[pick(shapes.size())]);
    const bool is_short = short_floats && pick(3) != 0;
    Tensor arg = numbers(known.back(), seed * 10 + static_cast<int>(i),
                         is_short ? DType::kBFloat16 : DType::kFloat);
    if (!short_floats && seed % 5 == 0) {
      Array values = arg.array().clone();
      values.data<float>()[pick(static_cast<std::size_t>(values.num_elements()))] =
          seed % 2 == 0 ? NAN : INFINITY;
      arg = Tensor(std::move(values));
    }
    tree.args.push_back(std::move(arg));
  }
  const std::size_t calls = 10 + pick(11);
  // Most read what has just been made, so that trees grow deep.
  const auto operand = [&] {
    return pick(3) == 0 ? pick(known.size())
                        : known.size() - 1 - pick(std::min<std::size_t>(3, known.size()));
  };
  for (std::size_t i = 0; i < calls; ++i) {
    const std::size_t kind = pick(10);
    const std::size_t a = operand(), b = operand();
    if (kind < 5) {
      tree.calls.push_back({binary[pick(binary.size())], {a, b}});
      known.push_back(broadcast(known[a], known[b]));
    } else if (kind < 8) {
      tree.calls.push_back({unary[pick(unary.size())], {a}});
      known.push_back(known[a]);
    } else if (kind == 8 && known[a] == known[b]) {
      const std::string& op = same[pick(same.size())];
      tree.calls.push_back({op, op == "AddN" ? std::vector{a, b, a} : std::vector{a, b}});
      known.push_back(known[a]);
    } else if (short_floats) {
      tree.calls.push_back({pick(2) == 0 ? "narrow" : "widen", {a}});
      known.push_back(known[a]);
    } else {
      tree.calls.push_back({"spread", {a}});
      known.push_back(tree_shape());
    }
  }
  tree.results.push_back(known.size() - 1);
  if (pick(3) == 0) tree.results.push_back(known.size() - 1 - pick(4));
  if (pick(3) == 0 && known.back() == tree_shape()) {
    tree.calls.push_back({pick(2) == 0 ? "Sum" : "Mean", {known.size() - 1}});
    tree.results.push_back(known.size());
  }
  return tree;
}

// `exact` computes in float what the tree computes in bfloat16 here and there.
Tensors run_tree(const Tree& tree, const Tensors& args, bool exact) {
  Tensors values = args;
  if (exact) {
    for (Tensor& v : values) v = cast(v, DType::kFloat);
  }
  for (const Call& call : tree.calls) {
    Tensors in;
    for (const std::size_t i : call.operands) in.push_back(values[i]);
    // Operands of two types meet as float.
    const bool is_short = std::all_of(
        in.begin(), in.end(), [](const Tensor& t) { return t.dtype() == DType::kBFloat16; });
    if (!is_short) {
      for (Tensor& t : in) t = cast(t, DType::kFloat);
    }
    if (call.op == "narrow") {
      values.push_back(exact ? in[0] : cast(in[0], DType::kBFloat16));
    } else if (call.op == "widen") {
      values.push_back(cast(in[0], DType::kFloat));
    } else if (call.op == "spread") {
      values.push_back(broadcast_to(in[0], tree_shape()));
    } else if (call.op == "Sum" || call.op == "Mean") {
      values.push_back(raw_op(call.op, {in[0], Tensor{0, 1}})[0]);
    } else {
      values.push_back(raw_op(call.op, in)[0]);
    }
  }
  Tensors results;
  for (const std::size_t i : tree.results) results.push_back(cast(values[i], DType::kFloat));
  return results;
}

TEST(FuseElementwise, GivesForRandomTreesWhatEagerCallsGive) {
  constexpr int kTrees = 250;
  int fused = 0;
  for (int seed = 0; seed < kTrees; ++seed) {
    const Tree tree = random_tree(seed, false);
    const Body body = [&](const Tensors& args) { return run_tree(tree, args, false); };
    fused += count_op(optimized_graph(body, tree.args), kFused) > 0 ? 1 : 0;
    const Tensors wanted = body(tree.args);
    const auto run = function([&](Tensors args) { return body(args); });
    for (int call = 0; call < 3; ++call) {
      const Tensors got = run(tree.args);
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_LE(distance(got[i], wanted[i]), 1e-5)
            << "tree " << seed << ", result " << i << "\n"
            << optimized_graph(body, tree.args).graph.to_string();
      }
    }
  }
  EXPECT_GT(fused, kTrees / 2);
}

TEST(FuseElementwise, IsAsExactForRandomTreesInShortFloats) {
  constexpr int kTrees = 150;
  int fused = 0;
  for (int seed = 0; seed < kTrees; ++seed) {
    const Tree tree = random_tree(seed + 1000, true);
    const Body body = [&](const Tensors& args) { return run_tree(tree, args, false); };
    fused += count_op(optimized_graph(body, tree.args), kFused) > 0 ? 1 : 0;
    const Tensors exact = run_tree(tree, tree.args, true), eager = body(tree.args);
    const auto run = function([&](Tensors args) { return body(args); });
    for (int call = 0; call < 3; ++call) {
      const Tensors got = run(tree.args);
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_LE(distance(got[i], exact[i]), 2 * distance(eager[i], exact[i]) + 1e-2)
            << "tree " << seed << ", result " << i << "\n"
            << optimized_graph(body, tree.args).graph.to_string();
      }
    }
  }
  EXPECT_GT(fused, kTrees / 2);
}

}  // namespace
}  // namespace tandem
