#include "tandem/distribute/connect.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/tandem.h"

#include "tests/unit/distribute/two_workers.h"

namespace tandem::distribute {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using ConnectTest = TwoWorkers;

TEST_F(ConnectTest, OpsRunWhereTheScopeSays) {
  EXPECT_THAT(connection_->devices(), ElementsAre("/job:worker/replica:0/task:0/device:CPU:0",
                                                  "/job:worker/replica:0/task:1/device:CPU:0"));
  Tensor x({1.0f, 2.0f}), y, z;
  {
    const DeviceScope there(worker(0));
    y = x * 3.0f + x;
  }
  EXPECT_EQ(y.device(), "/job:worker/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(y.shape(), (Shape{2}));
  {
    const DeviceScope there(worker(1));
    z = y + 1.0f;  // from task to task
  }
  EXPECT_EQ(z.device(), "/job:worker/replica:0/task:1/device:CPU:0");
  EXPECT_THAT((z * 2.0f).array().values<float>(), ElementsAre(10, 18));  // here
  EXPECT_THAT(y.array().values<float>(), ElementsAre(4, 8));
}

TEST_F(ConnectTest, SizesThatOnlyTheTaskKnows) {
  const DeviceScope there(worker(1));
  const Tensor found = where(Tensor({0.0f, 1.0f, 2.0f}) > Tensor(0.5f));
  EXPECT_EQ(found.shape(), (Shape{2, 1}));
  EXPECT_THAT(found.array().values<std::int64_t>(), ElementsAre(1, 2));
  EXPECT_THAT(strings::upper(tensor<std::string>({"ab", ""})).array().values<std::string>(),
              ElementsAre("AB", ""));
}

// What failed before has nothing to do with them.
TEST_F(ConnectTest, CollectivesRunThereAfterFailures) {
  const DeviceScope there(worker(0));
  const Tensor x({1.0f, 2.0f});
  EXPECT_THROW((void)gather_nd(x, tensor<std::int32_t>({5})).array(), InvalidArgumentError);
  const Tensor sum =
      call("CollectiveReduceV2", {x, Tensor(1), Tensor(1), Tensor(1)},
           {{"merge_op", std::string("Add")}, {"final_op", std::string("Id")}})[0];
  EXPECT_THAT(sum.array().values<float>(), ElementsAre(1, 2));
}

TEST_F(ConnectTest, VariablesStayThere) {
  std::unique_ptr<Variable> v;
  {
    const DeviceScope there(worker(1));
    v = std::make_unique<Variable>(Tensor({1.0f, 2.0f}));
  }
  EXPECT_EQ(v->device(), "/job:worker/replica:0/task:1/device:CPU:0");
  v->assign_add(Tensor({1.0f, 1.0f}));
  EXPECT_THAT(v->read_value().array().values<float>(), ElementsAre(2, 3));
  GradientTape tape;
  const Tensor loss = reduce_sum(*v * *v);
  const Tensor gradient = tape.gradient(loss, *v);
  EXPECT_THAT(gradient.array().values<float>(), ElementsAre(4, 6));
}

TEST_F(ConnectTest, FunctionsRunThereAndUseTheirVariables) {
  std::unique_ptr<Variable> v;
  {
    const DeviceScope there(worker(0));
    v = std::make_unique<Variable>(Tensor({1.0f, 2.0f}));
  }
  auto step = function([&](const Tensor& x) {
    v->assign_add(x);
    return *v * 10.0f;
  });
  for (int task = 0; task < 2; ++task) {  // beside the variable, and in another task
    const DeviceScope there(worker(task));
    const float grown = static_cast<float>(task + 1);
    EXPECT_THAT(step(Tensor({1.0f, 1.0f})).array().values<float>(),
                ElementsAre(10 * (1 + grown), 10 * (2 + grown)));
  }
  EXPECT_THAT(v->read_value().array().values<float>(), ElementsAre(3, 4));
}

TEST_F(ConnectTest, ExplainsWhatAFunctionWouldSend) {
  std::unique_ptr<Variable> v;
  {
    const DeviceScope there(worker(1));
    v = std::make_unique<Variable>(ones({1000}));
  }
  auto step = function([&](const Tensor& x) { return reduce_sum(*v * x); });
  const Tensor x = ones({1000});  // here
  const DeviceScope there(worker(0));
  const Explanation e = explain(step, x);
  std::vector<std::string> ways;
  for (const Explanation::Transfer& transfer : e.network) {
    ways.push_back(e.devices[static_cast<std::size_t>(transfer.from)].task + " " +
                   e.devices[static_cast<std::size_t>(transfer.to)].task);
    EXPECT_EQ(transfer.bytes, 4000);
    EXPECT_GT(transfer.seconds, 0);
  }
  // The argument from here, and the variable's value from its task.
  EXPECT_THAT(ways, testing::UnorderedElementsAre("/job:localhost/task:0 /job:worker/task:0",
                                                  "/job:worker/task:1 /job:worker/task:0"));
}

TEST_F(ConnectTest, FailuresComeWithTheValue) {
  const DeviceScope there(worker(0));
  const Tensor inverse = linalg::inv(zeros({2, 2}));  // returns
  try {
    static_cast<void>(inverse.array());
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("not invertible"));
  }
  EXPECT_THAT((Tensor({1.0f}) + 1.0f).array().values<float>(), ElementsAre(2));
  connection_->synchronize();
}

TEST_F(ConnectTest, AChainOfCallsDoesNotWaitForEach) {
  const DeviceScope there(worker(1));
  Tensor sum(0.0f);
  for (int i = 0; i < 1000; ++i) sum = sum + 1.0f;
  EXPECT_EQ(sum.item<float>(), 1000);
}

TEST_F(ConnectTest, ThereIsOneConnectionAtATimeAndItEnds) {
  Tensor left;
  {
    const DeviceScope there(worker(0));
    left = Tensor({1.0f}) + 1.0f;
  }
  EXPECT_THROW(static_cast<void>(
                   connect(ClusterResolver(ClusterSpec::parse("w=localhost:1"), "client", -1))),
               FailedPreconditionError);
  connection_.reset();
  EXPECT_THROW(static_cast<void>(left.array()), Error);
  EXPECT_THROW(static_cast<void>(DeviceScope(worker(0)), Tensor({1.0f}) + 1.0f), Error);
}

}  // namespace
}  // namespace tandem::distribute
