#include "tandem/ops/slice_ops.h"

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/core/strided_index.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Tensor counting(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.num_elements()));
  std::iota(values.begin(), values.end(), 0.0f);
  return Tensor::from(values, shape);
}

std::vector<float> floats(const Tensor& t) { return t.to_vector<float>(); }

std::string message_of_error(const std::function<void()>& f) {
  try {
    f();
  } catch (const InvalidArgumentError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Index, PicksAsPythonDoes) {
  const Tensor x = counting({4, 3});
  EXPECT_THAT(floats(index(x, {1})), ElementsAre(3, 4, 5));
  EXPECT_THAT(floats(index(x, {-1, 0})), ElementsAre(9));
  EXPECT_EQ(index(x, {-1, 0}).shape(), Shape{});
  EXPECT_THAT(floats(index(x, {Slice(1, 3), 2})), ElementsAre(5, 8));
  EXPECT_THAT(floats(index(x, {Slice(none, none, -2), 0})), ElementsAre(9, 3));
  EXPECT_THAT(floats(index(x, {ellipsis, 1})), ElementsAre(1, 4, 7, 10));
  EXPECT_THAT(floats(index(x, {Slice(-2, none), 0})), ElementsAre(6, 9));
  EXPECT_THAT(floats(index(x, {Slice(3, 1)})), IsEmpty());
  EXPECT_THAT(floats(index(x, {Slice(0, 100), 0})), ElementsAre(0, 3, 6, 9));
  EXPECT_EQ(index(x, {newaxis, Slice(), newaxis, 0}).shape(), (Shape{1, 4, 1}));
  EXPECT_EQ(index(counting({2, 3, 4, 5}), {1, ellipsis, 2}).shape(), (Shape{3, 4}));
  EXPECT_EQ(index(x, {ellipsis}).shape(), x.shape());
}

TEST(Index, TakesComputedIntegers) {
  const Tensor x = counting({4, 3});
  EXPECT_THAT(floats(index(x, {Tensor(2), Slice(1, 3)})), ElementsAre(7, 8));
  EXPECT_THAT(floats(index(x, {Tensor(-1)})), ElementsAre(9, 10, 11));
  auto row = function([](Tensor t, Tensor i) { return index(t, {i, Slice(0, 2)}); });
  EXPECT_THAT(floats(row(x, Tensor(1))), ElementsAre(3, 4));
  EXPECT_THAT(floats(row(x, Tensor(3))), ElementsAre(9, 10));
}

TEST(Index, SharesWholeRows) {
  const Tensor x = counting({4, 3});
  EXPECT_EQ(index(x, {Slice(1, 3)}).array().data<float>(), x.array().data<float>() + 3);
  EXPECT_EQ(index(x, {2}).array().data<float>(), x.array().data<float>() + 6);
  EXPECT_NE(index(x, {Slice(), Slice(0, 2)}).array().raw_data(), x.array().raw_data());
}

TEST(Index, SaysWhatIsWrong) {
  const Tensor x = counting({4, 3});
  EXPECT_THAT(message_of_error([&] { index(x, {4}); }),
              HasSubstr("slice index 4 of dimension 0 out of bounds"));
  EXPECT_THAT(message_of_error([&] { index(x, {-5}); }),
              HasSubstr("slice index -5 of dimension 0 out of bounds"));
  EXPECT_THAT(message_of_error([&] { index(x, {0, 0, 0}); }), HasSubstr("input has only 2 dims"));
  EXPECT_THAT(message_of_error([&] { index(x, {Slice(0, 1, 0)}); }), HasSubstr("must be non-zero"));
  EXPECT_THAT(message_of_error([&] {
                index(x, {ellipsis, ellipsis});
              }),
              HasSubstr("Multiple ellipses"));
  EXPECT_THAT(message_of_error([&] { index(x, {INT64_MAX}); }), HasSubstr("out of bounds"));
  EXPECT_THAT(message_of_error([&] { index(x, {INT64_MIN}); }), HasSubstr("out of bounds"));
}

TEST(Index, ExtremeSlicesAreCutToTheValue) {
  const Tensor x = counting({4});
  EXPECT_THAT(floats(index(x, {Slice(INT64_MIN, INT64_MAX, INT64_MAX)})), ElementsAre(0));
  EXPECT_THAT(floats(index(x, {Slice(INT64_MAX, INT64_MIN, INT64_MIN)})), ElementsAre(3));
}

TEST(StridedIndex, UnknownSizesStayUnknown) {
  const std::vector<std::int64_t> zero{0, 0}, two{2, 2}, one{1, 1};
  StridedIndexSpec spec;
  spec.begin = zero;
  spec.end = two;
  spec.strides = one;
  spec.entries = 2;
  const std::vector<std::int64_t> sizes{PartialShape::kUnknown, 5, PartialShape::kUnknown};
  const StridedIndex picked(sizes, spec);
  EXPECT_THAT(std::vector<std::int64_t>(picked.result_dims().begin(), picked.result_dims().end()),
              ElementsAre(PartialShape::kUnknown, 2, PartialShape::kUnknown));
  spec.shrink_axis_mask = 1;
  EXPECT_EQ(StridedIndex(sizes, spec).result_rank, 2);
}

TEST(SliceOps, SliceTakesABox) {
  const Tensor x = counting({3, 4});
  EXPECT_THAT(floats(slice(x, {1, 1}, {2, 2})), ElementsAre(5, 6, 9, 10));
  EXPECT_THAT(floats(slice(x, {2, 2}, {-1, -1})), ElementsAre(10, 11));
  EXPECT_THAT(message_of_error([&] {
                slice(x, {0, 3}, {1, 2});
              }),
              HasSubstr("Expected size[1] in [0, 1], but got 2"));
  EXPECT_THAT(message_of_error([&] {
                slice(x, {4, 0}, {0, 0});
              }),
              HasSubstr("Expected begin[0] in [0, 3], but got 4"));
  EXPECT_THAT(message_of_error([&] { slice(x, {0}, {1}); }), HasSubstr("1-D tensors of size 2"));
  EXPECT_THAT(message_of_error([&] {
                slice(x, {0, 0}, {1, INT64_MAX});
              }),
              HasSubstr("Expected size[1]"));
}

TEST(SliceOps, SplitGivesPartsThatMakeUpTheWhole) {
  const Tensor x = counting({4, 2});
  const auto halves = split(x, 2);
  ASSERT_EQ(halves.size(), 2u);
  EXPECT_THAT(floats(halves[1]), ElementsAre(4, 5, 6, 7));
  const auto sized = split(x, {1, -1}, 0);
  EXPECT_EQ(sized[1].shape(), (Shape{3, 2}));
  EXPECT_THAT(floats(split(x, 2, 1)[1]), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(message_of_error([&] { split(x, 3); }),
              HasSubstr("evenly divide the split dimension"));
  EXPECT_THAT(message_of_error([&] { split(x, {1, 1}, 0); }), HasSubstr("Determined shape must"));
  EXPECT_THAT(message_of_error([&] {
                split(x, {-1, -1}, 0);
              }),
              HasSubstr("There can only be one -1"));
  EXPECT_THAT(message_of_error([&] { split(x, 2, 2); }), HasSubstr("but got 2"));
}

TEST(SliceOps, GradientsGoWhereTheElementsCameFrom) {
  const Tensor x = counting({3, 3});
  GradientTape tape(GradientTape::Options{.persistent = true});
  tape.watch(x);
  const Tensor y = index(x, {Slice(none, none, -2), Slice(1, none)});
  const Tensor z = slice(x, {0, 0}, {2, 1});
  const auto parts = split(x, {1, 2}, 1);
  EXPECT_THAT(floats(tape.gradient(y, x)), ElementsAre(0, 1, 1, 0, 0, 0, 0, 1, 1));
  EXPECT_THAT(floats(tape.gradient(z, x)), ElementsAre(1, 0, 0, 1, 0, 0, 0, 0, 0));
  EXPECT_THAT(floats(tape.gradient(parts[0], x)), ElementsAre(1, 0, 0, 1, 0, 0, 1, 0, 0));
}

TEST(SliceOps, SlicesOfChangingSizesAreTracedOnce) {
  auto f = function([](Tensor x, Tensor n) { return slice(x, IntList{0}, n); });
  const Tensor x = counting({5});
  EXPECT_THAT(floats(f(x, Tensor{2})), ElementsAre(0, 1));
  EXPECT_THAT(floats(f(x, Tensor{4})), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(f.num_traces(), 1u);
}

}  // namespace
}  // namespace tandem
