#include "tandem/ops/gather_ops.h"

#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/diagonal_ops.h"
#include "tandem/ops/segment_ops.h"
#include "tandem/runtime/runtime.h"
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

Tensor ints(const std::vector<std::int32_t>& values, const Shape& shape) {
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

TEST(GatherOps, GatherPicksSlices) {
  const Tensor x = counting({3, 2});
  EXPECT_THAT(floats(gather(x, Tensor{2, 0})), ElementsAre(4, 5, 0, 1));
  EXPECT_THAT(floats(gather(x, Tensor{1, 1}, 1)), ElementsAre(1, 1, 3, 3, 5, 5));
  EXPECT_EQ(gather(x, ints({0, 1, 2, 0}, {2, 2})).shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(gather(x, Tensor(1)).shape(), (Shape{2}));
  EXPECT_THAT(floats(gather(x, ints({1, 0, 1}, {3, 1}), 1, 1)), ElementsAre(1, 2, 5));
  EXPECT_THAT(gather(Tensor({"a", "b"}), Tensor{1, 1}).to_vector<std::string>(),
              ElementsAre("b", "b"));
}

TEST(GatherOps, BadIndicesAreNamed) {
  const Tensor x = counting({3, 2});
  EXPECT_THAT(message_of_error([&] {
                gather(x, Tensor{0, 3});
              }),
              HasSubstr("indices[1] = 3 is not in [0, 3)"));
  EXPECT_THAT(message_of_error([&] {
                gather(x, ints({0, 0, -1, 0}, {2, 2}));
              }),
              HasSubstr("indices[1,0] = -1 is not in [0, 3)"));
  EXPECT_THAT(message_of_error([&] {
                gather(zeros({3, 0}), Tensor{7});
              }),
              HasSubstr("indices[0] = 7"));
  EXPECT_THAT(message_of_error([&] { gather(x, Tensor{0}, 2); }),
              HasSubstr("axis 2 is out of range"));
  EXPECT_THAT(message_of_error([&] {
                gather_nd(x, ints({0, 2}, {1, 2}));
              }),
              HasSubstr("indices[0] = [0,2] does not index into param shape [3,2]"));
  EXPECT_THAT(message_of_error([&] {
                scatter_nd(ints({5}, {1, 1}), Tensor{1.0}, {3});
              }),
              HasSubstr("indices[0] = [5] does not index into shape [3]"));
  EXPECT_THAT(message_of_error([&] {
                math::unsorted_segment_sum(x, Tensor{0, 1, 9}, 2);
              }),
              HasSubstr("segment_ids[2] = 9 is out of range [0, 2)"));
  EXPECT_THAT(message_of_error([&] {
                math::segment_sum(x, Tensor{1, 0, 0});
              }),
              HasSubstr("not increasing"));
}

TEST(GatherOps, GradientsOfGatherAddUp) {
  const Tensor x = counting({3, 2});
  GradientTape tape(GradientTape::Options{.persistent = true});
  tape.watch(x);
  const Tensor rows = gather(x, Tensor{2, 0, 2});
  const Tensor columns = gather(x, Tensor{1, 1}, 1);
  const Tensor batched = gather(x, ints({1, 1, 0, 0, 1, 0}, {3, 2}), 1, 1);
  EXPECT_THAT(floats(tape.gradient(rows, x)), ElementsAre(1, 1, 0, 0, 2, 2));
  EXPECT_THAT(floats(tape.gradient(columns, x)), ElementsAre(0, 2, 0, 2, 0, 2));
  EXPECT_THAT(floats(tape.gradient(batched, x)), ElementsAre(0, 2, 2, 0, 1, 1));
}

TEST(GatherOps, TuplesPickAndPut) {
  const Tensor x = counting({2, 2});
  const Tensor tuples = ints({0, 1, 1, 0}, {2, 2});
  EXPECT_THAT(floats(gather_nd(x, tuples)), ElementsAre(1, 2));
  EXPECT_THAT(floats(gather_nd(x, ints({1}, {1, 1}))), ElementsAre(2, 3));
  EXPECT_THAT(floats(gather_nd(x, ints({1, 0}, {2, 1}), 1)), ElementsAre(1, 2));
  EXPECT_THAT(floats(scatter_nd(tuples, Tensor{5.0, 6.0}, {2, 2})), ElementsAre(0, 5, 6, 0));
  EXPECT_THAT(floats(scatter_nd(ints({1, 1}, {2, 1}), Tensor{5.0, 6.0}, {3})),
              ElementsAre(0, 11, 0));
  EXPECT_THAT(floats(tensor_scatter_nd_update(x, tuples, Tensor{8.0, 9.0})),
              ElementsAre(0, 8, 9, 3));
  EXPECT_THAT(floats(tensor_scatter_nd_add(x, tuples, Tensor{8.0, 9.0})), ElementsAre(0, 9, 11, 3));
  EXPECT_THAT(floats(tensor_scatter_nd_sub(x, tuples, Tensor{8.0, 9.0})),
              ElementsAre(0, -7, -7, 3));
  EXPECT_THAT(floats(tensor_scatter_nd_max(x, tuples, Tensor{8.0, 0.0})), ElementsAre(0, 8, 2, 3));
  EXPECT_THAT(floats(tensor_scatter_nd_min(x, tuples, Tensor{8.0, 0.0})), ElementsAre(0, 1, 0, 3));
  EXPECT_THAT(floats(x), ElementsAre(0, 1, 2, 3)) << "the tensor itself stays as it is";
}

TEST(GatherOps, WhereFindsAndMaskPicks) {
  const Tensor found = where(Tensor{{0, 3}, {4, 0}});
  EXPECT_EQ(found.shape(), (Shape{2, 2}));
  EXPECT_THAT(found.to_vector<std::int64_t>(), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(where(Tensor{NAN, 0.0f}).to_vector<std::int64_t>(), ElementsAre(0));
  EXPECT_THAT(message_of_error([&] { where(Tensor(true)); }), HasSubstr("input dimensions: 0"));
  const Tensor x = counting({2, 3});
  EXPECT_THAT(floats(boolean_mask(x, Tensor({false, true}))), ElementsAre(3, 4, 5));
  EXPECT_THAT(floats(boolean_mask(x, Tensor({true, false, true}), 1)), ElementsAre(0, 2, 3, 5));
  EXPECT_THAT(message_of_error([&] {
                boolean_mask(x, Tensor({true, false, true}));
              }),
              HasSubstr("are incompatible"));
}

TEST(GatherOps, UniqueKeepsTheOrderOfFirstOccurrence) {
  const auto [y, idx] = unique(Tensor{4, 2, 4, 7});
  EXPECT_THAT(y.to_vector<std::int32_t>(), ElementsAre(4, 2, 7));
  EXPECT_THAT(idx.to_vector<std::int32_t>(), ElementsAre(0, 1, 0, 2));
  EXPECT_THAT(unique_with_counts(Tensor({"b", "a", "b"})).count.to_vector<std::int32_t>(),
              ElementsAre(2, 1));
}

TEST(GatherOps, TopKPrefersTheFirstOfEqualValues) {
  const auto [values, places] = top_k(Tensor{{1.0, 3.0, 3.0, 2.0}}, 3);
  EXPECT_THAT(floats(values), ElementsAre(3, 3, 2));
  EXPECT_THAT(places.to_vector<std::int32_t>(), ElementsAre(1, 2, 3));
  EXPECT_THAT(floats(top_k(Tensor{1.0}, 0).values), IsEmpty());
  EXPECT_THAT(message_of_error([] { top_k(Tensor{1.0}, 2); }),
              HasSubstr("input must have at least k columns. Had 1, needed 2"));
  const Tensor x{{1.0, 5.0, 3.0}};
  GradientTape tape;
  tape.watch(x);
  EXPECT_THAT(floats(tape.gradient(top_k(x, 2).values, x)), ElementsAre(0, 1, 1));
}

TEST(SegmentOps, ReduceGroupsOfRows) {
  const Tensor x = counting({4, 1});
  const Tensor ids{0, 2, 0, -1};
  EXPECT_THAT(floats(math::unsorted_segment_sum(x, ids, 3)), ElementsAre(2, 0, 1));
  EXPECT_THAT(floats(math::unsorted_segment_prod(x, ids, 3)), ElementsAre(0, 1, 1));
  EXPECT_THAT(floats(math::unsorted_segment_max(x, ids, 2 + 1)),
              ElementsAre(2, std::numeric_limits<float>::lowest(), 1));
  EXPECT_THAT(floats(math::unsorted_segment_min(x, ids, 3)),
              ElementsAre(0, std::numeric_limits<float>::max(), 1));
  EXPECT_THAT(floats(math::unsorted_segment_mean(x, ids, 3)), ElementsAre(1, 0, 1));
  EXPECT_THAT(floats(math::segment_mean(x, Tensor{0, 0, 2, 2})), ElementsAre(0.5, 0, 2.5));
  EXPECT_THAT(floats(math::segment_max(x, Tensor{0, 0, 0, 1})), ElementsAre(2, 3));
  EXPECT_EQ(
      math::segment_sum(zeros({0, 2}), Tensor::from(std::vector<std::int32_t>{}, {0})).shape(),
      (Shape{0, 2}));
}

TEST(SegmentOps, LongHalfSumsKeepTheirDigits) {
  const Tensor ones_of_half = ones({4096, 1}, float16);
  const Tensor sum = math::unsorted_segment_sum(ones_of_half, zeros({4096}, int32), 1);
  EXPECT_EQ(static_cast<float>(sum.at<Half>({0, 0})), 4096.0f);
}

TEST(SegmentOps, MeansOfMoreRowsThanTheirTypeCounts) {
  std::vector<std::int8_t> values(257, std::int8_t{0});
  values[0] = -128;
  values[256] = 100;
  std::vector<std::int32_t> ids(257, 0);
  ids[256] = 1;
  const Tensor mean = math::segment_mean(Tensor::from(values, {257}), Tensor::from(ids, {257}));
  EXPECT_EQ(mean.at<std::int8_t>({0}), 0);  // a division by 256 as int8 would be one by 0
  EXPECT_EQ(mean.at<std::int8_t>({1}), 100);
  const std::vector<std::uint8_t> ones(200, std::uint8_t{1});
  EXPECT_EQ(
      math::segment_mean(Tensor::from(ones, {200}), zeros({200}, int32)).at<std::uint8_t>({0}), 1);
}

TEST(SegmentOps, SumsHaveTheSameBitsForEveryNumberOfThreads) {
  const std::int64_t rows = 3000, inner = 67, segments = 100;
  std::vector<float> values(static_cast<std::size_t>(rows * inner));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<float>(i)) * 1e3f;
  std::vector<std::int32_t> ids(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<std::int32_t>((i * 7919) % segments);
  std::vector<std::vector<float>> results;
  for (int threads : {1, 2, 5}) {
    Runtime runtime(Runtime::Options{1, threads});
    const RuntimeScope scope(runtime);
    results.push_back(
        floats(math::unsorted_segment_sum(Tensor::from(values, {rows, inner}),
                                          Tensor::from(ids, {rows}), static_cast<int>(segments))));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(DiagonalOps, BandsAndDiagonals) {
  const Tensor x = counting({3, 3});
  EXPECT_THAT(floats(linalg::band_part(x, 0, -1)), ElementsAre(0, 1, 2, 0, 4, 5, 0, 0, 8));
  EXPECT_THAT(floats(linalg::band_part(x, 1, 0)), ElementsAre(0, 0, 0, 3, 4, 0, 0, 7, 8));
  EXPECT_THAT(floats(linalg::diag_part(x)), ElementsAre(0, 4, 8));
  EXPECT_THAT(floats(linalg::diag(Tensor{1.0, 2.0})), ElementsAre(1, 0, 0, 2));
  EXPECT_THAT(floats(linalg::set_diag(zeros({2, 3}), Tensor{7.0, 8.0})),
              ElementsAre(7, 0, 0, 0, 8, 0));
  EXPECT_THAT(message_of_error([&] { linalg::set_diag(x, Tensor{1.0}); }), HasSubstr("diagonal"));
}

TEST(GatherOps, WorkInTracedFunctionsOfUnknownSizes) {
  auto f = function([](Tensor x, Tensor mask) { return boolean_mask(x, mask); });
  EXPECT_THAT(floats(f(counting({2}), Tensor({true, false}))), ElementsAre(0));
  EXPECT_THAT(floats(f(counting({3}), Tensor({true, false, true}))), ElementsAre(0, 2));
}

}  // namespace
}  // namespace tandem
