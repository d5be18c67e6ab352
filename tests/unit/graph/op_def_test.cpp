#include "tandem/graph/op_def.h"

#include <gmock/gmock.h>

#include "tests/unit/graph/graph_util.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

OpDef parse(const char* inputs, const char* outputs, const char* attrs) {
  return OpDef::parse({.name = "Try", .inputs = inputs, .outputs = outputs, .attrs = attrs}, 7);
}

OpDef with_attrs(const char* attrs) { return parse("", "", attrs); }

TEST(OpDecl, ReadsArguments) {
  const OpDef op =
      parse("x: T, shape: int32, values: N * T, args: Tin, ref: Ref(T), many: N * float",
            "y: T, z: Tin", "T: type; N: int >= 1; Tin: list(type)");
  EXPECT_EQ(op.id, 7u);
  ASSERT_EQ(op.inputs.size(), 6u);
  EXPECT_EQ(op.inputs[0].type_attr, "T");
  EXPECT_EQ(op.inputs[1].dtype, DType::kInt32);
  EXPECT_EQ(op.inputs[2].number_attr, "N");
  EXPECT_EQ(op.inputs[2].type_attr, "T");
  EXPECT_EQ(op.inputs[3].type_list_attr, "Tin");
  EXPECT_TRUE(op.inputs[4].is_ref);
  EXPECT_EQ(op.inputs[4].type_attr, "T");
  EXPECT_EQ(op.inputs[5].dtype, DType::kFloat);
  EXPECT_TRUE(op.inputs[5].is_list());
  EXPECT_FALSE(op.plain_arguments);
  for (const AttrDef& attr : op.attrs) EXPECT_TRUE(attr.inferred) << attr.name;
}

TEST(OpDecl, ReadsAttributes) {
  const OpDef op = with_attrs(
      "a: int = -1; b: int >= 2 = 3; c: float = 0.5; d: bool = true; e: string = 'x; y'; f: "
      "{'SAME', 'VALID'}; "
      "g: {half, float}; h: reals = float; i: list(int) = [1, 2]; j: list(int) >= 1; k: type = "
      "int64; "
      "l: shape = [2, -1]; m: shape = unknown; n: func; o: tensor; p: list({float, int8}); q: "
      "list(type) = []; "
      "r: list(string) = ['a', 'b,c']");
  const auto text = [&](const char* name) { return op.find_attr(name)->default_value.to_string(); };
  const auto kind = [&](const char* name) { return op.find_attr(name)->kind; };
  EXPECT_EQ(text("a"), "-1");
  EXPECT_EQ(text("b"), "3");
  EXPECT_EQ(op.find_attr("b")->minimum, 2);
  EXPECT_EQ(text("c"), "0.5");
  EXPECT_EQ(text("d"), "true");
  EXPECT_EQ(text("e"), "\"x; y\"");
  EXPECT_EQ(kind("f"), "string");
  EXPECT_THAT(op.find_attr("f")->allowed_strings, ElementsAre("SAME", "VALID"));
  EXPECT_TRUE(op.find_attr("f")->default_value.empty());
  EXPECT_EQ(kind("g"), "type");
  EXPECT_TRUE(op.find_attr("g")->allowed_types.contains(DType::kHalf));
  EXPECT_FALSE(op.find_attr("g")->allowed_types.contains(DType::kDouble));
  EXPECT_EQ(text("h"), "float");
  EXPECT_TRUE(op.find_attr("h")->allowed_types.contains(DType::kUint64));
  EXPECT_EQ(text("i"), "[1, 2]");
  EXPECT_TRUE(op.find_attr("j")->has_minimum);
  EXPECT_EQ(text("k"), "int64");
  EXPECT_EQ(text("l"), "[2,?]");
  EXPECT_EQ(text("m"), "<unknown>");
  EXPECT_EQ(kind("n"), "func");
  EXPECT_EQ(kind("o"), "tensor");
  EXPECT_EQ(kind("p"), "list(type)");
  EXPECT_TRUE(op.find_attr("p")->allowed_types.contains(DType::kInt8));
  EXPECT_EQ(text("q"), "[]");
  EXPECT_EQ(text("r"), "[\"a\", \"b,c\"]");
  EXPECT_EQ(op.find_attr("z"), nullptr);
}

TEST(OpDecl, NamesWhatIsMalformed) {
  for (const char* attrs :
       {"T", "a: int = x", "a: int = 3x", "a: int >= x", "a: float = ", "a: bool = maybe",
        "a: string = SAME", "a: {'A'} = 'B'", "a: {float, nothing}", "a: {}", "a: integer",
        "a: list(thing)", "a: int >= 2 = 1", "a: type = nothing", "a: list(int) = 1",
        "a: {float} = int32", "a: int; a: int", ": int", "a: list(int"}) {
    EXPECT_THAT(thrown<InternalError>([&] { with_attrs(attrs); }),
                HasSubstr("The declaration of op Try is malformed"))
        << attrs;
  }
  for (const char* inputs :
       {"x", "x: nothing", "x: N * float", "x: 3 * float", "x: T, x: T", ": T", "x: Ref(U)"}) {
    EXPECT_THAT(thrown<InternalError>([&] { parse(inputs, "", "T: type"); }),
                HasSubstr("malformed"))
        << inputs;
  }
  EXPECT_THROW(parse("", "y: U", "T: type"), InternalError);
}

