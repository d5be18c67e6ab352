#include "tandem/ops/array_ops.h"

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

Tensor counting(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.num_elements()));
  std::iota(values.begin(), values.end(), 0.0f);
  return Tensor::from(values, shape);
}

Tensor ints(const std::vector<std::int32_t>& values, const Shape& shape) {
  return Tensor::from(values, shape);
}

std::vector<float> floats(const Tensor& t) { return t.to_vector<float>(); }

std::string message_of_error(const std::function<void()>& f) {
  try {
    f();
  } catch (const InvalidArgumentError& e) {
    return e.what();
  } catch (const Error& e) {
    return std::string("another error: ") + e.what();
  }
  return "no error";
}

// ---- Shapes ----

TEST(ArrayOps, ReshapeSharesMemoryAndInfersOneSize) {
  const Tensor x = counting({2, 6});
  const Tensor y = reshape(x, {3, -1});
  EXPECT_EQ(y.shape(), (Shape{3, 4}));
  EXPECT_EQ(y.array().raw_data(), x.array().raw_data());
  EXPECT_EQ(reshape(x, shape(counting({4, 3}))).shape(), (Shape{4, 3}));
  EXPECT_EQ(reshape(counting({1}), {}).shape(), Shape{});
  EXPECT_EQ(reshape(counting({0, 3}), {-1, 0}).shape(), (Shape{3, 0}));
}

TEST(ArrayOps, ReshapeSaysWhyItCannot) {
  const Tensor x = counting({2, 3});
  EXPECT_THAT(
      message_of_error([&] { reshape(x, {4}); }),
      HasSubstr("Input to reshape is a tensor with 6 values, but the requested shape has 4"));
  EXPECT_THAT(message_of_error([&] {
                reshape(x, {-1, 4});
              }),
              HasSubstr("requires a multiple of 4"));
  EXPECT_THAT(message_of_error([&] {
                reshape(x, {-1, -1});
              }),
              HasSubstr("Only one input size may be -1"));
  EXPECT_THAT(message_of_error([&] { reshape(x, {-2, 3}); }), HasSubstr("must be non-negative"));
  EXPECT_THAT(message_of_error([&] { reshape(x, {INT64_MAX, INT64_MAX}); }), HasSubstr("2^63"));
}

