// Ragged arrays in variants, which no file of values can hold, and such as announce too much.

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/tensor.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Tensor longs(const std::vector<std::int64_t>& values) { return Tensor::from(values); }
std::vector<std::int64_t> ints(const Tensor& t) { return t.to_vector<std::int64_t>(); }

Tensor encode(std::vector<Tensor> parts, bool batched) {
  return raw_op("RaggedTensorToVariant", parts, {{"batched_input", batched}})[0];
}

std::vector<Tensor> decode(const Tensor& encoded, std::int64_t inner, std::int64_t outer,
                           DType values = DType::kFloat, DType splits = DType::kInt64) {
  return raw_op("RaggedTensorFromVariant", {encoded},
                {{"input_ragged_rank", inner},
                 {"output_ragged_rank", outer},
                 {"Tvalues", values},
                 {"Tsplits", splits}});
}

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "none";
}

const Tensor kValues{1.0f, 2.0f, 3.0f, 4.0f, 5.0f};

TEST(RaggedVariant, ComesBackWhole) {
  const Tensor encoded = encode({longs({0, 2, 2, 3}), longs({0, 1, 4, 5}), kValues}, false);
  EXPECT_EQ(encoded.rank(), 0);
  const std::vector<Tensor> back = decode(encoded, 2, 2);
  EXPECT_THAT(ints(back[0]), ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(ints(back[1]), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(back[2].to_vector<float>(), ElementsAre(1, 2, 3, 4, 5));
}

TEST(RaggedVariant, ComesBackFromItsRows) {
  const Tensor encoded = encode({longs({0, 2, 2, 3}), longs({0, 1, 4, 5}), kValues}, true);
  EXPECT_THAT(encoded.shape().to_vector(), ElementsAre(3));
  const std::vector<Tensor> back = decode(encoded, 1, 2);
  EXPECT_THAT(ints(back[0]), ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(ints(back[1]), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(back[2].to_vector<float>(), ElementsAre(1, 2, 3, 4, 5));
  // -1: as the shape says.
  EXPECT_THAT(ints(decode(encoded, -1, 2)[1]), ElementsAre(0, 1, 4, 5));
}

TEST(RaggedVariant, TakesRowsOfADenseArray) {
  const Tensor rows({{1.0f, 2.0f}, {3.0f, 4.0f}, {5.0f, 6.0f}});
  const std::vector<Tensor> back = decode(encode({rows}, true), 0, 1);
  EXPECT_THAT(ints(back[0]), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(back[1].to_vector<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(RaggedVariant, OfNoRowsIsEmpty) {
  const std::vector<Tensor> back =
      decode(encode({longs({0}), Tensor::from(std::vector<float>{})}, true), 0, 1);
  EXPECT_THAT(ints(back[0]), ElementsAre(0));
  EXPECT_THAT(back[1].to_vector<float>(), IsEmpty());
}

TEST(RaggedVariant, RefusesWhatDoesNotFit) {
  const Tensor encoded = encode({longs({0, 2, 5}), kValues}, false);
  EXPECT_THAT(refusal([&] { decode(encoded, 0, 1); }), HasSubstr("output_ragged_rank"));
  EXPECT_THAT(refusal([&] { decode(encoded, 0, 0); }), HasSubstr("ragged_rank=1"));
  EXPECT_THAT(refusal([&] { decode(encoded, 1, 1, DType::kInt32); }), HasSubstr("dtype: int32"));
  EXPECT_THAT(refusal([&] { decode(encoded, 1, 1, DType::kFloat, DType::kInt32); }),
              HasSubstr("found: int64"));
  EXPECT_THAT(refusal([] { encode({longs({0, 2, 6}), kValues}, true); }), HasSubstr("must match"));
  EXPECT_THAT(refusal([] { encode({Tensor(1.0f)}, true); }), HasSubstr("scalar"));
  EXPECT_THAT(refusal([] {
                decode(raw_op("EmptyTensorList", {longs({}), Tensor(3)},
                              {{"element_dtype", DType::kFloat}})[0],
                       0, 0);
              }),
              HasSubstr("RaggedTensorVariant"));
}

std::vector<float> dense(const std::vector<std::int64_t>& shape, std::vector<Tensor> partitions,
                         std::vector<std::string> types) {
  std::vector<Tensor> inputs{longs(shape), kValues, Tensor(0.0f)};
  inputs.insert(inputs.end(), partitions.begin(), partitions.end());
  return raw_op("RaggedTensorToTensor", inputs, {{"row_partition_types", types}})[0]
      .to_vector<float>();
}

// TensorFlow sets memory aside for as many rows as are announced.
TEST(RaggedTensorToTensor, BelievesNoRowsThatNothingHas) {
  constexpr std::int64_t kMany = std::int64_t{1} << 60;
  EXPECT_THAT(
      dense({2, 2}, {Tensor(kMany), longs({0, 0, 1, 3, 3})}, {"FIRST_DIM_SIZE", "VALUE_ROWIDS"}),
      ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(dense({1, 2, 2}, {longs({0, kMany}), longs({0, 3, 5})}, {"ROW_SPLITS", "ROW_SPLITS"}),
              ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(refusal([] {
                dense({1, 2}, {longs({0, kMany})}, {"ROW_SPLITS"});
              }),
              HasSubstr("there are 5"));
  EXPECT_THAT(dense({1, 1}, {Tensor(kMany), longs({0, 1, 2, 3, kMany - 1})},
                    {"FIRST_DIM_SIZE", "VALUE_ROWIDS"}),
              ElementsAre(1));
  EXPECT_THROW(dense({1, 1, 1}, {longs({0, kMany}), longs({0, 1, 2, 3, kMany - 1})},
                     {"ROW_SPLITS", "VALUE_ROWIDS"}),
               ResourceExhaustedError);
}

TEST(UnicodeEncode, LooksAtSplitsBeforeCharacters) {
  EXPECT_THAT(refusal([] {
                raw_op("UnicodeEncode", {Tensor({65, 66, 67}), longs({0, 1000000, 3})},
                       {{"output_encoding", "UTF-8"}});
              }),
              HasSubstr("ascending"));
}

// The gradient towards the values of the sum of each of them times its place, counted from 1.
std::vector<float> gradient_through_variants(const std::vector<Tensor>& splits,
                                             const Tensor& values, bool batched, int uses) {
  GradientTape tape;
  tape.watch(values);
  std::vector<Tensor> parts = splits;
  parts.push_back(values);
  const Tensor encoded = encode(parts, batched);
  const auto rank = static_cast<std::int64_t>(splits.size());
  const bool rows = splits.empty() && batched;
  Tensor target(0.0f);
  for (int i = 0; i < uses; ++i) {
    const Tensor back =
        decode(encoded, rows ? 0 : rank - (batched ? 1 : 0), rows ? 1 : rank).back();
    target = target + reduce_sum(back * Tensor{1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
  }
  return tape.gradient(target, values).to_vector<float>();
}

TEST(RaggedVariant, HasGradients) {
  const Tensor flat{1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
  const std::vector<Tensor> nested{longs({0, 2, 2, 3}), longs({0, 1, 4, 6})};
  const Tensor matrix{{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}};
  for (const int uses : {1, 2}) {
    const auto u = static_cast<float>(uses);
    const auto places = ElementsAre(u, 2 * u, 3 * u, 4 * u, 5 * u, 6 * u);
    EXPECT_THAT(gradient_through_variants({}, flat, false, uses), places);
    EXPECT_THAT(gradient_through_variants({longs({0, 2, 6})}, flat, true, uses), places);
    EXPECT_THAT(gradient_through_variants(nested, flat, false, uses), places);
    EXPECT_THAT(gradient_through_variants(nested, flat, true, uses), places);
    EXPECT_THAT(gradient_through_variants({}, matrix, true, uses), places);
  }
}

Tensor gradient_of_values(const Tensor& parts, const Tensor& splits, const Tensor& shape) {
  return raw_op("RaggedTensorToVariantGradient", {parts, splits, shape},
                {{"Tvalues", DType::kFloat}})[0];
}

TEST(RaggedVariant, GradientsThatNothingMadeAreZeros) {
  const Tensor part = encode({Tensor{1.0f, 2.0f}}, false);
  const Tensor none = raw_op("ZerosLike", {part})[0];
  const Tensor parts = raw_op("Pack", {none, part, none}, {{"axis", std::int64_t{0}}})[0];
  EXPECT_THAT(gradient_of_values(parts, longs({0, 1, 3, 5}), Tensor{5}).to_vector<float>(),
              ElementsAre(0, 1, 2, 0, 0));
  EXPECT_THAT(gradient_of_values(parts, Tensor(0), Tensor{3, 2}).to_vector<float>(),
              ElementsAre(0, 0, 1, 2, 0, 0));
  EXPECT_THAT(gradient_of_values(none, Tensor(0), Tensor{2}).to_vector<float>(), ElementsAre(0, 0));
  const auto refused = [&](const Tensor& splits, const Tensor& shape) {
    return refusal([&] { gradient_of_values(parts, splits, shape); });
  };
  EXPECT_THAT(refused(longs({0, 1, 3}), Tensor{3}), HasSubstr("row_splits must have one element"));
  EXPECT_THAT(refused(longs({0, 1, 3, 2}), Tensor{5}), HasSubstr("must not fall"));
  EXPECT_THAT(refused(longs({0, 1, 3, 4}), Tensor{5}), HasSubstr("have 4 values"));
  EXPECT_THAT(refused(longs({0, 1, 3, 4}), Tensor{2}), HasSubstr("more values than"));
  EXPECT_THAT(refusal([&] {
                gradient_of_values(encode({longs({1, 2})}, false), Tensor(0), Tensor{2});
              }),
              HasSubstr("has values of int64"));
}

}  // namespace
}  // namespace tandem
