// Graph sessions that are extended, that isolate their state, and that keep few prepared steps.
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tandem/io/graph_session.h"
#include "tandem/io/resource_handle_proto.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/session.h"

#include "tests/unit/io/graph_text_util.h"

namespace tandem::io {
namespace {

using ::testing::HasSubstr;

const std::vector<std::pair<std::string, std::string>> kT{{"T", kFloatType}};

std::string start() { return placeholder("x") + node("y", "Neg", {"x"}, kT); }

TEST(GraphSessionExtend, NewNodesTakeOutputsOfThoseThatAreThere) {
  GraphSession session(import_text(start()));
  const auto before = session.prepare({"x"}, {"y"});
  session.extend(node("z", "Mul", {"y", "x"}, kT), GraphFormat::kText);
  EXPECT_EQ(session.run({{"x", Array::scalar(3.0f)}}, {"z"})[0], Array::scalar(-9.0f));
  EXPECT_EQ(before.run({Array::scalar(3.0f)})[0], Array::scalar(-3.0f));
  session.extend(node("w", "AddV2", {"z", "y"}, kT), GraphFormat::kText);
  EXPECT_EQ(session.run({{"x", Array::scalar(3.0f)}}, {"w"})[0], Array::scalar(-12.0f));
}

TEST(GraphSessionExtend, NodesThatAreThereAreRefusedAndNothingChanges) {
  GraphSession session(import_text(start()));
  try {
    session.extend(node("z", "Neg", {"y"}, kT) + node("y", "Abs", {"x"}, kT), GraphFormat::kText);
    FAIL() << "a second node y";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'y'"));
  }
  EXPECT_THROW(session.extend(node("z", "Neg", {"absent"}, kT), GraphFormat::kText),
               InvalidArgumentError);
  EXPECT_THROW(session.run({{"x", Array::scalar(1.0f)}}, {"z"}), NotFoundError);
  EXPECT_EQ(session.run({{"x", Array::scalar(1.0f)}}, {"y"})[0], Array::scalar(-1.0f));
}

TEST(GraphSession, KeepsTheStepsUsedLast) {
  const GraphSession session(import_text(start() + node("z", "Abs", {"y"}, kT)),
                             {.max_prepared = 2});
  const auto function_of = [&](const char* fetch) {
    return session.prepare({"x"}, {fetch}).function();
  };
  const FunctionRef y = function_of("y"), z = function_of("z");
  EXPECT_EQ(function_of("y"), y);
  function_of("x");  // z makes room
  EXPECT_EQ(session.num_prepared(), 2u);
  EXPECT_EQ(function_of("y"), y);
  EXPECT_NE(function_of("z"), z);
}

std::string variable_graph() {
  return node("v", "VarHandleOp", {},
              {{"dtype", kFloatType}, {"shape", "shape { }"}, {"shared_name", "s: \"v\""}}) +
         placeholder("x") +
         node("assign", "AssignVariableOp", {"v", "x"}, {{"dtype", kFloatType}}) +
         node("read", "ReadVariableOp", {"v"}, {{"dtype", kFloatType}});
}

TEST(GraphSession, MayIsolateItsState) {
  const auto graph = import_text(variable_graph());
  const GraphSession first(graph, {.isolate_state = true}), second(graph, {.isolate_state = true});
  first.run({{"x", Array::scalar(1.0f)}}, {}, {"assign"});
  EXPECT_THROW(second.run({}, {"read"}), FailedPreconditionError);
  second.run({{"x", Array::scalar(2.0f)}}, {}, {"assign"});
  EXPECT_EQ(first.run({}, {"read"})[0], Array::scalar(1.0f));
  EXPECT_EQ(second.run({}, {"read"})[0], Array::scalar(2.0f));
}

TEST(GraphSession, OfARuntimeThatIsGoneIsATypedError) {
  auto runtime = std::make_optional<Runtime>();
  std::optional<GraphSession> session;
  {
    const RuntimeScope scope(*runtime);
    session.emplace(import_text(start()));
    EXPECT_EQ(session->run({{"x", Array::scalar(1.0f)}}, {"y"})[0], Array::scalar(-1.0f));
  }
  runtime.reset();
  EXPECT_THROW(session->run({{"x", Array::scalar(1.0f)}}, {"y"}), Error);
}

Tensor named_variable(const std::string& name) {
  return raw_op("VarHandleOp", {},
                {{"dtype", DType::kFloat}, {"shape", PartialShape({})}, {"shared_name", name}})
      .front();
}

TEST(ResourceHandleProto, IsResolvedElsewhere) {
  const Session session;
  const RuntimeScope scope(session.runtime());
  const Tensor handle = named_variable("weights");
  raw_op("AssignVariableOp", {handle, Tensor(5.0f)}, {{"dtype", DType::kFloat}});
  const std::string bytes = write_resource_handle(handle);
  EXPECT_THAT(bytes, HasSubstr("weights"));
  std::thread([&] {
    const RuntimeScope there(session.runtime());
    const Tensor same = read_resource_handle(bytes);
    EXPECT_EQ(raw_op("ReadVariableOp", {same}, {{"dtype", DType::kFloat}}).front().item<float>(),
              5);
    EXPECT_EQ(write_resource_handle(same), bytes);
  }).join();
  {
    const Session other;
    const RuntimeScope there(other.runtime());
    EXPECT_THROW(read_resource_handle(bytes), NotFoundError);
    raw_op("VarHandleOp", {},
           {{"dtype", DType::kInt32}, {"shape", PartialShape({})}, {"shared_name", "weights"}});
    EXPECT_THROW(read_resource_handle(bytes), InvalidArgumentError);
  }
}

TEST(ResourceHandleProto, OfAnEndedSessionIsATypedError) {
  auto session = std::make_optional<Session>();
  const RuntimeScope scope(session->runtime());
  const Tensor handle = named_variable("v");
  const std::string bytes = write_resource_handle(handle);
  session.reset();
  EXPECT_THROW(read_resource_handle(bytes), NotFoundError);
  EXPECT_THROW(write_resource_handle(handle), FailedPreconditionError);
}

TEST(ResourceHandleProto, BadOnesAreRefused) {
  EXPECT_THROW(read_resource_handle("\xff\xff"), DataLossError);
  EXPECT_THROW(read_resource_handle(""), NotFoundError);
  EXPECT_THROW(write_resource_handle(Tensor(1.0f)), InvalidArgumentError);
  const Variable anonymous(Tensor(1.0f));
  EXPECT_THROW(read_resource_handle(write_resource_handle(anonymous.handle())), NotFoundError);
}

}  // namespace
}  // namespace tandem::io
