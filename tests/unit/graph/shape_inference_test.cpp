#include <gmock/gmock.h>

#include "tandem/graph/inference_context.h"

#include "tests/unit/graph/graph_util.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

std::string shape_of(const Node* node, int output = 0) {
  return node->output_shape(output).to_string();
}

TEST(ShapeInference, FollowsTheShapeFunctions) {
  Builder b;
  Node* x = b.arg("x", float32, {2, -1});
  Node* y = b.arg("y", float32, {1, 3});
  EXPECT_EQ(shape_of(b.add("TestAdd", "sum", {{x}, {y}})), "[2,3]");
  Node* unknown = b.arg("u", float32, PartialShape::unknown());
  EXPECT_EQ(shape_of(b.add("TestAdd", "sum2", {{x}, {unknown}})), "<unknown>");
  Node* two = b.add("TestSplitInTwo", "two", {{x}});
  EXPECT_EQ(shape_of(two, 1), "<unknown>") << "no shape function";
  EXPECT_EQ(two->output_dtype(1), float32);
}

TEST(ShapeInference, NamesTheNodeThatCannotBe) {
  Builder b;
  Node* x = b.arg("x", float32, {2});
  Node* y = b.arg("y", float32, {3});
  const auto message = thrown<InvalidArgumentError>([&] { b.add("TestAdd", "bad", {{x}, {y}}); });
  EXPECT_THAT(message, HasSubstr("Incompatible shapes: [2] vs. [3]"));
  EXPECT_THAT(message, HasSubstr("[[{{node bad}} (TestAdd)"));
  EXPECT_EQ(b.graph.num_nodes(), 2u) << "nothing was added";
  EXPECT_EQ(b.graph.find("bad"), nullptr);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                b.add("TestReshape", "r", {{x}, {b.constant("c", Array::scalar(1))}});
              }),
              HasSubstr("input 1 must have rank 1 but has shape []"));
}

TEST(ShapeInference, ReadsShapesFromConstants) {
  Builder b;
  Node* x = b.arg("x", float32, PartialShape::unknown());
  Node* shape = b.constant("shape", Array::vector<std::int32_t>({2, -1, 3}));
  EXPECT_EQ(shape_of(b.add("TestReshape", "r", {{x}, {shape}})), "[2,?,3]");
  Node* opaque = b.arg("s", int32, {4});
  EXPECT_EQ(shape_of(b.add("TestReshape", "r", {{x}, {opaque}})), "[?,?,?,?]")
      << "its length is known";
  Node* nothing = b.arg("s", int32, {-1});
  EXPECT_EQ(shape_of(b.add("TestReshape", "r", {{x}, {nothing}})), "<unknown>");
}

TEST(ShapeInference, FollowsShapesThroughValues) {
  Builder b;
  Node* x = b.arg("x", float32, {7, -1, 5});
  Node* shape = b.add("TestShapeOf", "shape", {{x}});
  EXPECT_EQ(shape_of(b.add("TestReshape", "same", {{x}, {shape}})), "[7,?,5]");
  Node* at = b.constant("at", Array::scalar(std::int32_t{-1}));
  Node* last = b.add("TestElement", "last", {{shape}, {at}});
  Node* nine = b.constant("nine", Array::scalar(std::int32_t{9}));
  Node* out_of_range = b.add("TestElement", "none", {{shape}, {nine}});
  Node* minus = b.constant("minus", Array::scalar(std::int32_t{-1}));
  Node* packed = b.add("TestPack", "packed", {{last}, {nine}, {out_of_range}, {minus}});
  EXPECT_EQ(shape_of(b.add("TestReshape", "r", {{x}, {packed}})), "[5,9,?,?]");
}

TEST(InferenceContext, HelpsShapeFunctions) {
  const OpDef& op = test_ops().get("TestAdd");
  const AttrMap attrs{{"T", float32}};
  const Array value = Array::vector<std::int64_t>({3, 4});
  const Array text = Array::vector<std::string>({"a"});
  InferenceContext c(
      op, attrs, {PartialShape{2, 3}, PartialShape::unknown()}, {float32, float32}, 1,
      [&](int i) { return i == 0 ? &value : &text; }, [](int) { return std::nullopt; });
  c.require_rank(0, 2);
  c.require_rank(1, 7);
  c.require_rank_at_least(0, 1);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { c.require_rank_at_least(0, 3); }),
              HasSubstr("Op TestAdd: input 0 must have rank at least 3 but has shape [2,3]."));
  EXPECT_EQ(c.merge_dim(3, -1, "rows"), 3);
  EXPECT_EQ(c.merge_dim(-1, -1, "rows"), -1);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { c.merge_dim(3, 4, "rows"); }),
              HasSubstr("rows must agree but are 3 and 4."));
  EXPECT_EQ(c.input_ints(0), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(c.input_ints(1), std::nullopt);
  EXPECT_EQ(c.input_as_shape(0), PartialShape::unknown());
  EXPECT_EQ(c.attr<DType>("T"), float32);
  EXPECT_THROW(c.attr<bool>("T"), InternalError);
  EXPECT_THROW(c.attr<DType>("U"), InternalError);
}

}  // namespace
}  // namespace tandem