TEST(OpDef, PrintsItsDeclaration) {
  EXPECT_EQ(test_ops().get("TestAdd").to_string(),
            "TestAdd(x: T, y: T) -> (z: T)\n"
            "  T: type in {float, int32}  (from the inputs)\n"
            "  gradient: none, elementwise\n"
            "  Adds.\n");
  EXPECT_THAT(test_ops().get("TestNegate").to_string(),
              HasSubstr("  mode: string in {\"A\", \"B\"} = \"A\"\n"
                        "  gradient: not differentiable, elementwise\n"));
  EXPECT_THAT(test_ops().get("TestJoin").to_string(),
              HasSubstr("TestJoin(values: N * T, axis: int32) -> (output: T)\n"
                        "  N: int >= 2  (from the inputs)\n"));
}

TEST(OpDef, KnowsWhichInputsGiveOutputTypes) {
  EXPECT_THAT(test_ops().get("TestAdd").output_like_input, ElementsAre(0));
  EXPECT_TRUE(test_ops().get("TestAdd").plain_arguments);
  EXPECT_THAT(test_ops().get("TestShapeOf").output_like_input, ElementsAre(-1));
  EXPECT_FALSE(test_ops().get("TestTuple").plain_arguments);
}

AttrMap complete(const char* op, const std::vector<DType>& inputs, const AttrMap& given = {}) {
  return complete_attrs(test_ops().get(op), inputs, given);
}

std::string refused(const char* op, const std::vector<DType>& inputs, const AttrMap& given = {}) {
  return thrown<InvalidArgumentError>([&] { complete(op, inputs, given); });
}

constexpr DType kF = DType::kFloat, kI = DType::kInt32, kS = DType::kString;

TEST(CompleteAttrs, InfersAndFillsIn) {
  EXPECT_EQ(complete("TestAdd", {kF, kF}), (AttrMap{{"T", kF}}));
  EXPECT_EQ(complete("TestAdd", {ref_dtype(kF), kF}), (AttrMap{{"T", kF}}));
  EXPECT_EQ(complete("TestNegate", {kF}), (AttrMap{{"T", kF}, {"mode", "A"}}));
  EXPECT_EQ(complete("TestNegate", {kF}, {{"mode", "B"}, {"_internal", 1}}),
            (AttrMap{{"T", kF}, {"mode", "B"}, {"_internal", 1}}));
  EXPECT_EQ(complete("TestJoin", {kS, kS, kS, kI}), (AttrMap{{"N", 3}, {"T", kS}}));
  EXPECT_EQ(complete("TestTuple", {kI, kF, kS, kF}),
            (AttrMap{{"Tin", std::vector<DType>{kF, kS}}}));
  EXPECT_EQ(complete("TestTuple", {kI, kF, kS, kF}, {{"Tin", std::vector<DType>{kF, kS}}}).size(),
            1u);
  EXPECT_THAT(output_dtypes(test_ops().get("TestTuple"), complete("TestTuple", {kI, kF, kS, kF})),
              ElementsAre(kF, kS));
  EXPECT_THAT(output_dtypes(test_ops().get("TestSplitInTwo"), complete("TestSplitInTwo", {kS})),
              ElementsAre(kS, kS));
}

TEST(CompleteAttrs, SaysWhatDoesNotFit) {
  EXPECT_THAT(refused("TestAdd", {kF}), HasSubstr("Op TestAdd: expects 2 inputs but got 1."));
  EXPECT_THAT(refused("TestAdd", {kF, kF, kF}), HasSubstr("expects 2 inputs but got 3."));
  EXPECT_THAT(refused("TestAdd", {kF, kI}), HasSubstr("input 'y' is int32 but must be float"));
  EXPECT_THAT(refused("TestAdd", {kS, kS}),
              HasSubstr("dtype string is not allowed for attribute 'T'"));
  EXPECT_THAT(refused("TestAdd", {kF, kF}, {{"T", kI}}),
              HasSubstr("input 'x' is float but must be int32"));
  EXPECT_THAT(refused("TestAdd", {kF, kF}, {{"U", kI}}), HasSubstr("has no attribute 'U'"));
  EXPECT_THAT(refused("TestNegate", {kF}, {{"mode", "C"}}),
              HasSubstr("must be one of 'A', 'B' but is 'C'"));
  EXPECT_THAT(refused("TestNegate", {kF}, {{"mode", 1}}),
              HasSubstr("must be of kind string but is int"));
  EXPECT_THAT(refused("TestJoin", {kF, kI}), HasSubstr("'N' must be at least 2 but is 1"));
  EXPECT_THAT(refused("TestJoin", {kF, kF, kF}),
              HasSubstr("input 'axis' must be int32 but is float"));
  EXPECT_THAT(refused("TestJoin", {kF, kF, kI}, {{"N", 5}}), HasSubstr("inputs but got 3"));
  EXPECT_THAT(refused("TestJoin", {kF, kF, kI}, {{"N", -5}}), HasSubstr("TestJoin"));
  EXPECT_THAT(refused("TestTuple", {kI, kF}), HasSubstr("needs at least 1 values for 'Tin'"));
  EXPECT_THAT(refused("TestTuple", {kI}), HasSubstr("inputs but got 1"));
  EXPECT_THAT(refused("TestConst", {}, {{"dtype", kF}}),
              HasSubstr("attribute 'value' (tensor) must be given"));
}

}  // namespace
}  // namespace tandem
