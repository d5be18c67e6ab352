#include "tandem/distribute/internal/parameters/closure_graph.h"

#include <vector>

#include <gtest/gtest.h>

#include "tandem/tandem.h"

namespace tandem::distribute {
namespace {

TEST(ClosureGraphTest, OnlyRowsOfALookedUpVariableAreNeeded) {
  const Variable table(zeros({100, 4}), {.name = "table"}), w(ones({4}), {.name = "w"});
  const auto body = [&](std::span<const Tensor> in) {
    return std::vector{reduce_sum(gather(table, in[0] + 1) * w.value())};
  };
  const ClosureGraph graph = make_closure_graph(body, {zeros({3}, int32)}, {table, w}, true);
  EXPECT_FALSE(graph.indices[0].empty());
  EXPECT_FALSE(graph.gradients[0].empty());
  EXPECT_TRUE(graph.indices[1].empty());
}

TEST(ClosureGraphTest, AVariableThatIsReadBesidesIsNeededAsAWhole) {
  const Variable table(zeros({100, 4}), {.name = "table"});
  const auto body = [&](std::span<const Tensor> in) {
    return std::vector{reduce_sum(gather(table, in[0])) + reduce_sum(square(table.value()))};
  };
  const ClosureGraph graph = make_closure_graph(body, {zeros({3}, int32)}, {table}, true);
  EXPECT_TRUE(graph.indices[0].empty());
  EXPECT_FALSE(graph.gradients[0].empty());
}

TEST(ClosureGraphTest, RowsThatDependOnVariablesAreFoundOnTheWholeVariable) {
  const Variable table(zeros({100, 4}), {.name = "table"}), w(ones({3}), {.name = "w"});
  const auto body = [&](std::span<const Tensor>) {
    return std::vector{reduce_sum(gather(table, cast(w.value(), int32)))};
  };
  const ClosureGraph graph = make_closure_graph(body, {zeros({3}, int32)}, {table, w}, true);
  EXPECT_TRUE(graph.indices[0].empty());
}

}  // namespace
}  // namespace tandem::distribute
