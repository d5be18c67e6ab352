// The elementwise ends of recurrent steps: one op in the graph that runs, with the values that the
// single ops give eagerly.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/ops/activation_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/ops/unary_ops.h"

#include "tests/unit/ops/fusion_util.h"

namespace tandem {
namespace {

using Tensors = std::vector<Tensor>;

constexpr double kTolerance = 2e-6;

// gates of four groups, cell
Tensors lstm(const Tensors& in) {
  const auto g = split(in[0], 4, 1);
  const Tensor cell = sigmoid(g[1]) * in[1] + sigmoid(g[0]) * tanh(g[2]);
  return {cell, sigmoid(g[3]) * tanh(cell)};
}

// gates from the input and from the state, state
Tensors gru(const Tensors& in) {
  const auto x = split(in[0], 3, 1), h = split(in[1], 3, 1);
  const Tensor z = sigmoid(x[0] + h[0]), r = sigmoid(x[1] + h[1]);
  const Tensor candidate = tanh(x[2] + r * h[2]);
  return {z * in[2] + (1.0 - z) * candidate};
}

// The body whose groups from the state are sliced, as Keras does for TensorFlow; `of` says which.
Body sliced_gru(std::array<std::int64_t, 3> of) {
  return [of](const Tensors& in) -> Tensors {
    const std::int64_t units = in[2].partial_shape().dim(1);
    const auto x = split(in[0], 3, 1);
    const auto h = [&](std::size_t i) {
      const std::optional<std::int64_t> begin = of[i] * units;
      return index(in[1],
                   {Slice(), of[i] == 2 ? Slice(begin, none) : Slice(begin, *begin + units)});
    };
    const Tensor z = sigmoid(x[0] + h(0)), r = sigmoid(x[1] + h(1));
    const Tensor candidate = tanh(x[2] + r * h(2));
    return {z * in[2] + (1.0 - z) * candidate};
  };
}

TEST(FuseRecurrent, LstmStepIsOneOp) {
  for (const std::int64_t rows : {1, 2, 7}) {
    for (const std::int64_t units : {1, 5, 64}) {
      const Tensors args{numbers({rows, 4 * units}, 1), numbers({rows, units}, 2)};
      const MutableFunction f = optimized_graph(lstm, args);
      EXPECT_EQ(count_op(f, "_LstmGates"), 1) << f.graph.to_string();
      for (const char* left : {"Split", "Sigmoid", "Tanh", "Mul", "AddV2"})
        EXPECT_EQ(count_op(f, left), 0) << left;
      expect_as_eager(lstm, args, kTolerance);
    }
  }
}

TEST(FuseRecurrent, LstmStepOfOneCellForAllRows) {
  expect_as_eager(lstm, {numbers({3, 8}, 1), numbers({1, 2}, 2)}, kTolerance);
  expect_as_eager(lstm, {numbers({1, 8}, 1), numbers({3, 2}, 2)}, kTolerance);
  expect_as_eager(lstm, {numbers({0, 8}, 1), numbers({0, 2}, 2)}, kTolerance);
}

TEST(FuseRecurrent, OtherGatesStayAsTheyAre) {
  const Body swapped = [](const Tensors& in) -> Tensors {
    const auto g = split(in[0], 4, 1);
    const Tensor cell = sigmoid(g[1]) * in[1] + sigmoid(g[2]) * tanh(g[0]);
    return {cell, sigmoid(g[3]) * tanh(cell)};
  };
  const Body gate_is_result = [](const Tensors& in) -> Tensors {
    const auto g = split(in[0], 4, 1);
    const Tensor forget = sigmoid(g[1]);
    const Tensor cell = forget * in[1] + sigmoid(g[0]) * tanh(g[2]);
    return {cell, sigmoid(g[3]) * tanh(cell), forget};
  };
  const Tensors args{numbers({2, 12}, 1), numbers({2, 3}, 2)};
  for (const Body& body : {swapped, gate_is_result}) {
    EXPECT_EQ(count_op(optimized_graph(body, args), "_LstmGates"), 0);
    expect_as_eager(body, args, kTolerance);
  }
}

TEST(FuseRecurrent, GruStepIsOneOp) {
  for (const std::int64_t rows : {1, 3}) {
    for (const std::int64_t units : {1, 6, 64}) {
      const Tensors args{numbers({rows, 3 * units}, 1), numbers({rows, 3 * units}, 2),
                         numbers({rows, units}, 3)};
      const MutableFunction f = optimized_graph(gru, args);
      EXPECT_EQ(count_op(f, "_GruGates"), 1) << f.graph.to_string();
      for (const char* left : {"Split", "Sigmoid", "Tanh", "Mul", "AddV2", "Sub"})
        EXPECT_EQ(count_op(f, left), 0) << left;
      expect_as_eager(gru, args, kTolerance);
    }
  }
}

TEST(FuseRecurrent, GruStepOfSlicesIsOneOp) {
  const Tensors args{numbers({3, 18}, 1), numbers({3, 18}, 2), numbers({3, 6}, 3)};
  const Body body = sliced_gru({0, 1, 2});
  const MutableFunction f = optimized_graph(body, args);
  EXPECT_EQ(count_op(f, "_GruGates"), 1) << f.graph.to_string();
  for (const char* left : {"Split", "StridedSlice", "Sigmoid", "Tanh", "Mul", "AddV2", "Sub"})
    EXPECT_EQ(count_op(f, left), 0) << left;
  expect_as_eager(body, args, kTolerance);
}

// The GRU's end with other things in the place of the groups from the state.
Body gru_of(std::function<Tensor(Tensor gates, int i)> group) {
  return [group = std::move(group)](const Tensors& in) -> Tensors {
    const auto x = split(in[0], 3, 1);
    const Tensor z = sigmoid(x[0] + group(in[1], 0)), r = sigmoid(x[1] + group(in[1], 1));
    const Tensor candidate = tanh(x[2] + r * group(in[1], 2));
    return {z * in[2] + (1.0 - z) * candidate};
  };
}

TEST(FuseRecurrent, OtherSlicesStayAsTheyAre) {
  const std::pair<const char*, Body> bodies[] = {
      {"other groups", sliced_gru({1, 0, 2})},
      {"one group twice", sliced_gru({0, 1, 1})},
      {"groups from behind", sliced_gru({2, 1, 0})},
      {"between the groups", gru_of([](Tensor h, int i) {
         return index(h, {Slice(), Slice(5 * i, 5 * i + 6)});
       })},
      {"every third column", gru_of([](Tensor h, int i) {
         return index(h, {Slice(), Slice(i, none, 3)});
       })},
      {"some rows", gru_of([](Tensor h, int i) {
         return index(h, {Slice(0, 1), Slice(6 * i, 6 * i + 6)});
       })},
      {"one row", gru_of([](Tensor h, int i) {
         return index(h, {0, Slice(6 * i, 6 * i + 6)});
       })},
      {"one column", gru_of([](Tensor h, int i) {
         return index(h, {Slice(), 6 * i, newaxis});
       })},
      {"a slice read twice", gru_of([](Tensor h, int i) {
         const Tensor part = index(h, {Slice(), Slice(6 * i, 6 * i + 6)});
         return part + part;
       })},
  };
  const Tensors args{numbers({3, 18}, 1), numbers({3, 18}, 2), numbers({3, 6}, 3)};
  for (const auto& [what, body] : bodies) {
    EXPECT_EQ(count_op(optimized_graph(body, args), "_GruGates"), 0) << what;
    expect_as_eager(body, args, kTolerance);
  }
}

TEST(FuseRecurrent, WidthsThatAreBroadcastStayAsTheyAre) {
  const Tensors of_gru[] = {
      {numbers({4, 6}, 1), numbers({4, 3}, 2), numbers({4, 2}, 3)},
      {numbers({4, 3}, 1), numbers({4, 6}, 2), numbers({4, 2}, 3)},
      {numbers({4, 6}, 1), numbers({4, 6}, 2), numbers({4, 1}, 3)},
      {numbers({4, 6}, 1), numbers({4, 6}, 2), numbers({2}, 3)},
      {numbers({4, 3}, 1), numbers({4, 3}, 2), numbers({4, 5}, 3)},
  };
  for (const Tensors& args : of_gru) {
    EXPECT_EQ(count_op(optimized_graph(gru, args), "_GruGates"), 0);
    expect_as_eager(gru, args, kTolerance);
  }
  const Tensors of_lstm[] = {{numbers({4, 8}, 1), numbers({4, 1}, 2)},
                             {numbers({4, 8}, 1), numbers({2}, 2)},
                             {numbers({4, 4}, 1), numbers({4, 3}, 2)}};
  for (const Tensors& args : of_lstm) {
    EXPECT_EQ(count_op(optimized_graph(lstm, args), "_LstmGates"), 0);
    expect_as_eager(lstm, args, kTolerance);
  }
}

TEST(FuseRecurrent, RowsThatAreBroadcastAreRepeated) {
  expect_as_eager(gru, {numbers({1, 6}, 1), numbers({3, 6}, 2), numbers({1, 2}, 3)}, kTolerance);
  expect_as_eager(gru, {numbers({3, 6}, 1), numbers({1, 6}, 2), numbers({3, 2}, 3)}, kTolerance);
}

}  // namespace
}  // namespace tandem
