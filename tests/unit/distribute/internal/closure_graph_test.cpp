#include "tandem/distribute/internal/parameters/closure_graph.h"

#include <vector>

#include <gtest/gtest.h>

#include "tandem/tandem.h"

namespace tandem::distribute {
namespace {

TEST(ClosureGraphTest, OnlyRowsOfALookedUpVariableAreNeeded) {
  const Variable table(zeros({100, 4}), {.name = "table"}), w(ones({4}), {.name = "w"});
  for (const bool by_name : {false, true}) {
    const auto body = [&](std::span<const Tensor> in) {
      const Tensor ids = in[0] + 1;
      const Tensor rows = by_name ? nn::embedding_lookup(table, ids) : gather(table, ids);
      return std::vector{reduce_sum(rows * w.value())};
    };
    const ClosureGraph graph = make_closure_graph(body, {zeros({3}, int32)}, {table, w}, 2, true);
    EXPECT_FALSE(graph.indices[0].empty()) << by_name;
    EXPECT_FALSE(graph.gradients[0].empty()) << by_name;
    EXPECT_TRUE(graph.indices[1].empty()) << by_name;
  }
}

TEST(ClosureGraphTest, AVariableThatIsReadBesidesIsNeededAsAWhole) {
  const Variable table(zeros({100, 4}), {.name = "table"});
  const auto body = [&](std::span<const Tensor> in) {
    return std::vector{reduce_sum(gather(table, in[0])) + reduce_sum(square(table.value()))};
  };
  const ClosureGraph graph = make_closure_graph(body, {zeros({3}, int32)}, {table}, 1, true);
  EXPECT_TRUE(graph.indices[0].empty());
  EXPECT_FALSE(graph.gradients[0].empty());
}

TEST(ClosureGraphTest, RowsThatDependOnVariablesAreFoundOnTheWholeVariable) {
  const Variable table(zeros({100, 4}), {.name = "table"}), w(ones({3}), {.name = "w"});
  const auto body = [&](std::span<const Tensor>) {
    return std::vector{reduce_sum(gather(table, cast(w.value(), int32)))};
  };
  const ClosureGraph graph = make_closure_graph(body, {zeros({3}, int32)}, {table, w}, 2, true);
  EXPECT_TRUE(graph.indices[0].empty());
}

TEST(ClosureGraphTest, AssignmentsBecomeResultsThatLaterReadsSee) {
  const Variable w(ones({2}), {.name = "w"});
  const Variable count(Tensor(std::int64_t{0}), {.trainable = false, .name = "count"});
  const Variable last(zeros({}), {.trainable = false, .name = "last"});
  const auto body = [&](std::span<const Tensor> in) {
    count.assign_add(Tensor(std::int64_t{2}));
    last.assign(reduce_sum(in[0]));
    return std::vector{reduce_sum(w.value()) * cast(count.value(), float32) * last.value()};
  };
  const ClosureGraph graph = make_closure_graph(body, {ones({3})}, {w, count, last}, 1, true);
  EXPECT_TRUE(graph.changes[0].tensor.empty());
  EXPECT_FALSE(graph.changes[1].tensor.empty());
  EXPECT_TRUE(graph.changes[1].adds);
  EXPECT_FALSE(graph.changes[2].tensor.empty());
  EXPECT_FALSE(graph.changes[2].adds);

  const io::GraphSession session(io::import_graph_def(graph.graph_def));
  const std::vector<Array> results =
      session.run({{graph.inputs[0], ones({3}).array()},
                   {graph.parameters[0], ones({2}).array()},
                   {graph.parameters[1], Array::scalar<std::int64_t>(5)},
                   {graph.parameters[2], Array::scalar(0.0f)}},
                  {graph.outputs[0], graph.changes[1].tensor, graph.changes[2].tensor});
  EXPECT_EQ(results[0].values<float>()[0], 2.0f * 7.0f * 3.0f);
  EXPECT_EQ(results[1].values<std::int64_t>()[0], 2);
  EXPECT_EQ(results[2].values<float>()[0], 3.0f);
}

TEST(ClosureGraphTest, ChangesOfOtherVariablesAreRefused) {
  const Variable w(ones({2}), {.name = "w"});
  const Variable count(Tensor(std::int64_t{0}), {.trainable = false, .name = "count"});
  const auto body = [&](std::span<const Tensor>) {
    count.assign_add(Tensor(std::int64_t{1}));
    return std::vector{reduce_sum(w.value())};
  };
  EXPECT_THROW(make_closure_graph(body, {}, {w}, 1, true), InvalidArgumentError);
  EXPECT_THROW(make_closure_graph(body, {}, {w, count}, 1, false), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem::distribute
