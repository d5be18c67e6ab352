#include "tandem/core/attr.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(AttrValue, KnowsItsKindAndText) {
  struct Case {
    AttrValue value;
    const char* kind;
    const char* text;
  };
  const Case cases[] = {
      {AttrValue(3), "int", "3"},
      {AttrValue(std::int64_t{1} << 40), "int", "1099511627776"},
      {AttrValue(true), "bool", "true"},
      {AttrValue(0.5), "float", "0.5"},
      {AttrValue("SAME"), "string", "\"SAME\""},
      {AttrValue(std::string_view("x")), "string", "\"x\""},
      {AttrValue(float32), "type", "float"},
      {AttrValue(PartialShape{2, -1}), "shape", "[2,?]"},
      {AttrValue(Shape{2, 3}), "shape", "[2,3]"},
      {AttrValue(Array::vector<float>({1, 2})), "tensor", "tensor<float[2]> [1. 2.]"},
      {AttrValue(Array::zeros(int32, {100})), "tensor", "tensor<int32[100]>"},
      {AttrValue(FunctionRef()), "func", "no func"},
      {AttrValue(std::vector<std::int64_t>{1, 2}), "list(int)", "[1, 2]"},
      {AttrValue(std::vector<bool>{true, false}), "list(bool)", "[true, false]"},
      {AttrValue(std::vector<float>{0.5f}), "list(float)", "[0.5]"},
      {AttrValue(std::vector<std::string>{"a", "b"}), "list(string)", "[\"a\", \"b\"]"},
      {AttrValue(std::vector<DType>{float32, int8}), "list(type)", "[float, int8]"},
      {AttrValue(std::vector<PartialShape>{{}, {1}}), "list(shape)", "[<unknown>, [1]]"},
      {AttrValue(std::vector<std::int64_t>{}), "list(int)", "[]"},
      {AttrValue(), "unset", "unset"},
  };
  for (const Case& a : cases) {
    EXPECT_EQ(a.value.kind(), a.kind);
    EXPECT_EQ(a.value.to_string(), a.text);
    for (const Case& b : cases) EXPECT_EQ(a.value == b.value, &a == &b) << a.text << ' ' << b.text;
  }
}

TEST(AttrValue, ComparesTensorsByValue) {
  EXPECT_TRUE(AttrValue(Array::vector<float>({1})) == AttrValue(Array::vector<float>({1})));
  EXPECT_FALSE(AttrValue(Array::vector<float>({1})) == AttrValue(Array::vector<float>({2})));
}

TEST(AttrValue, GivesItsValueToThoseWhoKnowItsType) {
  const AttrValue value(7);
  ASSERT_NE(value.get_if<std::int64_t>(), nullptr);
  EXPECT_EQ(*value.get_if<std::int64_t>(), 7);
  EXPECT_EQ(value.get_if<bool>(), nullptr);
  EXPECT_FALSE(value.empty());
  EXPECT_TRUE(AttrValue().empty());
}

TEST(AttrMap, KeepsOneValueForAName) {
  AttrMap map{{"a", 1}, {"b", "x"}};
  map.set("a", 2);
  map.set("c", true);
  EXPECT_EQ(map.size(), 3u);
  EXPECT_EQ(*map.find("a")->get_if<std::int64_t>(), 2);
  EXPECT_EQ(map.find("d"), nullptr);
  map.erase("b");
  map.erase("nothing");
  EXPECT_TRUE(map == (AttrMap{{"c", true}, {"a", 2}})) << "in any order";
  EXPECT_FALSE(map == (AttrMap{{"c", true}, {"a", 3}}));
  EXPECT_FALSE(map == (AttrMap{{"c", true}}));
}

}  // namespace
}  // namespace tandem