TEST(ArrayOps, ExpandDimsAndSqueezeUndoEachOther) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(expand_dims(x, 0).shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(expand_dims(x, -1).shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(squeeze(expand_dims(x, 1)).shape(), x.shape());
  EXPECT_EQ(squeeze(counting({1, 2, 1}), {0}).shape(), (Shape{2, 1}));
  EXPECT_THAT(message_of_error([&] { expand_dims(x, 3); }),
              HasSubstr("Tried to expand dim index 3"));
  EXPECT_THAT(message_of_error([&] { squeeze(x, {0}); }),
              HasSubstr("expected a dimension of 1, got 2"));
}

TEST(ArrayOps, ShapesAreValues) {
  const Tensor x = counting({2, 3});
  EXPECT_THAT(shape(x).to_vector<std::int32_t>(), ElementsAre(2, 3));
  EXPECT_THAT(shape(x, int64).to_vector<std::int64_t>(), ElementsAre(2, 3));
  EXPECT_EQ(size(x).item<std::int32_t>(), 6);
  EXPECT_EQ(rank(x).item<std::int32_t>(), 2);
  EXPECT_THAT(broadcast_dynamic_shape(Tensor{2, 1}, Tensor{3}).to_vector<std::int32_t>(),
              ElementsAre(2, 3));
  EXPECT_THAT(message_of_error([] { broadcast_dynamic_shape(Tensor{2}, Tensor{3}); }),
              HasSubstr("Incompatible shapes: [2] vs. [3]"));
}

// ---- Places ----

TEST(ArrayOps, TransposeMovesAxes) {
  EXPECT_THAT(floats(transpose(counting({2, 3}))), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(floats(transpose(counting({2, 2, 2}), {2, 0, 1})),
              ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_EQ(transpose(counting({0, 3})).shape(), (Shape{3, 0}));
  EXPECT_EQ(transpose(Tensor(1.0)).shape(), Shape{});
  EXPECT_EQ(matrix_transpose(counting({4, 2, 3})).shape(), (Shape{4, 3, 2}));
  EXPECT_THAT(transpose(Tensor::from(std::vector<std::string>{"a", "b", "c", "d"}, {2, 2}))
                  .to_vector<std::string>(),
              ElementsAre("a", "c", "b", "d"));
}

// Sizes around and beyond the tiles that the fast path works in, for elements of every size.
template <class T>
void check_large_transpose(std::int64_t rows, std::int64_t columns) {
  std::vector<T> values(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i * 2654435761u >> 7);
  const Tensor y = transpose(Tensor::from(values, {rows, columns}));
  const auto got = y.data<T>();
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      ASSERT_EQ(got[static_cast<std::size_t>(c * rows + r)],
                values[static_cast<std::size_t>(r * columns + c)])
          << "at " << r << ", " << c << " of " << rows << " x " << columns;
    }
  }
}

TEST(ArrayOps, TransposeOfEverySizeOfElement) {
  for (const auto& [rows, columns] :
       {std::pair<std::int64_t, std::int64_t>{1, 70}, {64, 64}, {65, 130}, {300, 257}}) {
    check_large_transpose<std::uint8_t>(rows, columns);
    check_large_transpose<std::int16_t>(rows, columns);
    check_large_transpose<float>(rows, columns);
    check_large_transpose<std::int64_t>(rows, columns);
  }
}

TEST(ArrayOps, TransposeRefusesWhatIsNoPermutation) {
  EXPECT_THAT(message_of_error([] {
                transpose(counting({2, 2}), {0});
              }),
              HasSubstr("a vector of size 1"));
  EXPECT_THAT(message_of_error([] {
                transpose(counting({2, 2}), {0, 0});
              }),
              HasSubstr("1 is missing"));
  EXPECT_THAT(message_of_error([] {
                transpose(counting({2, 2}), {0, 2});
              }),
              HasSubstr("2 is out of range"));
}

TEST(ArrayOps, ReverseAndRoll) {
  const Tensor x = counting({2, 3});
  EXPECT_THAT(floats(reverse(x, {1})), ElementsAre(2, 1, 0, 5, 4, 3));
  EXPECT_THAT(floats(reverse(x, {0, -1})), ElementsAre(5, 4, 3, 2, 1, 0));
  EXPECT_THAT(floats(roll(x, {1}, {1})), ElementsAre(2, 0, 1, 5, 3, 4));
  EXPECT_THAT(floats(roll(x, {1, -1}, {0, 1})), ElementsAre(4, 5, 3, 1, 2, 0));
  EXPECT_THAT(floats(roll(x, {7}, {1})), ElementsAre(2, 0, 1, 5, 3, 4));
  EXPECT_THAT(floats(reverse_sequence(x, Tensor::from(std::vector<std::int64_t>{2, 3}), 1)),
              ElementsAre(1, 0, 2, 5, 4, 3));
  EXPECT_THAT(message_of_error([&] {
                reverse(x, {0, -2});
              }),
              HasSubstr("axis 0 specified more than once"));
}

TEST(ArrayOps, BlocksMoveThereAndBack) {
  const Tensor x = counting({1, 4, 4, 2});
  EXPECT_EQ(nn::space_to_depth(x, 2).shape(), (Shape{1, 2, 2, 8}));
  EXPECT_EQ(floats(nn::depth_to_space(nn::space_to_depth(x, 2), 2)), floats(x));
  const Tensor margins = ints({0, 0, 1, 1}, {2, 2});
  const Tensor batches = space_to_batch_nd(x, {2, 3}, margins);
  EXPECT_EQ(batches.shape(), (Shape{6, 2, 2, 2}));
  EXPECT_EQ(floats(batch_to_space_nd(batches, {2, 3}, margins)), floats(x));
}

// ---- Joining ----

TEST(ArrayOps, ConcatJoinsAlongAnAxis) {
  const Tensor a = counting({2, 2});
  const Tensor b = counting({2, 1});
  EXPECT_THAT(floats(concat({a, b}, 1)), ElementsAre(0, 1, 0, 2, 3, 1));
  EXPECT_THAT(floats(concat({a, a}, 0)), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_THAT(floats(concat({counting({0, 2}), a}, 0)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(floats(concat({a}, -1)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(message_of_error([&] {
                concat({a, b}, 0);
              }),
              HasSubstr("Dimension 1 in both shapes must be equal"));
  EXPECT_THAT(message_of_error([&] {
                concat({a, b}, 2);
              }),
              HasSubstr("in the range [-2, 2), but got 2"));
  EXPECT_THAT(message_of_error([&] {
                concat({a, counting({2})}, 0);
              }),
              HasSubstr("Ranks of all input tensors"));
  EXPECT_THAT(message_of_error([] {
                concat({Tensor(1.0), Tensor(2.0)}, 0);
              }),
              HasSubstr("td::stack"));
  EXPECT_THAT(message_of_error([] { concat({}, 0); }), HasSubstr("at least one"));
  EXPECT_THAT(message_of_error([&] { concat({a, Tensor{{1, 2}}}, 0); }), HasSubstr("td::cast"));
}

TEST(ArrayOps, StackAndUnstackUndoEachOther) {
  const Tensor a = counting({2});
  EXPECT_THAT(floats(stack({a, a + 10.0f})), ElementsAre(0, 1, 10, 11));
  EXPECT_THAT(floats(stack({a, a + 10.0f}, 1)), ElementsAre(0, 10, 1, 11));
  const auto parts = unstack(counting({2, 3}), {}, 1);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_THAT(floats(parts[2]), ElementsAre(2, 5));
  const Tensor rows = counting({3, 2});
  EXPECT_EQ(unstack(rows)[1].array().data<float>(), rows.array().data<float>() + 2)
      << "rows share memory";
  EXPECT_THAT(message_of_error([&] {
                stack({a, counting({3})});
              }),
              HasSubstr("Shapes of all inputs must match"));
  EXPECT_THAT(message_of_error([&] { unstack(rows, 2); }),
              HasSubstr("must equal 2, got shape [3,2]"));
}

// ---- Margins and repetition ----

TEST(ArrayOps, PadsInThreeWays) {
  const Tensor x = counting({3});
  const Tensor margin = ints({2, 1}, {1, 2});
  EXPECT_THAT(floats(pad(x, margin)), ElementsAre(0, 0, 0, 1, 2, 0));
  EXPECT_THAT(floats(pad(x, margin, PadMode::kConstant, 7)), ElementsAre(7, 7, 0, 1, 2, 7));
  EXPECT_THAT(floats(pad(x, margin, PadMode::kReflect)), ElementsAre(2, 1, 0, 1, 2, 1));
  EXPECT_THAT(floats(pad(x, margin, PadMode::kSymmetric)), ElementsAre(1, 0, 0, 1, 2, 2));
  EXPECT_THAT(floats(pad(counting({2, 2}), ints({1, 0, 0, 1}, {2, 2}), PadMode::kReflect)),
              ElementsAre(2, 3, 2, 0, 1, 0, 2, 3, 2));
  EXPECT_THAT(message_of_error([&] {
                pad(x, ints({3, 0}, {1, 2}), PadMode::kReflect);
              }),
              HasSubstr("paddings must be less than the dimension size"));
  EXPECT_THAT(message_of_error([&] {
                pad(x, ints({-1, 0}, {1, 2}));
              }),
              HasSubstr("Paddings must be non-negative"));
  EXPECT_THAT(message_of_error([&] {
                pad(x, ints({1, 0, 1, 0}, {2, 2}));
              }),
              HasSubstr("must be the rank of inputs"));
}

TEST(ArrayOps, RepeatsAndBroadcasts) {
  EXPECT_THAT(floats(tile(counting({2}), {3})), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(floats(tile(counting({1, 2}), {2, 2})), ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_THAT(floats(tile(counting({2}), {0})), IsEmpty());
  EXPECT_THAT(floats(repeat(counting({2}), 2)), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(floats(repeat(counting({2, 2}), 2, 0)), ElementsAre(0, 1, 0, 1, 2, 3, 2, 3));
  EXPECT_THAT(floats(broadcast_to(counting({2, 1}), {2, 3})), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(floats(broadcast_to(counting({3}), {2, 3})), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(message_of_error([] { broadcast_to(counting({2}), {3}); }),
              HasSubstr("Incompatible shapes: [2] vs. [3]"));
  EXPECT_THAT(message_of_error([] { tile(counting({2}), {-1}); }),
              HasSubstr("Expected multiples[0] >= 0"));
}

TEST(ArrayOps, MemoryThatCannotBeHadIsAnError) {
  EXPECT_THROW(tile(counting({2}), {std::int64_t{1} << 57}), ResourceExhaustedError);
  EXPECT_THAT(message_of_error([] {
                broadcast_to(Tensor(1.0), {INT64_MAX, 2});
              }),
              HasSubstr("2^63"));
}

// ---- Values as they are ----

TEST(ArrayOps, ChecksPassTheValueOn) {
  const Tensor x = counting({2});
  EXPECT_EQ(check_numerics(x, "x").array().raw_data(), x.array().raw_data());
  EXPECT_THAT(message_of_error([] {
                check_numerics(Tensor{1.0f, NAN}, "loss");
              }),
              HasSubstr("loss : Tensor had NaN values"));
  EXPECT_THAT(message_of_error([] {
                check_numerics(Tensor{INFINITY, NAN}, "loss");
              }),
              HasSubstr("Inf and NaN"));
  EXPECT_EQ(ensure_shape(x, {PartialShape::kUnknown}).shape(), x.shape());
  EXPECT_THAT(message_of_error([&] { ensure_shape(x, {3}); }),
              HasSubstr("is not compatible with expected shape [3]"));
}

TEST(ArrayOps, BitcastReadsTheSameBytes) {
  EXPECT_EQ(bitcast(Tensor(1.0f), uint32).item<std::uint32_t>(), 0x3f800000u);
  EXPECT_EQ(bitcast(Tensor{1.0f, 2.0f}, uint8).shape(), (Shape{2, 4}));
  EXPECT_EQ(bitcast(bitcast(Tensor{1.0f, 2.0f}, uint8), float32).at<float>({1}), 2.0f);
  EXPECT_THAT(message_of_error([] { bitcast(Tensor{1.0f}, float64); }),
              HasSubstr("Cannot bitcast"));
}

// ---- Gradients, traced code ----

TEST(ArrayOps, GradientsComeBackInPlace) {
  const Tensor x = counting({2, 3});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = transpose(pad(x, ints({0, 0, 1, 0}, {2, 2})));
  const Tensor z = concat({y, y}, 0);
  const Tensor gradient = tape.gradient(tile(z, {2, 1}), x);
  EXPECT_EQ(floats(gradient), std::vector<float>(6, 4.0f));
}

TEST(ArrayOps, NoGradientPassesStopGradient) {
  const Tensor x = counting({3});
  GradientTape tape;
  tape.watch(x);
  EXPECT_FALSE(tape.gradient(stop_gradient(x), x).defined());
}

TEST(ArrayOps, AGradientThatIsForbiddenSaysWhy) {
  const Tensor x = counting({3});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = prevent_gradient(x, "labels have none");
  try {
    tape.gradient(y, x);
    FAIL();
  } catch (const FailedPreconditionError& e) {
    EXPECT_THAT(e.what(), HasSubstr("labels have none"));
  }
}

TEST(ArrayOps, ShapesFlowThroughTracedShapeArithmetic) {
  PartialShape seen;
  auto f = function([&](Tensor x) {
    const Tensor rows = index(shape(x), {0});
    const Tensor y = reshape(x, stack({rows, Tensor(-1)}));
    seen = y.partial_shape();
    return y;
  });
  EXPECT_EQ(f(counting({4, 2, 3})).shape(), (Shape{4, 6}));
  EXPECT_EQ(seen, (PartialShape{4, 6}));
}

// What is known of y's shape while a function of a float value of shape `x` is traced.
PartialShape traced_shape(const PartialShape& x, const std::function<Tensor(Tensor)>& y) {
  PartialShape seen;
  trace_function("f", {float32}, {x}, [&](std::span<const Tensor> args) {
    const Tensor result = y(args[0]);
    seen = result.partial_shape();
    return std::vector<Tensor>{result};
  });
  return seen;
}

TEST(ArrayOps, ShapesFollowWhatIsComputedFromConstants) {
  const auto padded = [](const Tensor& x) {
    return pad(x, reshape(Tensor{0, 0, 2, 1, 0, 0}, {3, 2}));
  };
  EXPECT_EQ(traced_shape({-1, 8, 3}, padded), (PartialShape{-1, 11, 3}));
  const auto columns = [](const Tensor& x) {
    const Tensor before = Tensor{0, 2, 0};
    return pad(x, stack({before, before + 1}, 1));
  };
  EXPECT_EQ(traced_shape({-1, 8, 3}, columns), (PartialShape{-1, 13, 4}));
  const auto tiled = [](const Tensor& x) {
    return tile(x, cast(concat({Tensor{1}, Tensor{3}}, 0), int64));
  };
  EXPECT_EQ(traced_shape({-1, 4}, tiled), (PartialShape{-1, 12}));
  const auto wrong = [](const Tensor& x) { return pad(x, reshape(Tensor{0, 0, -1, 1}, {2, 2})); };
  EXPECT_THAT(message_of_error([&] { traced_shape({-1, 8}, wrong); }), HasSubstr("non-negative"));
}

TEST(ArrayOps, ShapesFollowWhatIsComputedFromSizes) {
  const auto reshaped = [](const auto& sizes) {
    return [sizes](const Tensor& x) { return reshape(x, IntList(sizes(shape(x)))); };
  };
  EXPECT_EQ(traced_shape({-1, -1, 3}, reshaped([](const Tensor& s) {
                           return s * Tensor{1, 2, 1};
                         })),
            (PartialShape{-1, -1, 3}));
  EXPECT_EQ(traced_shape({-1, 4, 3}, reshaped([](const Tensor& s) {
                           return concat({slice(s, {0}, {1}), Tensor{12}}, 0);
                         })),
            (PartialShape{-1, 12}));
  EXPECT_EQ(traced_shape({-1, 4, 3}, reshaped([](const Tensor& s) {
                           const Tensor rest = reduce_prod(index(s, {Slice(1, {})}));
                           return stack({index(s, {0}), rest});
                         })),
            (PartialShape{-1, 12}));
}

TEST(ArrayOps, TracedShapesAreRefusedWhereTheyCannotFit) {
  auto f = function([](Tensor x) { return reshape(x, {5}); });
  EXPECT_THAT(message_of_error([&] {
                f(counting({2, 3}));
              }),
              HasSubstr("Cannot reshape a tensor with 6 elements to shape [5]"));
}

// One range for all entries is a scalar in the results, in whatever shape it was given.
TEST(Quantize, TheRangeOfAllIsAScalar) {
  const Tensor x{-1.0f, 0.5f};
  const auto results =
      raw_op("QuantizeV2", {x, Tensor{-1.0f}, Tensor{2.0f}}, {{"T", DType::kQint8}});
  EXPECT_EQ(results[1].shape(), Shape{});
  EXPECT_EQ(results[2].shape(), Shape{});
  EXPECT_EQ(results[2].item<float>(), 2.0f);
}

}  // namespace
}  // namespace tandem
