#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/io/example.h"
#include "tandem/ops/sequence_example_ops.h"
#include "tandem/runtime/traced_function.h"

namespace tandem::io {
namespace {

using ::testing::HasSubstr;
using Floats = std::vector<float>;
using Ints = std::vector<std::int64_t>;
using Strings = std::vector<std::string>;

std::string first() {
  SequenceExample s;
  s.context = {{"id", Ints{7}}, {"tags", Strings{"x", "y"}}};
  s.feature_lists["move"] = {Floats{1, 2}, Floats{3, 4}, Floats{5, 6}};
  s.feature_lists["word"] = {Strings{"a"}, Strings{"b"}};
  s.feature_lists["ids"] = {Ints{1, 2}, Ints{}, Ints{3}};
  return s.serialize();
}

// Three sequences of 3, 1 and 0 moves.
Tensor batch() {
  SequenceExample second, third;
  second.context["id"] = Ints{8};
  second.feature_lists = {{"move", {Floats{7, 8}}}, {"ids", {Ints{4}}}};
  third.feature_lists["move"] = {};
  return Tensor::from(Strings{first(), second.serialize(), third.serialize()});
}

const FeatureSpec& context_spec() {
  static const FeatureSpec kSpec = {{"id", FixedLenFeature{{}, DType::kInt64, -1}},
                                    {"tags", VarLenFeature{DType::kString}}};
  return kSpec;
}

FixedLenSequenceFeature optional_list(std::vector<std::int64_t> shape, DType dtype) {
  return {.shape = std::move(shape), .dtype = dtype, .allow_missing = true};
}

const FeatureSpec& list_spec() {
  static const FeatureSpec kSpec = {{"move", FixedLenSequenceFeature{{2}}},
                                    {"word", optional_list({}, DType::kString)},
                                    {"ids", VarLenFeature{DType::kInt64}}};
  return kSpec;
}

std::string text(const sparse::SparseTensor& x) {
  return x.indices.to_string() + " " + x.values.to_string() + " " + x.dense_shape.to_string();
}

// The values here are what tf.io.parse_sequence_example gives for these messages.
TEST(ParseSequenceExample, GivesContextListsAndLengths) {
  const auto [context, lists, lengths] =
      parse_sequence_example(batch(), context_spec(), list_spec());
  EXPECT_EQ(context["id"].to_string(), "[ 7  8 -1]");
  EXPECT_EQ(text(context.sparse.at("tags")), "[[0 0]\n [0 1]] [b'x' b'y'] [3 2]");
  EXPECT_EQ(lists["move"].to_vector<float>(),
            (Floats{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(lists["move"].shape(), (Shape{3, 3, 2}));
  EXPECT_EQ(lists["word"].to_string(), "[[b'a' b'b']\n [b'' b'']\n [b'' b'']]");
  EXPECT_EQ(text(lists.sparse.at("ids")),
            "[[0 0 0]\n [0 0 1]\n [0 2 0]\n [1 0 0]] [1 2 3 4] [3 3 2]");
  EXPECT_EQ(lengths.at("move").to_string(), "[3 1 0]");
  EXPECT_EQ(lengths.at("word").to_string(), "[2 0 0]");
  EXPECT_EQ(lengths.size(), 2u);
  EXPECT_THROW(lists["ids"], NotFoundError);
}

TEST(ParseSequenceExample, GivesRaggedFeatures) {
  const auto found =
      parse_sequence_example(batch(), {{"tags", RaggedFeature{DType::kString}}},
                             {{"ids", RaggedFeature{DType::kInt64}},
                              {"none", RaggedFeature{DType::kFloat, DType::kInt64}}});
  EXPECT_EQ(found.context.ragged.at("tags").values.to_string(), "[b'x' b'y']");
  EXPECT_EQ(found.context.ragged.at("tags").row_splits.to_string(), "[0 2 2 2]");
  const RaggedSteps& ids = found.feature_lists.ragged.at("ids");
  EXPECT_EQ(ids.values.to_string(), "[1 2 3 4]");
  EXPECT_EQ(ids.inner_splits.to_string(), "[0 2 2 3 4]");
  EXPECT_EQ(ids.outer_splits.to_string(), "[0 3 4 4]");
  EXPECT_EQ(ids.outer_splits.dtype(), DType::kInt32);
  const RaggedSteps& none = found.feature_lists.ragged.at("none");
  EXPECT_EQ(none.values.shape(), Shape{0});
  EXPECT_EQ(none.inner_splits.to_string(), "[0]");
  EXPECT_EQ(none.outer_splits.to_string(), "[0 0 0 0]");
  EXPECT_EQ(none.outer_splits.dtype(), DType::kInt64);
}

TEST(ParseSequenceExample, ContextAndListsMayShareKeysOrBeAlone) {
  const auto found = parse_sequence_example(batch(), {{"id", VarLenFeature{DType::kInt64}}},
                                            {{"id", VarLenFeature{DType::kInt64}}});
  EXPECT_EQ(found.context.sparse.at("id").values.to_string(), "[7 8]");
  EXPECT_EQ(found.feature_lists.sparse.at("id").dense_shape.to_string(), "[3 0 0]");
  EXPECT_TRUE(parse_sequence_example(batch(), context_spec(), {}).feature_lists.dense.empty());
  const auto lists = parse_sequence_example(batch(), {}, list_spec());
  EXPECT_TRUE(lists.context.dense.empty());
  EXPECT_EQ(lists.lengths.at("move").to_string(), "[3 1 0]");
}

TEST(ParseSequenceExample, TakesNoExamples) {
  const auto found = parse_sequence_example(Tensor::from(Strings{}), context_spec(), list_spec());
  EXPECT_EQ(found.context["id"].shape(), Shape{0});
  EXPECT_EQ(found.feature_lists["move"].shape(), (Shape{0, 0, 2}));
  EXPECT_EQ(found.feature_lists.sparse.at("ids").dense_shape.to_string(), "[0 0 0]");
  EXPECT_EQ(found.lengths.at("move").shape(), Shape{0});
}

TEST(ParseSingleSequenceExample, HasNoFirstAxis) {
  const auto found = parse_single_sequence_example(Tensor(first()), context_spec(), list_spec());
  EXPECT_EQ(found.context["id"].to_string(), "7");
  EXPECT_EQ(text(found.context.sparse.at("tags")), "[[0]\n [1]] [b'x' b'y'] [2]");
  EXPECT_EQ(found.feature_lists["move"].to_string(), "[[1. 2.]\n [3. 4.]\n [5. 6.]]");
  EXPECT_EQ(found.feature_lists["word"].to_string(), "[b'a' b'b']");
  EXPECT_EQ(text(found.feature_lists.sparse.at("ids")), "[[0 0]\n [0 1]\n [2 0]] [1 2 3] [3 2]");
  EXPECT_EQ(found.lengths.at("move").item<std::int64_t>(), 3);
  EXPECT_EQ(found.lengths.at("move").rank(), 0);

  const auto ragged =
      parse_single_sequence_example(Tensor(first()), {{"tags", RaggedFeature{DType::kString}}},
                                    {{"ids", RaggedFeature{DType::kInt64}}});
  EXPECT_EQ(ragged.context.ragged.at("tags").values.to_string(), "[b'x' b'y']");
  EXPECT_FALSE(ragged.context.ragged.at("tags").row_splits.defined());
  EXPECT_EQ(ragged.feature_lists.ragged.at("ids").inner_splits.to_string(), "[0 2 2 3]");
  EXPECT_FALSE(ragged.feature_lists.ragged.at("ids").outer_splits.defined());
}

TEST(ParseSingleSequenceExample, OptionalListsMayBeMissing) {
  const Tensor none(SequenceExample{}.serialize());
  const auto found = parse_single_sequence_example(
      none, context_spec(),
      {{"move", optional_list({2}, DType::kFloat)}, {"ids", VarLenFeature{DType::kInt64}}});
  EXPECT_EQ(found.context["id"].to_string(), "-1");
  EXPECT_EQ(found.feature_lists["move"].shape(), (Shape{0, 2}));
  EXPECT_EQ(found.lengths.at("move").to_string(), "0");
  EXPECT_EQ(found.feature_lists.sparse.at("ids").dense_shape.to_string(), "[0 0]");
}

TEST(ParseSequenceExample, RunsInTracedFunctions) {
  auto parse = function([](Tensor serialized) {
    const auto found = parse_sequence_example(std::move(serialized), context_spec(), list_spec());
    return std::vector<Tensor>{found.context["id"], found.feature_lists["move"],
                               found.lengths.at("move")};
  });
  const auto results = parse(batch());
  EXPECT_EQ(results[0].to_string(), "[ 7  8 -1]");
  EXPECT_EQ(results[1].shape(), (Shape{3, 3, 2}));
  EXPECT_EQ(results[2].to_string(), "[3 1 0]");
}

template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "";
}

std::string list_refusal(const Tensor& serialized, const char* key, Feature feature,
                         Tensor names = {}) {
  return refusal([&] { parse_sequence_example(serialized, {}, {{key, feature}}, names); });
}

TEST(ParseSequenceExample, TracesWithoutKnownRank) {
  const FunctionOptions unknown{.input_shapes = {PartialShape::unknown()}};
  auto batched = function(
      [](Tensor x) {
        return parse_sequence_example(std::move(x), {}, list_spec()).feature_lists["move"];
      },
      unknown);
  EXPECT_EQ(batched(batch()).shape(), (Shape{3, 3, 2}));
  EXPECT_EQ(batched(Tensor(first())).shape(), (Shape{3, 2}));
  auto single = function(
      [](Tensor x) {
        return parse_single_sequence_example(std::move(x), {}, list_spec()).feature_lists["move"];
      },
      unknown);
  EXPECT_EQ(single(Tensor(first())).shape(), (Shape{3, 2}));
  EXPECT_THAT(refusal([&] { single(batch()).shape(); }), HasSubstr("[3]"));
  auto ragged = function(
      [](Tensor x) {
        return parse_sequence_example(std::move(x), {}, {{"ids", RaggedFeature{DType::kInt64}}})
            .feature_lists.ragged.at("ids")
            .values;
      },
      unknown);
  EXPECT_THAT(refusal([&] { ragged(batch()); }), HasSubstr("statically-known rank"));
}

TEST(ParseSequenceExample, RefusesListsThatAreOtherwise) {
  const Tensor names{"p", "q", "r"};
  const FixedLenSequenceFeature words{{}, DType::kString};
  EXPECT_THAT(list_refusal(batch(), "word", words),
              HasSubstr("Name: <unknown>, Feature list: word, Index: 1.  The feature list is "
                        "required but could not be found.  Set its allow_missing"));
  EXPECT_THAT(list_refusal(batch(), "word", words, names),
              HasSubstr("Name: q, Feature list: word"));
  for (const Feature& feature :
       {Feature(FixedLenSequenceFeature{{2}, DType::kInt64}), Feature(VarLenFeature{DType::kInt64}),
        Feature(RaggedFeature{DType::kInt64})}) {
    EXPECT_THAT(list_refusal(batch(), "move", feature, names),
                HasSubstr("Name: p, Feature list: move, Index: 0.  Data types don't match. "
                          "Expected type: int64, Actual type: float"));
  }
  EXPECT_THAT(
      list_refusal(batch(), "move", FixedLenSequenceFeature{{3}}),
      HasSubstr("Feature list: move, Index: 0.  Number of values != expected.  values size: "
                "2 but output shape: [3]"));
  // The empty second step of "ids".
  EXPECT_THAT(list_refusal(Tensor(first()), "ids", FixedLenSequenceFeature{{2}, DType::kInt64}),
              HasSubstr("Feature list: ids, Index: 0.  Number of values != expected.  values "
                        "size: 0 but output shape: [2]"));
}

TEST(ParseSequenceExample, RefusesContextsThatAreOtherwise) {
  const auto message = [](const char* key, Feature feature) {
    return refusal([&] { parse_sequence_example(batch(), {{key, feature}}, {}); });
  };
  EXPECT_THAT(message("id", FixedLenFeature{{}, DType::kInt64}),
              HasSubstr("Feature: id (data type: int64) is required but could not be found."));
  EXPECT_THAT(message("id", FixedLenFeature{{}, DType::kFloat, 0}),
              HasSubstr("Key: id, Index: 0.  Data types don't match."));
  EXPECT_THAT(message("id", FixedLenSequenceFeature{{}, DType::kInt64}),
              HasSubstr("Unsupported FixedLenSequenceFeature 'id': a context has no steps"));
}

TEST(ParseSequenceExample, RefusesBytesThatAreNone) {
  const VarLenFeature ints{DType::kInt64};
  EXPECT_THAT(list_refusal(Tensor("abc"), "a", ints), HasSubstr("arse"));
  // Lists that end early, in a message that says they are longer.
  EXPECT_THAT(list_refusal(Tensor("\x12\x05"), "a", ints), HasSubstr("arse"));
  // feature_lists { key: "a" value { feature { int64_list { value: [ends within a number] } } } }
  const std::string head("\x12\x0f\x0a\x0d\x0a\x01\x61\x12\x08\x0a\x06\x1a\x04\x0a\x02", 15);
  EXPECT_THAT(list_refusal(Tensor(head + "\x01\xff"), "a", ints),
              HasSubstr("Feature list: a, Index: 0.  Can't parse serialized SequenceExample."));
  EXPECT_EQ(parse_sequence_example(Tensor(head + "\x01\x02"), {}, {{"a", ints}})
                .feature_lists.sparse.at("a")
                .values.to_string(),
            "[1 2]");
  // A number of more bytes than any number has.
  const std::string wide("\x12\x18\x0a\x16\x0a\x01\x61\x12\x11\x0a\x0f\x1a\x0d\x0a\x0b", 15);
  EXPECT_THAT(list_refusal(Tensor(wide + std::string(10, '\xff') + "\x01"), "a", ints),
              HasSubstr("Feature list: a.  Can't parse serialized SequenceExample."));
}

TEST(ParseSequenceExample, RefusesWhatCannotBeAsked) {
  EXPECT_THAT(refusal([] { parse_sequence_example(batch(), {}, {}); }),
              HasSubstr("at least one should have values"));
  EXPECT_THAT(list_refusal(batch(), "move", FixedLenFeature{{2}}),
              HasSubstr("Unsupported FixedLenFeature 'move': feature lists have steps"));
  EXPECT_THAT(list_refusal(batch(), "move", FixedLenSequenceFeature{{2}, DType::kFloat, 0}),
              HasSubstr("Unsupported default_value of feature list 'move'"));
  EXPECT_THAT(list_refusal(batch(), "move", FixedLenSequenceFeature{{2}, DType::kInt32}),
              HasSubstr("Feature 'move' has dtype int32, but Examples hold"));
  EXPECT_THAT(list_refusal(batch(), "ids", RaggedFeature{DType::kInt64, DType::kFloat}),
              HasSubstr("Feature 'ids' has row_splits_dtype float"));
  EXPECT_THAT(list_refusal(batch(), "word", optional_list({-1}, DType::kString)),
              HasSubstr("feature list word is not fully defined"));
  EXPECT_THAT(list_refusal(batch(), "ids", VarLenFeature{DType::kInt64}, Tensor{"one"}),
              HasSubstr("shape"));
  EXPECT_THAT(refusal([] { parse_single_sequence_example(batch(), {}, list_spec()); }),
              HasSubstr("Expected serialized to be a scalar, got shape: [3]"));
}

}  // namespace
}  // namespace tandem::io
