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
  int add(int lane, double seconds, const std::vector<int>& after = {},
          const Node* node = nullptr) {
    Task task;
    task.node = node;
    task.lane = lane;
    task.seconds = seconds;
    const int t = graph_.add(task);
    for (const int before : after) graph_.add_edge(before, t);
    joins_.push_back(lane == kGpu ? kGpu : -1);
    return t;
  }
  // The tasks of each segment, in the order of pieces.
  std::vector<std::vector<int>> segments() const {
    const Pieces pieces = Pieces::joined(graph_, joins_);
    std::vector<std::vector<int>> found;
    for (std::size_t p = 0; p < pieces.members.size(); ++p) {
      if (pieces.segment[p]) found.push_back(pieces.members[p]);
    }
    return found;
  }

 private:
  TaskGraph graph_;
  std::vector<int> joins_;
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
  const int write = tasks.add(kGpu, 1e-3, {first}, assign);
  const int other = tasks.add(kGpu, 1e-3, {first}), last = tasks.add(kGpu, 1e-3, {write});
  EXPECT_THAT(tasks.segments(), ElementsAre(ElementsAre(first, other, write, last)));
}

}  // namespace
}  // namespace tandem
