#include "tandem/io/example.h"

#include <complex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/ops/example_ops.h"

namespace tandem::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Example sample() {
  Example e;
  e.set("a", std::vector<std::int64_t>{1, 300});
  e.set("b", std::vector<float>{1.5f}).set("c", {"xy"});
  return e;
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

TEST(Example, WritesTensorFlowsBytes) {
  const std::string expected(
      "\x0a\x2a\x0a\x0c\x0a\x01"
      "a\x12\x07\x1a\x05\x0a\x03\x01\xac\x02\x0a\x0d\x0a\x01"
      "b\x12\x08\x12\x06\x0a\x04\x00\x00\xc0\x3f\x0a\x0b\x0a\x01"
      "c\x12\x06\x0a\x04\x0a\x02xy",
      44);
  EXPECT_EQ(sample().serialize(), expected);
  EXPECT_EQ(Example::parse(expected), sample());
  EXPECT_THROW(Example::parse("\x0a\x7f"), DataLossError);
}

TEST(Example, TakesTensors) {
  Example e;
  e.set("f", Tensor{{1.0, 2.0}, {3.0, 4.0}}).set("i", Tensor{true, false}).set("s", Tensor("x"));
  EXPECT_EQ(std::get<std::vector<float>>(e.features["f"]).size(), 4u);
  EXPECT_THAT(std::get<std::vector<std::int64_t>>(e.features["i"]), ElementsAre(1, 0));
  EXPECT_THAT(std::get<std::vector<std::string>>(e.features["s"]), ElementsAre("x"));
  EXPECT_THROW(e.set("c", tensor<std::complex<float>>({1})), InvalidArgumentError);
}

TEST(SequenceExample, ComesBack) {
  SequenceExample s;
  s.context["id"] = std::vector<std::int64_t>{7};
  s.feature_lists["x"] = {std::vector<float>{1, 2}, std::vector<float>{}, std::vector<float>{3}};
  s.feature_lists["none"] = {};
  EXPECT_EQ(SequenceExample::parse(s.serialize()), s);
}

TEST(ParseExample, GivesFeaturesByKey) {
  Example second;
  second.set("a", std::vector<std::int64_t>{5});
  const auto serialized =
      Tensor::from(std::vector<std::string>{sample().serialize(), second.serialize()});
  const auto found =
      parse_example(serialized, {{"a", FixedLenSequenceFeature{{}, DType::kInt64, -1}},
                                 {"b", FixedLenFeature{{1}, DType::kFloat, 7}},
                                 {"c", RaggedFeature{DType::kString}},
                                 {"d", FixedLenFeature{{}, DType::kString, Tensor("none")}},
                                 {"e", VarLenFeature{DType::kFloat}}});
  EXPECT_EQ(found["a"].to_string(), "[[  1 300]\n [  5  -1]]");
  EXPECT_EQ(found["b"].to_string(), "[[1.5]\n [7. ]]");
  EXPECT_EQ(found["d"].to_string(), "[b'none' b'none']");
  EXPECT_EQ(found.ragged.at("c").row_splits.to_string(), "[0 1 1]");
  EXPECT_EQ(found.sparse.at("e").dense_shape.to_string(), "[2 0]");
}

TEST(ParseExample, ErrorsAreTensorFlows) {
  const Tensor one(sample().serialize());
  const Tensor many = Tensor::from(std::vector<std::string>{sample().serialize()});
  const auto message = [](const Tensor& serialized, Feature feature, const char* key,
                          Tensor names = {}) {
    return refusal([&] { parse_example(serialized, {{key, feature}}, names); });
  };
  EXPECT_THAT(message(many, FixedLenFeature{}, "z"),
              HasSubstr("Name: <unknown>, Feature: z (data type: float) is required but could not "
                        "be found."));
  EXPECT_THAT(message(one, FixedLenFeature{}, "z"),
              ::testing::StartsWith("Feature: z (data type: float) is required"));
  EXPECT_THAT(message(many, FixedLenFeature{{}, DType::kInt64}, "b", Tensor{"first"}),
              HasSubstr("Name: first, Key: b, Index: 0.  Data types don't match. Data type: float "
                        "but expected type: int64"));
  EXPECT_THAT(
      message(one, VarLenFeature{DType::kInt64}, "b"),
      HasSubstr("Key: b.  Data types don't match. Expected type: int64, Actual type: float"));
  EXPECT_THAT(
      message(many, FixedLenFeature{{3}, DType::kInt64}, "a"),
      HasSubstr("Number of int64 values != expected.  Values size: 2 but output shape: [3]"));
  EXPECT_THAT(message(many, FixedLenSequenceFeature{{3}, DType::kInt64}, "a"),
              HasSubstr("Number of int64 values is not a multiple of stride length. Saw 2 values"));
  EXPECT_THAT(message(Tensor("abc"), FixedLenFeature{}, "a"),
              HasSubstr("Could not parse example input"));
  EXPECT_THAT(message(many, FixedLenFeature{{2}, DType::kInt64, Tensor{1, 2, 3}}, "a"),
              HasSubstr("default_value of feature 'a' has shape [3]"));
  EXPECT_THAT(message(many, FixedLenFeature{{}, DType::kInt64, Tensor("x")}, "a"),
              HasSubstr("has dtype string"));
  EXPECT_THAT(refusal([&] {
                parse_single_example(many, {{"a", VarLenFeature{}}});
              }),
              HasSubstr("Expected serialized to be a scalar, got shape: [1]"));
  EXPECT_THROW(parse_example(many, {{"b", VarLenFeature{}}})["b"], NotFoundError);
  // A packed list that ends within a number.
  EXPECT_THAT(message(Tensor("\x0a\x0b\x0a\x09\x0a\x01"
                             "a\x12\x04\x1a\x02\x0a\x01\xff"),
                      VarLenFeature{DType::kInt64}, "a"),
              HasSubstr("arse"));
}

TEST(SerializeTensor, ComesBack) {
  for (const Tensor& x : {Tensor{{1.5, 2.5}}, Tensor{"a", ""}, Tensor(3), Tensor(true)}) {
    EXPECT_EQ(parse_tensor(serialize_tensor(x), x.dtype()).array(), x.array());
  }
  // Ten bytes that stand for a petabyte.
  EXPECT_THROW(
      parse_tensor(Tensor(std::string("\x08\x01\x12\x0a\x12\x08\x08\x80\x80\x80\x80\x80\x80"
                                      "\x40")),
                   DType::kFloat),
      Error);
}

}  // namespace
}  // namespace tandem::io
