// How tasks of a device that runs segments are joined.

#include "tandem/runtime/execute/pieces.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/graph/op_registry.h"
#include "tandem/runtime/runtime.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

constexpr int kHost = 0, kGpu = 1;

class Tasks {
 public:
  Tasks() { graph_.lanes.resize(2); }
  // `kind`: of tasks that are alike.
  int add(int lane, double seconds, const std::vector<int>& after = {}, int kind = -1,
          const Node* node = nullptr) {
    Task task;
    task.node = node;
    task.lane = lane;
    task.seconds = seconds;
    const int t = graph_.add(task);
    for (const int before : after) graph_.add_edge(before, t);
    joins_.push_back(lane == kGpu ? kGpu : -1);
    alike_.push_back(kind);
    return t;
  }
  // The tasks of each segment, in the order of pieces.
  std::vector<std::vector<int>> segments() const {
    const Pieces pieces = Pieces::joined(graph_, joins_, alike_);
    std::vector<std::vector<int>> found;
    for (std::size_t p = 0; p < pieces.members.size(); ++p) {
      if (pieces.segment[p]) found.push_back(pieces.members[p]);
    }
    return found;
  }

 private:
  TaskGraph graph_;
  std::vector<int> joins_, alike_;
};

TEST(Pieces, ASegmentWaitsForQuickStepsOfTheHost) {
  Tasks tasks;
  tasks.add(kGpu, 1e-3);
  const int reshape = tasks.add(kHost, 1e-6);
  tasks.add(kGpu, 1e-3, {0, reshape});
  EXPECT_THAT(tasks.segments(), ElementsAre(ElementsAre(0, 2)));
}

TEST(Pieces, WhatTheHostTakesLongForComesInASecondSegment) {
  Tasks tasks;
  tasks.add(kGpu, 1e-3);
  const int decode = tasks.add(kHost, 1e-3), after = tasks.add(kHost, 1e-6, {decode});
  tasks.add(kGpu, 1e-3, {0, after});
  EXPECT_THAT(tasks.segments(), ElementsAre(ElementsAre(0), ElementsAre(3)));
}

TEST(Pieces, DecisionsOfTheHostSeparateSegments) {
  Tasks tasks;
  const int first = tasks.add(kGpu, 1e-3), beside = tasks.add(kGpu, 1e-3);
  const int read = tasks.add(kHost, 1e-6, {first});
  tasks.add(kGpu, 1e-3, {beside});
  tasks.add(kGpu, 1e-3, {read});
  EXPECT_THAT(tasks.segments(), ElementsAre(ElementsAre(0, 1, 3), ElementsAre(4)));
}

// Two gradients; for each a slot's step, its assignment, which launches nothing, and the weight's
// step.
TEST(Pieces, StepsThatAreAlikeStandSideBySide) {
  constexpr int kSlot = 0, kWeight = 1;
  Tasks tasks;
  tasks.add(kGpu, 1e-3);
  for (int before = 0; before < 2; ++before) {
    const int gradient = tasks.add(kGpu, 1e-3, {before * 4});
    const int slot = tasks.add(kGpu, 1e-6, {gradient}, kSlot);
    tasks.add(kGpu, 1e-6, {slot}, kWeight);
    if (before == 0) tasks.add(kGpu, 1e-3, {gradient});
  }
  EXPECT_THAT(tasks.segments(), ElementsAre(ElementsAre(0, 1, 4, 5, 2, 6, 3, 7)));
}

// What is farther from the end goes first, whichever came first.
TEST(Pieces, KindsComeInTheOrderOfChains) {
  constexpr int kSquare = 0, kSum = 1, kScale = 2;
  Tasks tasks;
  const int scaled = tasks.add(kGpu, 1e-6, {}, kScale);
  const int one = tasks.add(kGpu, 1e-6, {}, kSquare);
  const int sum = tasks.add(kGpu, 1e-6, {one}, kSum);
  const int other = tasks.add(kGpu, 1e-6, {}, kSquare);
  const int other_sum = tasks.add(kGpu, 1e-6, {other}, kSum);
  const int other_scaled = tasks.add(kGpu, 1e-6, {other_sum}, kScale);
  EXPECT_THAT(tasks.segments(),
              ElementsAre(ElementsAre(one, other, sum, other_sum, scaled, other_scaled)));
}

// A read of the variable's old value makes no copy of it then.
TEST(Pieces, WritesOfVariablesComeLast) {
  const OpRegistry& ops = Runtime::current().ops();
  Graph graph;
  const auto arg = [&](DType dtype, std::int64_t index) {
    return Output{graph.add({.op = &ops.of_kind(NodeKind::kArg),
                             .attrs = AttrMap{{"T", dtype}, {"index", index}}}),
                  0};
  };
  const Node* const assign = graph.add({.op = &ops.get("AssignVariableOp"),
                                        .inputs = {arg(DType::kResource, 0), arg(float32, 1)},
                                        .attrs = AttrMap{{"dtype", float32}}});
  Tasks tasks;
  const int first = tasks.add(kGpu, 1e-3);
  const int write = tasks.add(kGpu, 1e-3, {first}, -1, assign);
  const int other = tasks.add(kGpu, 1e-3, {first}), last = tasks.add(kGpu, 1e-3, {write});
  EXPECT_THAT(tasks.segments(), ElementsAre(ElementsAre(first, other, write, last)));
}

}  // namespace
}  // namespace tandem
