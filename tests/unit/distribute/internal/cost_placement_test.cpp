// Where a master puts the nodes of its steps: with the cost policy on the tasks with which a step
// is shortest.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/tensor_message.h"
#include "tandem/io/graph_def.h"
#include "tandem/io/graph_export.h"
#include "tandem/placement/placement.h"

#include "tests/unit/distribute/internal/in_process_cluster.h"

namespace tandem::distribute {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

std::string full(const std::string& method) { return "/tensorflow." + method; }

// "NAME/sum" is the sum of the cube of a matrix of `size` by `size` ones: size to the power of 4.
std::string chain(const std::string& name, int size) {
  const auto node = [&](const char* of, const char* op, const std::string& inputs,
                        const std::string& attrs) {
    std::string text = cat("node { name: \"", name, "/", of, "\" op: \"", op, "\" ");
    for (std::size_t at = 0; at < inputs.size();) {
      const std::size_t end = std::min(inputs.find(' ', at), inputs.size());
      text += cat("input: \"", name, "/", inputs.substr(at, end - at), "\" ");
      at = end + 1;
    }
    return text + attrs + " }\n";
  };
  const auto type = [](const char* attr, const char* dtype) {
    return cat("attr { key: \"", attr, "\" value { type: ", dtype, " } } ");
  };
  const auto pair = [&](const std::string& one, const std::string& other) {
    return type("dtype", "DT_INT32") + cat("attr { key: \"value\" value { tensor { dtype: DT_INT32 "
                                           "tensor_shape { dim { size: 2 "
                                           "} } int_val: ",
                                           one, " int_val: ", other, " } } }");
  };
  const std::string rows = std::to_string(size), t = type("T", "DT_FLOAT");
  return node("dims", "Const", "", pair(rows, rows)) + node("axes", "Const", "", pair("0", "1")) +
         node("value", "Const", "",
              type("dtype", "DT_FLOAT") +
                  "attr { key: \"value\" value { tensor { dtype: DT_FLOAT tensor_shape {} "
                  "float_val: 1 } } }") +
         node("matrix", "Fill", "dims value", t) + node("square", "MatMul", "matrix matrix", t) +
         node("cube", "MatMul", "square matrix", t) +
         node("sum", "Sum", "cube axes", t + type("Tidx", "DT_INT32"));
}

constexpr float kLarge = 512.0f * 512.0f * 512.0f * 512.0f;  // exact, as all partial sums
const char* const kTotal = R"(
    node { name: "total" op: "AddV2" input: "one/sum" input: "other/sum"
           attr { key: "T" value { type: DT_FLOAT } } })";

/// A cluster of two workers, whose first one is the master and goes by a policy.
class CostPlacementTest : public testing::Test {
 protected:
  void open(const std::string& text, PlacementPolicy policy) {
    master_.runtime.set_placement_policy(policy);
    io::ImportOptions options;
    options.format = io::GraphFormat::kText;
    const std::string graph = io::export_graph_def(io::import_graph_def(text, options)).bytes;
    proto::CreateSessionRequest request;
    request.graph_def = graph;
    auto [status, reply] =
        call(master_, full("MasterService/CreateSession"), write_message(request));
    ASSERT_TRUE(status.ok()) << status.message;
    proto::CreateSessionResponse response;
    read_message(reply, response);
    session_ = response.session_handle;
  }
  /// The value of `fetch`. `parts` are then the graphs that the tasks have run.
  float run(const std::string& fetch, const std::string& target = {}) {
    proto::RunStepRequest message;
    message.session_handle = session_;
    if (!fetch.empty()) message.fetch = {fetch};
    if (!target.empty()) message.target = {target};
    message.options.make().output_partition_graphs = true;
    auto [status, reply] = call(master_, full("MasterService/RunStep"), write_message(message));
    EXPECT_TRUE(status.ok()) << status.message;
    proto::RunStepResponse response;
    read_message(reply, response);
    parts.assign(response.metadata->partition_graphs.begin(),
                 response.metadata->partition_graphs.end());
    if (response.tensor.empty()) return 0;
    return read_tensor(response.tensor[0].tensor, reply.owner()).values<float>()[0];
  }

  std::vector<std::string> parts;

 private:
  InProcessCluster cluster_{"worker=a:1,b:1"};
  InProcessCluster::Task& master_ = cluster_.task("worker", 0);
  std::string session_;
};

TEST_F(CostPlacementTest, WorkThatGainsFromItRunsOnBothTasks) {
  open(chain("one", 512) + chain("other", 512) + kTotal, PlacementPolicy::kCost);
  EXPECT_EQ(run("total:0"), 2 * kLarge);
  EXPECT_THAT(parts, AllOf(SizeIs(2), Each(HasSubstr("MatMul"))));
  // Without the policy the master's task has it all.
  open(chain("one", 512) + chain("other", 512) + kTotal, PlacementPolicy::kGreedy);
  EXPECT_EQ(run("total:0"), 2 * kLarge);
  EXPECT_THAT(parts, SizeIs(1));
}

TEST_F(CostPlacementTest, SmallWorkStaysInTheMastersTask) {
  open(chain("one", 2) + chain("other", 2) + kTotal, PlacementPolicy::kCost);
  EXPECT_EQ(run("total:0"), 32.0f);
  EXPECT_THAT(parts, SizeIs(1));
}

TEST_F(CostPlacementTest, ARequestedTaskIsKept) {
  open(R"(node { name: "x" op: "Const" device: "/job:worker/task:1"
                 attr { key: "dtype" value { type: DT_FLOAT } }
                 attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 3 } } } }
          node { name: "y" op: "Neg" input: "x" device: "/job:worker/task:1"
                 attr { key: "T" value { type: DT_FLOAT } } })",
       PlacementPolicy::kCost);
  EXPECT_EQ(run("y:0"), -3.0f);
  EXPECT_THAT(parts, SizeIs(2));
}

// Steps are placed one by one; what one has assigned the next one finds.
TEST_F(CostPlacementTest, AVariableStaysWhereItIs) {
  const auto variable = [](const char* name, const char* op, const char* rest) {
    return cat("node { name: \"", name, "\" op: \"", op, "\" ", rest, " }\n");
  };
  const char* const dtype = "attr { key: \"dtype\" value { type: DT_FLOAT } }";
  open(
      chain("one", 512) + chain("other", 512) + kTotal +
          variable("v", "VarHandleOp",
                   cat(dtype,
                       " attr { key: \"shape\" value { shape {} } } attr { key: "
                       "\"shared_name\" value { s: \"v\" } }")
                       .c_str()) +
          variable("assign", "AssignVariableOp",
                   cat("input: \"v\" input: \"total\" ", dtype).c_str()) +
          variable("read", "ReadVariableOp", cat("input: \"v\" ", dtype).c_str()) +
          variable("sum", "AddV2",
                   "input: \"read\" input: \"total\" attr { key: \"T\" value { type: DT_FLOAT } }"),
      PlacementPolicy::kCost);
  run({}, "assign");
  EXPECT_THAT(parts, SizeIs(2));
  EXPECT_EQ(run("read:0"), 2 * kLarge);
  EXPECT_THAT(parts, AllOf(SizeIs(1), Each(Not(HasSubstr("MatMul")))));
  EXPECT_EQ(run("sum:0"), 4 * kLarge);
}

}  // namespace
}  // namespace tandem::distribute
