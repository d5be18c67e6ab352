#include <gtest/gtest.h>

#include "tests/unit/graph/graph_util.h"

namespace tandem {
namespace {

const OpRegistration kMerge{{.name = "TestMerge",
                             .inputs = "inputs: N * T",
                             .outputs = "output: T",
                             .attrs = "T: type; N: int >= 1",
                             .traits = {.kind = NodeKind::kMerge}}};
const OpRegistration kNext{{.name = "TestNext",
                            .inputs = "data: T",
                            .outputs = "output: T",
                            .attrs = "T: type",
                            .traits = {.kind = NodeKind::kNextIteration}}};

TEST(LoopGraph, ANextIterationMayCloseALoop) {
  Builder b;
  Node* x = b.arg("x", DType::kFloat, {});
  Node* merge = b.add("TestMerge", "merge", {{x, 0}, {}});
  Node* next = b.add("TestNext", "next", {{merge, 0}});
  EXPECT_NE(b.graph.to_string().find("merge: float<unknown> = TestMerge(x, ?)"), std::string::npos)
      << b.graph.to_string();
  const std::string message = thrown<InvalidArgumentError>([&] { b.graph.topological_order(); });
  EXPECT_NE(message.find("Input 1 of {{node merge}}"), std::string::npos) << message;
  b.graph.set_input(merge, 1, {next, 0});
  const auto order = b.graph.topological_order();
  EXPECT_EQ(order, (std::vector<Node*>{x, merge, next}));
  const Graph copy = b.graph.clone();
  EXPECT_EQ(copy.to_string(), b.graph.to_string());
  EXPECT_EQ(copy.topological_order().size(), 3u);
}

TEST(LoopGraph, OtherCyclesAreNamed) {
  Builder b;
  Node* x = b.arg("x", DType::kFloat, {});
  Node* merge = b.add("TestMerge", "merge", {{x, 0}, {}});
  Node* first = b.add("TestNegate", "first", {{merge, 0}});
  Node* second = b.add("TestNegate", "second", {{first, 0}});
  b.graph.set_input(merge, 1, {second, 0});
  const std::string message = thrown<InvalidArgumentError>([&] { b.graph.topological_order(); });
  for (const char* name : {"'merge'", "'first'", "'second'"})
    EXPECT_NE(message.find(name), std::string::npos) << message;
  EXPECT_EQ(message.find("'x'"), std::string::npos) << message;
}

TEST(LoopGraph, TheLateInputMustFit) {
  Builder b;
  Node* x = b.arg("x", DType::kFloat, {});
  Node* y = b.arg("y", DType::kInt32, {});
  Node* merge = b.add("TestMerge", "merge", {{x, 0}, {}});
  const std::string message = thrown<InvalidArgumentError>([&] {
    b.graph.set_input(merge, 1, {y, 0});
  });
  EXPECT_NE(message.find("must be float"), std::string::npos) << message;
}

TEST(LoopGraph, OnlyAMergeMayLackAnInput) {
  Builder b;
  EXPECT_NE(thrown<InvalidArgumentError>([&] {
              b.add("TestNegate", "n", {Output{}});
            }).find("an input is undefined"),
            std::string::npos);
  EXPECT_NE(thrown<InvalidArgumentError>([&] {
              b.add("TestMerge", "m", {Output{}, Output{}});
            }).find("at least one input"),
            std::string::npos);
}

}  // namespace
}  // namespace tandem
