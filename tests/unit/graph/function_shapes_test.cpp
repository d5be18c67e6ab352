#include "tandem/graph/function_shapes.h"

#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/graph/graph_util.h"

namespace tandem {
namespace {

// Returns x + x, its own argument, and an array of the shape in `to`.
FunctionRef make_function(const PartialShape& x_shape) {
  Builder b;
  Node* x = b.arg("x", float32, x_shape);
  Node* to = b.arg("to", int32, {-1});
  Node* sum = b.add("TestAdd", "sum", {{x}, {x}});
  Node* shaped = b.add("TestReshape", "shaped", {{x}, {to}});
  b.add("TestEffect", "effect", {{x}});
  return std::make_shared<const Function>("f", std::move(b.graph), std::vector<Node*>{x, to},
                                          std::vector<Output>{{sum}, {to}, {shaped}});
}

TEST(InferResults, FollowsTheCall) {
  const FunctionRef f = make_function(PartialShape::unknown());
  const auto results = infer_results(f, {{{2, -1}, {}}, {{3}, PartialShape{4, -1, 5}}});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].shape, (PartialShape{2, -1}));
  EXPECT_EQ(results[1].shape, (PartialShape{3}));
  EXPECT_EQ(results[1].held, (PartialShape{4, -1, 5}));
  EXPECT_EQ(results[2].shape, (PartialShape{4, -1, 5}));
  EXPECT_EQ(f->args()[0]->output_shape(0), PartialShape::unknown()) << "the function is as it was";
}

TEST(InferResults, KnowsWhatTheArgumentsSayToo) {
  const FunctionRef f = make_function({-1, 3});
  const KnownValue to{{2}, {}};
  EXPECT_EQ(infer_results(f, {{{2, -1}, {}}, to})[0].shape, (PartialShape{2, 3}));
  EXPECT_EQ(infer_results(f, {{PartialShape::unknown(), {}}, to})[0].shape, (PartialShape{-1, 3}));
  // Called with another shape than it was traced for.
  EXPECT_EQ(infer_results(f, {{{7}, {}}, to})[0].shape, (PartialShape{7}));
}

TEST(InferResults, AnswersForAnyCallWhereItCannotForThis) {
  const FunctionRef f = make_function({-1, 3});
  // An index vector of rank 2 fits no Reshape.
  const auto results = infer_results(f, {{{2, 3}, {}}, {{1, 1}, {}}});
  EXPECT_EQ(results[0].shape, (PartialShape{2, 3}));
  EXPECT_EQ(results[2].shape, PartialShape::unknown());
  EXPECT_EQ(infer_results(f, {{{2, 3}, {}}})[0].shape, (PartialShape{-1, 3})) << "an argument less";
}

TEST(InferResults, RemembersSomeCallsAndNoMore) {
  const FunctionRef f = make_function({-1});
  const KnownValue to{{1}, {}};
  const auto first_of = [&](std::int64_t size) {
    return infer_results(f, {{{size}, {}}, to})[0].shape;
  };
  {
    const InferenceMemory memory;
    for (std::int64_t size = 0; size < 1000; ++size) first_of(size);
    EXPECT_EQ(first_of(3), (PartialShape{3}));
    EXPECT_EQ(first_of(999), (PartialShape{-1}));
  }
  EXPECT_EQ(first_of(999), (PartialShape{999}));
}

}  // namespace
}  // namespace tandem
